"""The results of a reconcile."""

from dataclasses import dataclass
from typing import TypeAlias

import grpc

from ..gate import Behind, Relisting


@dataclass(frozen=True, slots=True)
class Settled:
    """Success. The queue forgets the workload's failures."""

    after: float | None = None
    """Reconcile again after this time, in seconds. None: not before an event."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An action, the plan or the report failed. The queue backs off for this workload."""

    reason: str
    """What failed."""
    after: float | None = None
    """Reconcile again after this time, in seconds, if that is earlier than the back-off."""
    http_status: int = 0
    """The HTTP status of the apiserver's response, such as 403, to the first action that failed, or to a read that the
    check of the plan needs. 0 if there was no response, or if something else failed.
    """
    code: grpc.StatusCode | None = None
    """The gRPC status of the service's response, if the plan request or the report failed."""
    conflict: bool = False
    """Somebody else changed a RolloutPolicy since the snapshot, so its status was not written, and nothing that depends
    on it was done. The plan that follows has the newer policy. This is no failure of the workload.
    """
    refused: bool = False
    """The service refused the request, or its plan was refused, and nothing was written. The workload is retried as
    often as it takes, because the service may be mended.
    """


@dataclass(frozen=True, slots=True)
class Waiting:
    """The caches do not show the executor's last write yet, or are being listed again after a restore of etcd. The
    workload is reconciled when they are up to date.
    """

    behind: Behind | Relisting


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The service could not be reached. Nothing was written. This is not a failure of the workload."""

    reason: str
    code: grpc.StatusCode | None = None
    """The gRPC status of the last replica that was asked; None if no replica was asked."""


Ending: TypeAlias = Settled | Failed | Waiting | Unreachable
"""The result of a reconcile."""


class StoppedError(Exception):
    """The executor is stopping, and the reconcile ended before it had a plan."""


class ReconcileEndedError(Exception):
    """Ends the reconcile with this result."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
