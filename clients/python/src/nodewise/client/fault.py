"""Decides what a failed call says about the replica and about the request.

A request that fails at every replica must not evict the replicas for other workloads. A program that is not a replica
must not cause a request to be refused.
"""

import enum
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from .. import times, v1
from .errors import FieldViolation, RefusedError, ServiceError, UnreachableError
from .replica import Replica
from .replicas import Replicas

MAX_SUSPECTS = 2
"""The number of replicas at which a request may fail for an unclear reason before the client gives up. Also the number
of replicas that must find a request too large.
"""


class Fault(enum.Enum):
    """The cause of the failure."""

    REQUEST = enum.auto()
    """The request is invalid for every replica."""
    SIZE = enum.auto()
    """The request, or its response, is too large for this replica. Another replica may have a higher limit."""
    OUTDATED = enum.auto()
    """The replica works, and its version does not know a feature that the request needs. It was not sent the request.
    """
    TRANSIENT = enum.auto()
    """The replica works and cannot take the request now: it is saturated, or loses buckets while they are sent."""
    REPLICA = enum.auto()
    """The replica or the connection: nothing listens there, or another program does."""
    UNCLEAR = enum.auto()
    """The replica. If the call fails at other replicas, too: the request."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that failed."""

    code: grpc.StatusCode
    reason: str
    details: bytes = b""
    """The serialized google.rpc.Status from `grpc-status-details-bin`."""
    lacks: str | None = None
    """The feature that the request needs and the replica does not know."""

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the replica asks to be called again."""
        info = error_details_pb2.RetryInfo()
        return times.seconds(info.retry_delay) if self._unpack(info) else None

    @property
    def missing(self) -> v1.MissingBuckets | None:
        """The buckets that the replica lacks."""
        missing = v1.MissingBuckets()
        return missing if self._unpack(missing) else None

    @property
    def violations(self) -> list[FieldViolation]:
        """The fields of the request that the replica rejected."""
        rejected = error_details_pb2.BadRequest()
        self._unpack(rejected)
        return [FieldViolation(found.field, found.description) for found in rejected.field_violations]

    @property
    def fault(self) -> Fault:
        """The cause of the failure."""
        if self.lacks is not None:
            return Fault.OUTDATED
        match self.code:
            case grpc.StatusCode.INVALID_ARGUMENT:
                return Fault.REQUEST
            case grpc.StatusCode.RESOURCE_EXHAUSTED:
                return Fault.SIZE if self.retry_after is None else Fault.TRANSIENT
            case grpc.StatusCode.OUT_OF_RANGE:
                return Fault.SIZE
            case grpc.StatusCode.FAILED_PRECONDITION:
                return Fault.TRANSIENT
            # A replica never returns the last three. Another server at its address does, or a proxy that answers HTTP
            # 404, 403 or 401.
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
    """Updates the status of a replica after a failed call, as far as the cause is certain."""
    match failed.fault:
        case Fault.REQUEST | Fault.SIZE | Fault.OUTDATED | Fault.TRANSIENT:
            # The replica answered. An overloaded replica has not failed, and its load would not fall if its workloads
            # moved to replicas with cold caches.
            replicas.answered(replica)
        case Fault.REPLICA:
            replicas.failed(replica, failed.reason)
        case Fault.UNCLEAR:
            if replica.fails_another(uid):
                replicas.failed(replica, failed.reason)


class RequestFailures:
    """The failures of one request, over all replicas that were asked."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._suspects: dict[Replica, str] = {}
        self._too_large = 0
        self._outdated: set[Replica] = set()
        self.last: Failed | None = None

    def failed(self, replica: Replica, failed: Failed) -> None:
        """Records that a replica failed."""
        self._too_large += failed.fault is Fault.SIZE
        if failed.fault is Fault.OUTDATED:
            self._outdated.add(replica)
        if failed.fault is Fault.UNCLEAR:
            self._suspects.setdefault(replica, failed.reason)
        self.last = failed

    def answered(self, by: Replica) -> None:
        """Records that a replica answered. The request is therefore valid, and the earlier failures count against their
        replicas.
        """
        for suspect, reason in self._suspects.items():
            if suspect is not by:
                self._replicas.failed(suspect, reason)

    def check(self, replicas: int) -> None:
        """Raises an error if asking another replica is useless. `replicas` is their number."""
        if self.last is None:
            return
        too_large = self._too_large >= min(MAX_SUSPECTS, max(replicas, 1))
        if self.last.fault is Fault.REQUEST or too_large:
            raise RefusedError(
                f"the planning service refused the request: {self.last.reason}", self.last.code, self.last.violations
            )
        if self.last.fault is Fault.OUTDATED and len(self._outdated) >= max(replicas, 1):
            raise self.unanswered()
        if len(self._suspects) >= MAX_SUSPECTS:
            raise self.unanswered()

    def unanswered(self) -> ServiceError:
        """The error for a call that no replica answered, with the last failure."""
        if self.last is not None and self.last.lacks is not None:
            reason = f"the planning service is too old: {self.last.reason}"
            return RefusedError(reason, self.last.code, lacks=self.last.lacks)
        if self.last is None:
            return UnreachableError(self._replicas.health() or "no replica of the planning service was asked in time")
        return UnreachableError(f"no replica of the planning service answered: {self.last.reason}", self.last.code)
