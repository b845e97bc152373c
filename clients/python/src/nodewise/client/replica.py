"""One replica of the service: its connection, its status, and the buckets that it is believed to have."""

import asyncio
import enum
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2_grpc

from ..buckets import Digest
from ..v1.reconcile_service_pb2_grpc import ReconcileServiceStub
from .capabilities import Capabilities
from .shared_labels import reads_shared_labels
from .target import Dns, Fixed

if TYPE_CHECKING:
    from ..v1.reconcile_service_pb2_grpc import ReconcileServiceAsyncStub

EVICTION = 0.5
"""How long, in seconds, a replica is not probed after a failed call. Doubles with each further failure until a call
succeeds.
"""
MAX_EVICTION = 30.0
"""The longest such time, in seconds."""
GENERATION = 1 << 16
"""The number of digests in a generation. There are two generations, so at least this many of the last used digests are
remembered.
"""

_KEEPALIVE = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    # gRPC would wait up to minutes before it reconnects to a replica that returns.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # Despite its name, this is the minimum timeout of a connection attempt.
    ("grpc.min_reconnect_backoff_ms", 3_000),
    # An address stands for one replica. A proxy would choose another one.
    ("grpc.enable_http_proxy", 0),
)


class ReplicaStatus(enum.IntEnum):
    """The status of a replica."""

    UNKNOWN = 0
    """It was not asked yet."""
    READY = 1
    """It serves."""
    EVICTED = 2
    """It did not answer."""
    DRAINING = 3
    """It is shutting down, and refuses new calls."""

    @property
    def rank(self) -> int:
        """The order in which replicas are asked, lowest first. A draining replica certainly refuses, an evicted one
        perhaps.
        """
        return {ReplicaStatus.EVICTED: 1, ReplicaStatus.DRAINING: 2}.get(self, 0)


class _Known:
    """The buckets that a replica is believed to have: those that were used last."""

    def __init__(self) -> None:
        self._recent: set[Digest] = set()
        self._older: set[Digest] = set()
        """The previous generation. It is dropped when the recent one is full."""

    def __contains__(self, digest: object) -> bool:
        return digest in self._recent or digest in self._older

    def used(self, digests: Iterable[Digest]) -> None:
        self._recent.update(digests)
        if len(self._recent) > GENERATION:
            self._older, self._recent = self._recent, set()

    def forget(self, digests: Iterable[Digest]) -> None:
        lost = set(digests)
        self._recent -= lost
        self._older -= lost


class Replica:
    """A replica. It connects on first use."""

    def __init__(
        self,
        address: str,
        max_message_bytes: int,
        interceptors: Iterable[grpc.aio.ClientInterceptor] = (),
        credentials: grpc.ChannelCredentials | None = None,
        target: Fixed | Dns | None = None,
    ) -> None:
        """With credentials, the certificate of a `dns:///` replica must be for the name in the target, any other one
        for the replica's address.
        """
        self.address = address
        self.target = target
        """The target through which the replica was found."""
        self.is_secure = credentials is not None
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.max_send_message_length", -1),
            *_KEEPALIVE,
        ]
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(address, options=options, interceptors=list(interceptors))
        else:
            if isinstance(target, Dns):
                options.append(("grpc.default_authority", target.authority))
            self._channel = grpc.aio.secure_channel(
                address, credentials, options=options, interceptors=list(interceptors)
            )
        self.stub = cast("ReconcileServiceAsyncStub", ReconcileServiceStub(self._channel))
        self.health: Any = health_pb2_grpc.HealthStub(self._channel)
        self.status = ReplicaStatus.UNKNOWN
        self.reason = ""
        """Why the replica is asked last. Begins with its address."""
        self.known = _Known()
        self.pieces = asyncio.Lock()
        """Held by the call that sends pieces to the replica."""
        self.call_failed = asyncio.Event()
        """Set by each failed call. The health follower clears it before it starts."""
        self.is_closed = False
        """The channel is closed."""
        self.capabilities: Capabilities | None = None
        """What the replica knows. None if it was not asked since the last healthy probe, or has failed since."""
        self.has_read_shared_labels = False
        """Whether it said last that it reads shared labels. A probe does not change that: a version that does not read
        them says so when it gets them.
        """
        self.incarnation = 0
        """How often another version may have begun to run at the address."""
        self._calls = 0
        """The number of calls under way."""
        self._idle = asyncio.Event()
        """Set while no call is under way."""
        self._idle.set()
        self._evictions = 0
        """The number of evictions since the last successful call."""
        self._evicted_at = 0.0
        """The time of the last eviction, by the monotonic clock."""
        self._failing: str | None = None
        """The uid of the workload of the last failed call, if no call succeeded since. The cause may be that workload.
        """

    def __str__(self) -> str:
        return self.address

    async def close(self) -> None:
        """Closes the channel when no call is under way. Each call has a deadline. Closing the channel earlier would
        cancel calls that are waiting for a connection.
        """
        while self._calls:
            # Another call may have begun after the last one ended.
            await self._idle.wait()
        self.is_closed = True
        await self._channel.close()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Counts a call as under way."""
        self._calls += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    def answered(self) -> None:
        """Records a successful call. A draining replica still finishes its calls."""
        self._evictions, self._failing = 0, None
        if self.status is not ReplicaStatus.DRAINING:
            self.status = ReplicaStatus.READY

    def failed(self, reason: str) -> bool:
        """Records a failed call. Returns whether that evicted the replica just now."""
        self.call_failed.set()
        if self.status is ReplicaStatus.DRAINING:
            return False
        evicts = self.evict(reason)
        if evicts:
            self._evictions += 1
            self._evicted_at = time.monotonic()
        return evicts

    def fails_another(self, uid: str) -> bool:
        """Records a failed call of this workload. Returns whether a call of another workload failed before, with no
        success in between.
        """
        before, self._failing = self._failing, uid
        return before is not None and before != uid

    def serves(self) -> None:
        """Records that the replica reported SERVING."""
        self.status = ReplicaStatus.READY
        self.may_be_another()

    @property
    def reads_shared_labels(self) -> bool | None:
        """Whether the replica reads shared labels; None if it has to be asked."""
        return True if self.has_read_shared_labels else reads_shared_labels(self.capabilities)

    def may_be_another(self) -> None:
        """Records that another version may listen at the address by now."""
        self.capabilities = None
        self.incarnation += 1

    def drains(self) -> bool:
        """Records that the replica is draining. Returns whether it could be asked until now."""
        before, self.status = self.status, ReplicaStatus.DRAINING
        self.reason = f"{self}: it is draining"
        return before.rank == 0

    def evict(self, reason: str) -> bool:
        """Evicts the replica. Returns whether it could be asked until now."""
        before, self.status = self.status, ReplicaStatus.EVICTED
        self.reason = reason
        self.may_be_another()
        return before.rank == 0

    @property
    def eviction_left(self) -> float:
        """How long the replica is still not probed because of failed calls, in seconds."""
        if not self._evictions:
            return 0.0
        rest = min(EVICTION * 2.0 ** min(self._evictions - 1, 16), MAX_EVICTION)
        return max(self._evicted_at + rest - time.monotonic(), 0.0)
