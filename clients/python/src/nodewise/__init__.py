"""A client of the Nodewise planning service, and a complete controller of DaemonSets, ReplicaSets and Deployments on
top of it.

* `nodewise.v1`: the messages of the protocol.
* `nodewise.convert`: converts Kubernetes objects to these messages.
* `PlanClient`: calls replicas of the service, on asyncio. `nodewise.sync.PlanClient` does so without asyncio.
* `nodewise.overhead`: which DaemonSets would run on nodes that need not exist, and what they request.
* `nodewise.Reconciler` (needs `nodewise[kube]`): snapshot, plan, apply, report. `nodewise.sync.Reconciler` does so
  without asyncio.
* `PlanService`, `Actuator` and `Measurer`: the interfaces through which a reconciler asks for plans, writes, and makes
  measurements for RolloutPolicies, for programs that bring their own.

"""

from typing import TYPE_CHECKING, Any

from . import convert, overhead, sync, v1
from .actuator import Actuator, ActuatorError, Blocked
from .buckets import node_buckets, pod_buckets
from .client import ClientConfig, FieldViolation, PlanClient, PlanService, RefusedError, ServiceError, UnreachableError
from .convert import ConversionError
from .errors import BrokenError, EndedError
from .execute import Ending, Failed, Settled, Unreachable, Waiting
from .kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, Kind
from .measurements import Measurer, Subject
from .snapshot import snapshot_of

if TYPE_CHECKING:
    from .kube import KubeClient
    from .reconciler import Config, Reconciler

__all__ = [
    "DAEMON_SET",
    "DEPLOYMENT",
    "REPLICA_SET",
    "Actuator",
    "ActuatorError",
    "Blocked",
    "BrokenError",
    "ClientConfig",
    "Config",
    "ConversionError",
    "EndedError",
    "Ending",
    "Failed",
    "FieldViolation",
    "Kind",
    "KubeClient",
    "Measurer",
    "PlanClient",
    "PlanService",
    "Reconciler",
    "RefusedError",
    "ServiceError",
    "Settled",
    "Subject",
    "Unreachable",
    "UnreachableError",
    "Waiting",
    "convert",
    "node_buckets",
    "overhead",
    "pod_buckets",
    "snapshot_of",
    "sync",
    "v1",
]


def __getattr__(name: str) -> Any:
    """Imports the names that need `nodewise[kube]` when they are first used."""
    if name in ("Config", "Reconciler"):
        from . import reconciler

        return getattr(reconciler, name)
    if name == "KubeClient":
        from .kube import KubeClient

        return KubeClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
