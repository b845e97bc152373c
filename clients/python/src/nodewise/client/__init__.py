"""The plan client: which replica is asked, for how long, what is sent inline, and what happens when one does not
answer.

A workload's replica is chosen by rendezvous hashing on its uid, so that the replica that has the workload's buckets is
asked again, and a replica that goes moves only its own workloads. Who fails or is about to end is asked last.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import grpc
import grpc.aio

from .. import tracing, v1, waiting
from ..buckets import Digest
from . import discovery, health, target, words
from .errors import RefusedError, ServiceError, UnreachableError
from .fault import Failed, Opinions, note_failure
from .pieces import Pieces, without_known
from .replica import Replica
from .replicas import Replicas
from .tries import ClientConfig, Tries

if TYPE_CHECKING:
    from ..v1.reconcile_service_pb2_grpc import ReconcileServiceAsyncStub

__all__ = ["ClientConfig", "PlanClient", "PlanService", "RefusedError", "ServiceError", "UnreachableError"]

CORRECTIONS = 3
"""How often a replica may lack buckets of one request before it is sent all of them."""
FIRST_ADDRESS = 3.0
"""How long a call waits for the first address, in seconds."""
_NOT_OPEN = "the plan client is not in use: use it as a context manager, async with PlanClient(...) as client"

BuildRequest: TypeAlias = Callable[[Callable[[Digest], bool]], v1.PlanRequest]
"""Builds a request; it is told which buckets the replica that is about to be asked is believed to have."""

_Answer = TypeVar("_Answer")


class PlanService(Protocol):
    """Somebody who plans. Every method raises `ServiceError`."""

    async def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        """Asks what must happen next for the workload of this uid. The request is built anew for each attempt; the plan
        answers the one that was built last.
        """

    async def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        """Says what became of a plan."""

    def health(self) -> str | None:
        """Why nobody plans, if so, or that nobody was asked yet."""


class PlanClient:
    """A client of one or more replicas of the service, on asyncio. Use it as an async context manager.

    Targets are `http://HOST:PORT`, one replica, or `dns:///HOST:PORT`, one at each address of the name, which is looked
    up again and again. They are plain text, and off loopback only with `ClientConfig.plaintext`; with
    `ClientConfig.credentials` targets are `https://HOST:PORT` or `dns:///HOST:PORT`. Interceptors are gRPC's, for
    example those of opentelemetry-instrumentation-grpc; trace context is sent without them.
    """

    def __init__(
        self,
        *targets: str,
        config: ClientConfig | None = None,
        interceptors: Iterable[grpc.aio.ClientInterceptor] = (),
        lookup: discovery.Lookup = discovery.system_lookup,
    ) -> None:
        if not targets:
            raise ValueError("no planning service is given: at least one is needed")
        self._config = config or ClientConfig()
        secure, plaintext = self._config.credentials is not None, self._config.plaintext
        self._targets = [target.parse(text, secure=secure, plaintext=plaintext) for text in targets]
        self._interceptors = list(interceptors)
        self._lookup = lookup
        self._replicas = Replicas(self._connect)
        self._found = {t: [t.address] if isinstance(t, target.Fixed) else [] for t in self._targets}
        self._tasks: list[asyncio.Task[None]] = []
        self._health: dict[Replica, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_open = False

    async def __aenter__(self) -> "PlanClient":
        if self._is_open:
            raise RuntimeError("the plan client is in use already")
        self._is_open = True
        self._replace()
        self._tasks = [
            asyncio.create_task(self._follow(name)) for name in self._targets if isinstance(name, target.Dns)
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await waiting.ended([*self._tasks, *self._health.values()])
        await asyncio.gather(*self._closing, *(replica.close() for replica in self._replicas.members))
        self._health.clear()
        self._replicas = Replicas(self._connect)
        self._is_open = False

    def health(self) -> str | None:
        """Why the service cannot be reached, if so, or that it was not tried yet."""
        return self._replicas.health() if self._is_open else _NOT_OPEN

    def _require_open(self) -> None:
        if not self._is_open:
            raise RuntimeError(_NOT_OPEN)

    async def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        """See `PlanService.plan`."""
        self._require_open()
        tries, opinions = Tries(self._config, time.monotonic), Opinions(self._replicas)
        while True:
            order = await self._replicas.order(uid, min(tries.left, FIRST_ADDRESS))
            turn = tries.turn(order)
            if turn is None:
                break
            answer = await self._ask(uid, turn.replica, turn.timeout, build)
            if not isinstance(answer, Failed):
                opinions.answered(turn.replica)
                return answer
            opinions.failed(turn.replica, answer)
            opinions.check(len(order))
            pause = tries.pause(order, answer.retry_after)
            if pause is None:
                break
            await asyncio.sleep(pause)
        raise opinions.unreachable()

    async def plan_request(self, request: v1.PlanRequest) -> v1.Plan:
        """Asks with a request that is whole: all its buckets are inline. Those that have a digest, and that the replica
        has, are not sent again.
        """
        uid = workload_uid(request.snapshot)
        return await self.plan(uid, lambda known: without_known(request, known))

    async def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        """See `PlanService.report`. Tried once at each replica: one that is not delivered rides on the next plan."""
        return await self._once_each(report.workload.uid, "Report", lambda stub: stub.Report, report)

    async def explain(self, request: v1.ExplainRequest) -> v1.ExplainResponse:
        """Tells, for each node or for one, whether the workload runs there and the rule that decides it. All buckets
        are inline.
        """
        return await self._once_each(workload_uid(request.snapshot), "Explain", lambda stub: stub.Explain, request)

    async def capabilities(self) -> v1.GetCapabilitiesResponse:
        """Tells what a replica is and what it accepts."""
        request = v1.GetCapabilitiesRequest()
        return await self._once_each("", "GetCapabilities", lambda stub: stub.GetCapabilities, request)

    async def _once_each(
        self,
        uid: str,
        name: str,
        method: "Callable[[ReconcileServiceAsyncStub], Callable[..., Awaitable[_Answer]]]",
        request: object,
    ) -> _Answer:
        self._require_open()
        tries, opinions = Tries(self._config, time.monotonic, min_attempts=1), Opinions(self._replicas)
        order = await self._replicas.order(uid, min(tries.left, FIRST_ADDRESS))
        while (turn := tries.turn(order)) is not None:
            with tracing.rpc(name, turn.replica.address) as rpc:
                answer = await _call(rpc, turn.replica, method(turn.replica.stub), request, turn.timeout)
            if not isinstance(answer, Failed):
                self._replicas.answered(turn.replica)
                opinions.answered(turn.replica)
                return answer
            note_failure(self._replicas, uid, turn.replica, answer)
            opinions.failed(turn.replica, answer)
            opinions.check(len(order))
        raise opinions.unreachable()

    async def _ask(self, uid: str, replica: Replica, timeout: float, build: BuildRequest) -> v1.Plan | Failed:
        """Asks one replica; again when it turns out to lack buckets."""
        with Pieces(self._config.max_piece_bytes, replica.pieces) as pieces:
            return await self._ask_in(pieces, uid, replica, time.monotonic() + timeout, build)

    async def _ask_in(
        self, pieces: Pieces, uid: str, replica: Replica, until: float, build: BuildRequest
    ) -> v1.Plan | Failed:
        corrections = 0
        while True:
            everything = corrections == CORRECTIONS
            known = () if everything else replica.known
            request, piece = build(known.__contains__), None
            if not everything:
                request, piece = pieces.cut(request)
            if piece is not None and not pieces.is_our_turn:
                try:
                    await pieces.take_turn(until - time.monotonic())
                except asyncio.TimeoutError:
                    reason = f"{replica}: another call sends it buckets in pieces"
                    return Failed(grpc.StatusCode.FAILED_PRECONDITION, reason)
                if any(digest in replica.known for digest in piece):
                    # Another call has sent it meanwhile.
                    continue
            with tracing.rpc("Plan", replica.address) as rpc:
                rpc.asks(request)
                answer = await _call(rpc, replica, replica.stub.Plan, request, until - time.monotonic())
                if not isinstance(answer, Failed) and not answer.HasField("plan"):
                    # Another server may be at the address by now.
                    answer = Failed(grpc.StatusCode.INTERNAL, "an answer without a plan")
                if not isinstance(answer, Failed):
                    rpc.planned(answer.plan)
            nodes, pods = _digests(request.snapshot.node_buckets), _digests(request.snapshot.pod_buckets)
            if not isinstance(answer, Failed):
                self._replicas.answered(replica)
                replica.known.used(digest for digest in nodes + pods if digest)
                return answer.plan
            # It may lose more while we send, and what it lacks may be believed to be there again by the answer to
            # another workload: in the end it gets everything, whatever is believed.
            if answer.code is not grpc.StatusCode.FAILED_PRECONDITION or everything:
                note_failure(self._replicas, uid, replica, answer)
                return pieces.explain(answer, request.ByteSize()) if everything else answer
            missing = answer.missing
            if missing is None:
                corrections = CORRECTIONS
                continue
            lacks = _at(nodes, missing.node_bucket_indices) + _at(pods, missing.pod_bucket_indices)
            if piece is None:
                corrections += 1
            elif not pieces.are_kept(len(piece), len(lacks)):
                corrections = CORRECTIONS
            replica.known.used(piece or ())
            replica.known.forget(lacks)

    def _connect(self, address: str) -> Replica:
        targets = [t for t, found in self._found.items() if address in found]
        replica = Replica(
            address,
            self._config.max_message_bytes,
            self._interceptors,
            self._config.credentials,
            # Names go first: it is they that a certificate is for.
            next((t for t in targets if isinstance(t, target.Dns)), targets[0]),
        )
        self._health[replica] = asyncio.create_task(health.look_after(self._replicas, replica))
        return replica

    def _replace(self) -> None:
        for gone in self._replicas.replace(address for found in self._found.values() for address in found):
            self._health.pop(gone).cancel()
            closing = asyncio.create_task(gone.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _follow(self, name: target.Dns) -> None:
        async for found in discovery.addresses(name, self._lookup, self._replicas.doubts()):
            if isinstance(found, str):
                self._replicas.not_found(name, found)
            else:
                self._replicas.found(name)
                self._found[name] = found
                self._replace()


def workload_uid(snapshot: v1.Snapshot) -> str:
    """The uid of the workload of a snapshot; empty when it cannot be read, which the service will say."""
    from ..objects import DaemonSet

    try:
        return DaemonSet.read(snapshot.workload.daemon_set.object).uid
    except ValueError:
        return ""


async def _call(
    rpc: tracing.Rpc,
    replica: Replica,
    method: Callable[..., Awaitable[_Answer]],
    request: object,
    timeout: float,
) -> _Answer | Failed:
    if replica.is_closed:
        rpc.failed(grpc.StatusCode.UNAVAILABLE.name, "it is a replica no more")
        return Failed(grpc.StatusCode.UNAVAILABLE, f"{replica}: it is a replica no more")
    try:
        with replica.in_use():
            answer = await method(request, timeout=max(timeout, 0.001), metadata=tuple(tracing.headers().items()))
        rpc.answered()
        return answer
    except grpc.aio.AioRpcError as error:
        rpc.failed(error.code().name, error.details() or "")
        reason = words.of_failure(replica, error)
        told = [value for key, value in error.trailing_metadata() or () if key == "grpc-status-details-bin"]
        return Failed(error.code(), reason, told[0] if told and isinstance(told[0], bytes) else b"")


def _digests(buckets: Iterable[v1.Bucket]) -> list[Digest]:
    return [bucket.digest for bucket in buckets]


def _at(digests: Sequence[Digest], indices: Iterable[int]) -> list[Digest]:
    return [digests[index] for index in indices if index < len(digests)]
