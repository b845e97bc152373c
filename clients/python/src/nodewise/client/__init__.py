"""The plan client. It chooses a replica for each call, bounds the call in time, sends the buckets that the replica
lacks, and tries other replicas on failure.

It chooses a workload's replica by rendezvous hashing of the workload's uid. The same replica, which has the workload's
buckets, is then asked again, and a replica that goes away moves only its own workloads. Replicas that fail or drain are
asked last.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import grpc
import grpc.aio

from .. import tracing, v1, waiting
from ..buckets import Digest
from ..receiver import Receiver
from . import discovery, health, messages, target
from .attempts import Attempts, ClientConfig
from .capabilities import Capabilities
from .errors import FieldViolation, RefusedError, ServiceError, UnreachableError
from .fault import Failed, RequestFailures, note_failure
from .needs import Needs, kind_of, object_of
from .pieces import Pieces, without_known
from .replica import Replica
from .replicas import Replicas
from .shared_labels import lacks_shared_labels, reads_shared_labels

if TYPE_CHECKING:
    from ..v1.reconcile_service_pb2_grpc import ReconcileServiceAsyncStub

__all__ = [
    "ClientConfig",
    "FieldViolation",
    "PlanClient",
    "PlanService",
    "Receiver",
    "RefusedError",
    "ServiceError",
    "UnreachableError",
]

_REFUSED = (
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
)
"""What a gateway answers that lets only some methods pass."""
CORRECTIONS = 3
"""How often a replica may lack buckets of one request before the client sends it all buckets."""
FIRST_ADDRESS = 3.0
"""How long a call waits until a first address is known, in seconds."""
_NOT_OPEN = "the plan client is not in use: use it as a context manager, async with PlanClient(...) as client"

BuildRequest: TypeAlias = Callable[[Receiver], v1.PlanRequest]
"""Builds a request. The argument is the replica that is about to be asked."""

_Answer = TypeVar("_Answer")
_Request = TypeVar("_Request", v1.PlanRequest, v1.ExplainRequest, v1.SimulateRequest)


class PlanService(Protocol):
    """The planning service as a reconciler uses it. Every method raises `ServiceError`."""

    async def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        """Asks for the next plan of the workload with this uid. The request is built anew for each attempt, and the
        plan belongs to the request that was built last.
        """

    async def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        """Reports the outcomes of a plan."""

    def health(self) -> str | None:
        """Why the service cannot be reached, or that it was not asked yet; None if it answers."""


class PlanClient:
    """A client of one or more replicas of the service, on asyncio. Use it as an async context manager.

    A target is `http://HOST:PORT`, one replica, or `dns:///HOST:PORT`, one replica at each address of the name, which
    is looked up repeatedly. Both are plain text. Off loopback that needs `ClientConfig.plaintext`. With
    `ClientConfig.credentials` a target is `https://HOST:PORT` or `dns:///HOST:PORT`. Interceptors are those of gRPC,
    for example of opentelemetry-instrumentation-grpc. Trace context is sent without them.
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
        await waiting.cancel_all([*self._tasks, *self._health.values()])
        await asyncio.gather(*self._closing, *(replica.close() for replica in self._replicas.members))
        self._health.clear()
        self._replicas = Replicas(self._connect)
        self._is_open = False

    def health(self) -> str | None:
        """Why the service cannot be reached, or that it was not asked yet; None if it answers."""
        return self._replicas.health() if self._is_open else _NOT_OPEN

    def _require_open(self) -> None:
        if not self._is_open:
            raise RuntimeError(_NOT_OPEN)

    async def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        """See `PlanService.plan`."""
        return await self._ask_in_turn(uid, _Question("Plan", _ask_for_plan, build))

    async def _ask_in_turn(self, uid: str, question: "_Question[_Request, _Answer]") -> _Answer:
        """Asks one replica after the other until one answers."""
        self._require_open()
        attempts, failures = Attempts(self._config, time.monotonic), RequestFailures(self._replicas)
        while True:
            order = await self._replicas.order(uid, min(attempts.left, FIRST_ADDRESS))
            attempt = attempts.next(order)
            if attempt is None:
                break
            answer = await self._ask(uid, attempt.replica, attempt.timeout, question)
            if not isinstance(answer, Failed):
                failures.answered(attempt.replica)
                return answer
            failures.failed(attempt.replica, answer)
            failures.check(len(order))
            pause = attempts.pause(order, answer.retry_after)
            if pause is None:
                break
            await asyncio.sleep(pause)
        raise failures.unanswered()

    async def plan_request(self, request: v1.PlanRequest) -> v1.Plan:
        """Asks for a plan with a complete request: all its buckets have their bytes. The client does not send a bucket
        again that has a digest and that the replica has.
        """
        uid = workload_uid(request.snapshot)
        return await self.plan(uid, lambda known: without_known(request, known))

    async def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        """See `PlanService.report`. Each replica is asked once. The caller sends a report that could not be delivered
        with the next plan request.
        """
        return await self._once_each(report.workload.uid, "Report", lambda stub: stub.Report, report)

    async def explain(self, request: v1.ExplainRequest) -> v1.ExplainResponse:
        """Explains, for each node or for one, whether the workload runs there and which rule decides that. All buckets
        of the request are inline. The client does not send a bucket again that has a digest and that the replica has.
        """
        uid = workload_uid(request.snapshot)
        question = _Question("Explain", _ask_for_explanation, lambda known: without_known(request, known))
        return await self._ask_in_turn(uid, question)

    async def simulate(self, request: v1.SimulateRequest) -> AsyncGenerator[v1.SimulateResponse, None]:
        """Plays the rollout of a workload to its end. Yields each step as it comes, and then the end. All buckets of
        the request are inline, as for `explain`. Another replica is asked only while none has sent a step. Closing the
        iterator ends the play. Raises RefusedError if the replica is too old to have the method.
        """
        uid = workload_uid(request.snapshot)
        question = _Question("Simulate", _ask_for_play, lambda known: without_known(request, known), may_be_absent=True)
        play = await self._ask_in_turn(uid, question)
        try:
            yield play.first
            async for response in play.rest:
                yield response
        except grpc.aio.AioRpcError as error:
            reason = f"the play ended early: {messages.of_failure(play.replica, error)}"
            raise UnreachableError(reason, error.code()) from error
        finally:
            play.call.cancel()

    async def evaluate_nodes(self, request: v1.EvaluateNodesRequest) -> v1.EvaluateNodesResponse:
        """Asks which DaemonSets would run on nodes that need not exist, and what their pods request there in sum.
        `nodewise.overhead` builds the request from Kubernetes objects, and reads the response. Each replica is asked
        once. Raises RefusedError if every replica is too old to have the method.
        """
        return await self._once_each("", "EvaluateNodes", lambda stub: stub.EvaluateNodes, request, may_be_absent=True)

    async def capabilities(self) -> v1.GetCapabilitiesResponse:
        """Returns the version, limits and features of a replica."""
        request = v1.GetCapabilitiesRequest()
        return await self._once_each("", "GetCapabilities", lambda stub: stub.GetCapabilities, request)

    async def _once_each(
        self,
        uid: str,
        name: str,
        method: "Callable[[ReconcileServiceAsyncStub], Callable[..., Awaitable[_Answer]]]",
        request: object,
        *,
        may_be_absent: bool = False,
    ) -> _Answer:
        """Asks each replica once until one answers. `may_be_absent` is whether an older version lacks the method."""
        self._require_open()
        attempts, failures = Attempts(self._config, time.monotonic, min_attempts=1), RequestFailures(self._replicas)
        order = await self._replicas.order(uid, min(attempts.left, FIRST_ADDRESS))
        too_old = 0
        while (attempt := attempts.next(order)) is not None:
            with tracing.rpc(name, attempt.replica.address) as rpc:
                answer = await _call(rpc, attempt.replica, method(attempt.replica.stub), request, attempt.timeout)
            if not isinstance(answer, Failed):
                self._replicas.answered(attempt.replica)
                failures.answered(attempt.replica)
                return answer
            if may_be_absent and answer.code is grpc.StatusCode.UNIMPLEMENTED:
                # The replica is healthy, and answers other methods.
                self._replicas.answered(attempt.replica)
                too_old += 1
                if too_old == len(order):
                    raise _too_old(name)
                continue
            note_failure(self._replicas, uid, attempt.replica, answer)
            failures.failed(attempt.replica, answer)
            failures.check(len(order))
        raise failures.unanswered()

    async def _ask(
        self,
        uid: str,
        replica: Replica,
        timeout: float,
        question: "_Question[_Request, _Answer]",
    ) -> _Answer | Failed:
        """Asks one replica, and asks it again if it lacks buckets."""
        with Pieces(self._config.max_piece_bytes, replica.pieces) as pieces:
            return await self._ask_in(pieces, uid, replica, time.monotonic() + timeout, question)

    async def _ask_in(
        self,
        pieces: Pieces,
        uid: str,
        replica: Replica,
        until: float,
        question: "_Question[_Request, _Answer]",
    ) -> _Answer | Failed:
        corrections = 0
        reads = replica.reads_shared_labels
        while True:
            everything = corrections == CORRECTIONS
            known = () if everything else replica.known
            receiver = Receiver(known.__contains__, reads)
            request, piece = question.build(receiver), None
            if receiver.must_be_asked:
                asked = await self._ask_shared_labels(uid, replica, until)
                if isinstance(asked, Failed):
                    return asked
                reads = asked
                if reads:
                    # Build it again, with shared labels.
                    continue
            unplanned = await self._check_needs(uid, replica, request.snapshot, until)
            if unplanned is not None:
                return unplanned
            if not everything:
                request, piece = pieces.cut(request)
            if piece is not None and not pieces.holds_lock:
                try:
                    await pieces.acquire_lock(until - time.monotonic())
                except asyncio.TimeoutError:
                    reason = f"{replica}: another call sends it buckets in pieces"
                    return Failed(grpc.StatusCode.FAILED_PRECONDITION, reason)
                if any(digest in replica.known for digest in piece):
                    # Another call has sent a bucket of this piece meanwhile.
                    continue
            with tracing.rpc(question.name, replica.address) as rpc:
                rpc.asks(request)
                answer = await question.ask(rpc, replica, request, until - time.monotonic())
            nodes, pods = _digests(request.snapshot.node_buckets), _digests(request.snapshot.pod_buckets)
            if question.may_be_absent and isinstance(answer, Failed) and answer.code is grpc.StatusCode.UNIMPLEMENTED:
                # The replica is healthy, and answers other methods.
                self._replicas.answered(replica)
                raise _too_old(question.name)
            if not isinstance(answer, Failed):
                self._replicas.answered(replica)
                replica.known.used(digest for digest in nodes + pods if digest)
                return answer
            lacks_buckets = answer.code is grpc.StatusCode.FAILED_PRECONDITION
            if reads and lacks_buckets and lacks_shared_labels(answer.missing, request.snapshot):
                # An earlier version answers behind the same address.
                replica.may_be_another()
                replica.has_read_shared_labels = False
                reads = False
                continue
            # The replica may lose more buckets while the client sends some, and the response to another workload may
            # wrongly show that it has them. After `CORRECTIONS` attempts the client sends all buckets.
            if not lacks_buckets or everything:
                note_failure(self._replicas, uid, replica, answer)
                return pieces.explain(answer, request.ByteSize()) if everything else answer
            missing = answer.missing
            if missing is None:
                corrections = CORRECTIONS
                continue
            lacks = _at(nodes, missing.node_bucket_indices) + _at(pods, missing.pod_bucket_indices)
            corrections = _corrected(corrections, pieces, piece, len(lacks))
            replica.known.used(piece or ())
            replica.known.forget(lacks)

    async def _check_needs(self, uid: str, replica: Replica, snapshot: v1.Snapshot, until: float) -> Failed | None:
        """Checks that a replica knows what the snapshot needs. Returns None if it does. A replica is asked what it
        knows once after each healthy probe and after each failure.
        """
        needs = Needs.of(snapshot)
        if needs.are_none:
            return None
        known = replica.capabilities
        if known is None:
            answer = await self._ask_capabilities(uid, replica, until)
            if isinstance(answer, Failed):
                return answer
            known = answer
        return needs.lacking(known, replica, snapshot)

    async def _ask_shared_labels(self, uid: str, replica: Replica, until: float) -> bool | Failed:
        """Asks whether a replica reads shared labels. A refusal is no failure: every version reads the other form."""
        asked = await self._ask_capabilities(uid, replica, until, may_be_refused=True)
        if isinstance(asked, Failed):
            return False if asked.code in _REFUSED else asked
        return bool(reads_shared_labels(asked))

    async def _ask_capabilities(
        self, uid: str, replica: Replica, until: float, may_be_refused: bool = False
    ) -> Capabilities | Failed:
        """Asks a replica what it knows. If that may be refused, a refusal is no failure of the replica."""
        asked, incarnation = v1.GetCapabilitiesRequest(), replica.incarnation
        with tracing.rpc("GetCapabilities", replica.address) as rpc:
            answer = await _call(rpc, replica, replica.stub.GetCapabilities, asked, until - time.monotonic())
        if isinstance(answer, Failed):
            if not (may_be_refused and answer.code in _REFUSED):
                note_failure(self._replicas, uid, replica, answer)
            return answer
        self._replicas.answered(replica)
        known = Capabilities.of(answer)
        if incarnation == replica.incarnation:
            replica.capabilities = known
            replica.has_read_shared_labels = bool(reads_shared_labels(known))
        return known

    def _connect(self, address: str) -> Replica:
        targets = [t for t, found in self._found.items() if address in found]
        replica = Replica(
            address,
            self._config.max_message_bytes,
            self._interceptors,
            self._config.credentials,
            # A name wins over an address: certificates are issued for names.
            next((t for t in targets if isinstance(t, target.Dns)), targets[0]),
        )
        self._health[replica] = asyncio.create_task(health.follow_health(self._replicas, replica))
        return replica

    def _replace(self) -> None:
        for gone in self._replicas.replace(address for found in self._found.values() for address in found):
            self._health.pop(gone).cancel()
            closing = asyncio.create_task(gone.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _follow(self, name: target.Dns) -> None:
        async for found in discovery.addresses(name, self._lookup, self._replicas.lookup_requests()):
            if isinstance(found, str):
                self._replicas.not_found(name, found)
            else:
                self._replicas.found(name)
                self._found[name] = found
                self._replace()


class _Question(NamedTuple, Generic[_Request, _Answer]):
    """A call whose request carries a snapshot."""

    name: str
    ask: Callable[[tracing.Rpc, Replica, _Request, float], Awaitable[_Answer | Failed]]
    """Calls the method at a replica, with a timeout in seconds."""
    build: Callable[[Receiver], _Request]
    """Builds the request, see `BuildRequest`."""
    may_be_absent: bool = False
    """Whether an older version lacks the method."""


def _too_old(name: str) -> RefusedError:
    reason = f"the planning service is too old: it does not have the method {name}; upgrade it"
    return RefusedError(reason, grpc.StatusCode.UNIMPLEMENTED)


async def _ask_for_plan(
    rpc: tracing.Rpc, replica: Replica, request: v1.PlanRequest, timeout: float
) -> v1.Plan | Failed:
    answer = await _call(rpc, replica, replica.stub.Plan, request, timeout)
    if isinstance(answer, Failed):
        return answer
    if not answer.HasField("plan"):
        # Another kind of server may listen at the address by now.
        return Failed(grpc.StatusCode.INTERNAL, "an answer without a plan")
    rpc.planned(answer.plan)
    return answer.plan


async def _ask_for_explanation(
    rpc: tracing.Rpc, replica: Replica, request: v1.ExplainRequest, timeout: float
) -> v1.ExplainResponse | Failed:
    return await _call(rpc, replica, replica.stub.Explain, request, timeout)


class _Play(NamedTuple):
    """The responses of a play."""

    replica: Replica
    call: "grpc.aio.UnaryStreamCall[v1.SimulateRequest, v1.SimulateResponse]"
    first: v1.SimulateResponse
    rest: AsyncIterator[v1.SimulateResponse]


async def _ask_for_play(
    rpc: tracing.Rpc, replica: Replica, request: v1.SimulateRequest, timeout: float
) -> _Play | Failed:
    async def begin(asked: object, **options: Any) -> _Play:
        call = replica.stub.Simulate(request, **options)
        responses = call.__aiter__()
        try:
            return _Play(replica, call, await anext(responses), responses)
        except StopAsyncIteration:
            raise grpc.aio.UsageError("an answer without a step and without an end") from None

    return await _call(rpc, replica, begin, request, timeout)


def workload_uid(snapshot: v1.Snapshot) -> str:
    """The uid of the workload of a snapshot. Empty if it cannot be read; the service then rejects the request."""
    from ..objects import Workload

    kind = kind_of(snapshot)
    try:
        return "" if kind is None else Workload.read(kind, object_of(snapshot)).uid
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
        reason = messages.of_failure(replica, error)
        told = [value for key, value in error.trailing_metadata() or () if key == "grpc-status-details-bin"]
        return Failed(error.code(), reason, told[0] if told and isinstance(told[0], bytes) else b"")


def _corrected(corrections: int, pieces: Pieces, piece: Sequence[Digest] | None, lacks: int) -> int:
    """The number of corrections after a replica lacked this many buckets. A piece that was kept is none."""
    if piece is None:
        return corrections + 1
    return corrections if pieces.are_kept(len(piece), lacks) else CORRECTIONS


def _digests(buckets: Iterable[v1.Bucket]) -> list[Digest]:
    return [bucket.digest for bucket in buckets]


def _at(digests: Sequence[Digest], indices: Iterable[int]) -> list[Digest]:
    return [digests[index] for index in indices if index < len(digests)]
