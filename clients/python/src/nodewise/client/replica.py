"""One replica of the service: its connection, how it stands, and which buckets it is believed to have."""

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
from .target import Dns, Fixed

if TYPE_CHECKING:
    from ..v1.reconcile_service_pb2_grpc import ReconcileServiceAsyncStub

EVICTION = 0.5
"""How long, in seconds, a replica that failed a call is left alone before it is probed; doubles each time that it fails
again before it has answered one.
"""
MAX_EVICTION = 30.0
"""The longest of these."""
GENERATION = 1 << 16
"""Digests of a generation, of which there are two: so many that were used last are remembered for certain."""

_KEEPALIVE = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    # One that comes back is there at once, not after the minutes that gRPC would come to wait.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # In spite of its name: how long an attempt to connect may take at least.
    ("grpc.min_reconnect_backoff_ms", 3_000),
    # An address is a replica. A proxy would choose another one.
    ("grpc.enable_http_proxy", 0),
)


class Standing(enum.IntEnum):
    """How a replica stands."""

    UNKNOWN = 0
    """Nobody asked it yet."""
    READY = 1
    """It serves."""
    EVICTED = 2
    """It did not answer."""
    DRAINING = 3
    """It is about to end, and refuses new calls."""

    @property
    def rank(self) -> int:
        """Who is asked first: the least. One that drains refuses for certain, one that is evicted perhaps."""
        return {Standing.EVICTED: 1, Standing.DRAINING: 2}.get(self, 0)


class _Known:
    """The buckets that a replica is believed to have: those used last."""

    def __init__(self) -> None:
        self._recent: set[Digest] = set()
        self._older: set[Digest] = set()
        """Dropped when there are enough recent ones."""

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
    """A replica. Connects when it is first used."""

    def __init__(
        self,
        address: str,
        max_message_bytes: int,
        interceptors: Iterable[grpc.aio.ClientInterceptor] = (),
        credentials: grpc.ChannelCredentials | None = None,
        target: Fixed | Dns | None = None,
    ) -> None:
        """With credentials, a replica of a `dns:///` target needs a certificate for the name in the target, any other
        one for its address.
        """
        self.address = address
        self.target = target
        """What was written to find it."""
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
        self.standing = Standing.UNKNOWN
        self.reason = ""
        """Why it is asked last; it begins with the address."""
        self.known = _Known()
        self.pieces = asyncio.Lock()
        """Held by the call that sends it pieces."""
        self.call_failed = asyncio.Event()
        """Set by each failed call. Whoever follows its health clears it before."""
        self.is_closed = False
        """Nobody can be asked here any more."""
        self._calls = 0
        """How many are under way."""
        self._idle = asyncio.Event()
        """Set when none is."""
        self._idle.set()
        self._evictions = 0
        """How often it was evicted for a failed call since it last answered one."""
        self._evicted_at = 0.0
        """When that was the last time."""
        self._failing: str | None = None
        """The uid of the workload whose call has failed, if none was answered since. It may be the workload."""

    def __str__(self) -> str:
        return self.address

    async def close(self) -> None:
        """It is a replica no more. Calls under way go on: each has a deadline. To close the channel before would cancel
        whoever waits for one.
        """
        while self._calls:
            # Another one may have begun between the end of the last and this.
            await self._idle.wait()
        self.is_closed = True
        await self._channel.close()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """A call is under way."""
        self._calls += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    def answered(self) -> None:
        """It answered a call. One that drains finishes what it has."""
        self._evictions, self._failing = 0, None
        if self.standing is not Standing.DRAINING:
            self.standing = Standing.READY

    def failed(self, reason: str) -> bool:
        """A call failed. Whether that evicts it just now."""
        self.call_failed.set()
        if self.standing is Standing.DRAINING:
            return False
        evicts = self.evict(reason)
        if evicts:
            self._evictions += 1
            self._evicted_at = time.monotonic()
        return evicts

    def fails_another(self, uid: str) -> bool:
        """A call for this workload failed. Whether one for another did before, and none was answered in between."""
        before, self._failing = self._failing, uid
        return before is not None and before != uid

    def serves(self) -> None:
        """A probe was answered."""
        self.standing = Standing.READY

    def drains(self) -> bool:
        """It said that it serves no longer. Whether it could be asked until now."""
        before, self.standing = self.standing, Standing.DRAINING
        self.reason = f"{self}: it is draining"
        return before.rank == 0

    def evict(self, reason: str) -> bool:
        """It cannot be reached. Whether it could be asked until now."""
        before, self.standing = self.standing, Standing.EVICTED
        self.reason = reason
        return before.rank == 0

    @property
    def rest(self) -> float:
        """How long it is still to be left alone because of failed calls, in seconds."""
        if not self._evictions:
            return 0.0
        rest = min(EVICTION * 2.0 ** min(self._evictions - 1, 16), MAX_EVICTION)
        return max(self._evicted_at + rest - time.monotonic(), 0.0)
