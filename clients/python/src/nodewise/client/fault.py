"""What a failed call says: of the replica, of the request, or of neither.

A request that fails everywhere must not cost the other workloads their replicas, and what listens where a replica was
must not pass judgement on a request.
"""

import enum
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from .. import times, v1
from .errors import RefusedError, UnreachableError
from .replica import Replica
from .replicas import Replicas

OPINIONS = 2
"""How many replicas a request may fail at, when it may be the request that fails, and how many have to find it too
large.
"""


class Fault(enum.Enum):
    """Where the fault lies."""

    REQUEST = enum.auto()
    """The request is wrong, whoever is asked."""
    SIZE = enum.auto()
    """The request, or its answer, is too large for this replica; another may be set up to take more."""
    MOMENT = enum.auto()
    """The replica is well, and cannot take this now: it is saturated, or loses buckets while they are sent."""
    REPLICA = enum.auto()
    """The replica, or the way to it: nobody is there, or somebody who is no replica."""
    UNCLEAR = enum.auto()
    """The replica, or the request, if it fails at others, too."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that failed."""

    code: grpc.StatusCode
    reason: str
    details: bytes = b""
    """The google.rpc.Status of `grpc-status-details-bin`."""

    @property
    def retry_after(self) -> float | None:
        """When the replica asked to come back, in seconds."""
        info = error_details_pb2.RetryInfo()
        return times.seconds(info.retry_delay) if self._unpack(info) else None

    @property
    def missing(self) -> v1.MissingBuckets | None:
        """The buckets that the replica lacks."""
        missing = v1.MissingBuckets()
        return missing if self._unpack(missing) else None

    @property
    def fault(self) -> Fault:
        """Where the fault lies."""
        match self.code:
            case grpc.StatusCode.INVALID_ARGUMENT:
                return Fault.REQUEST
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return Fault.SIZE if self.retry_after is None else Fault.MOMENT
            case grpc.StatusCode.OUT_OF_RANGE:
                return Fault.SIZE
            case grpc.StatusCode.FAILED_PRECONDITION:
                return Fault.MOMENT
            # No replica says the last three. A server that has taken over the address of one does, or a proxy: as
            # HTTP's 404, 403 and 401.
            case (
                grpc.StatusCode.UNAVAILABLE
                | grpc.StatusCode.UNIMPLEMENTED
                | grpc.StatusCode.PERMISSION_DENIED
                | grpc.StatusCode.UNAUTHENTICATED
            ):
                return Fault.REPLICA
        return Fault.UNCLEAR

    def _unpack(self, message: Message) -> bool:
        status = status_pb2.Status()
        try:
            status.ParseFromString(self.details)
            return any(detail.Unpack(message) for detail in status.details)
        except DecodeError:
            return False


def note_failure(replicas: Replicas, uid: str, replica: Replica, failed: Failed) -> None:
    """Draws the consequences that are certain by now."""
    match failed.fault:
        case Fault.REQUEST | Fault.SIZE | Fault.MOMENT:
            # An answer all the same: it is there. One that has too much to do has not failed, and would not have less
            # to do if all of its workloads went elsewhere with cold caches.
            replicas.answered(replica)
        case Fault.REPLICA:
            replicas.failed(replica, failed.reason)
        case Fault.UNCLEAR:
            if replica.fails_another(uid):
                replicas.failed(replica, failed.reason)


class Opinions:
    """What the replicas that were asked have said to one request."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._suspects: dict[Replica, str] = {}
        self._too_large = 0
        self.last: Failed | None = None

    def failed(self, replica: Replica, failed: Failed) -> None:
        """A replica failed."""
        self._too_large += failed.fault is Fault.SIZE
        if failed.fault is Fault.UNCLEAR:
            self._suspects.setdefault(replica, failed.reason)
        self.last = failed

    def answered(self, by: Replica) -> None:
        """A replica answered: the fault is not the request's, but of those that failed before."""
        for suspect, reason in self._suspects.items():
            if suspect is not by:
                self._replicas.failed(suspect, reason)

    def check(self, replicas: int) -> None:
        """Whether it is of use to ask on, when there are so many replicas: an error says why not."""
        if self.last is None:
            return
        too_large = self._too_large >= min(OPINIONS, max(replicas, 1))
        if self.last.fault is Fault.REQUEST or too_large:
            raise RefusedError(f"the planning service refused the request: {self.last.reason}", self.last.code)
        if len(self._suspects) >= OPINIONS:
            raise self.unreachable()

    def unreachable(self) -> UnreachableError:
        """The error that says that no replica has answered, and why the last one that was asked did not."""
        if self.last is None:
            return UnreachableError(self._replicas.health() or "no replica of the planning service was asked in time")
        return UnreachableError(f"no replica of the planning service answered: {self.last.reason}", self.last.code)
