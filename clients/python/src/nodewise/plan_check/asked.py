"""The request that a plan answers, and the caches, as the check reads them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .. import v1
from ..kinds import Key, Kind, Resource
from ..objects import Revision, Workload
from ..options import DEFAULT_BURST
from ..policies import RolloutPolicy
from ..sanitize import one_line
from ..store import LivePods


class Caches(Protocol):
    """The caches as the check reads them."""

    def pod(self, namespace: str, name: str) -> v1.Pod | None:
        """The pod of this name."""

    def revision(self, namespace: str, name: str) -> Revision | None:
        """The revision of this name."""

    def workload(self, key: Key) -> Workload | None:
        """The workload of this key."""

    def revisions(self, workload: Workload) -> list[Revision]:
        """The revisions that a workload controls, and orphans that it selects."""

    def claimable(self, kind: Kind, workload: Workload) -> list[Workload]:
        """The workloads of a kind that a workload controls, and those without a controller in its namespace, ordered by
        name.
        """

    def has_node(self, name: str) -> bool:
        """Whether there is a node of this name."""

    def live_pods(self, workload: Workload, nodes: Collection[str]) -> dict[str, LivePods]:
        """The existing ones of these nodes, with the workload's live pods on or targeting each: pods that it controls
        and selects, and that have not finished and are not being deleted.
        """

    def live_pods_beyond(self, workload: Workload, most: int) -> LivePods | None:
        """The workload's live pods, if it has more than `most` pods in any state."""

    def changed(self, resource: Resource, namespace: str, name: str) -> int:
        """The number of the last change of a pod, revision or workload. For a node, or an object that is not in the
        caches: of the last removal of any object of the resource.
        """

    def revisions_changed(self, namespace: str) -> int:
        """The number of the last change or removal of any revision of a namespace."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request that the plan answers."""

    workload: Workload
    """The workload in the snapshot."""
    scope: v1.Scope.ValueType = v1.SCOPE_UNSPECIFIED
    """The scope that was requested."""
    live: Sequence[Revision] = ()
    """Revisions of the snapshot that were read live."""
    as_of: int = 0
    """The number of the last cache change in the snapshot."""
    sent: v1.ReconcileState = field(default_factory=v1.ReconcileState)
    """The state in the request."""
    deletes_with_uid: bool = True
    """Whether the options require the pod's uid as a precondition of every delete."""
    burst: int = DEFAULT_BURST
    """Most creates, and separately most deletes, of pods."""
    decides_after_cut: bool = True
    """Whether failed pods beyond the burst are left to later plans, so that they cause no Events in this one, as the
    options say.
    """
    unseen_creates: Sequence[str] = ()
    """The names of the pods that were created for the workload and that the caches do not show yet."""
    policies: Sequence[RolloutPolicy] = ()
    """The RolloutPolicies of the snapshot."""

    @property
    def kind(self) -> Kind:
        """The kind of the workload."""
        return self.workload.kind

    @property
    def controls(self) -> Kind:
        """The kind of the workloads that the workload controls; its own kind if there is none."""
        return self.kind.controls or self.kind

    @property
    def per_node(self) -> bool:
        """Whether each pod of the workload is for one node."""
        return self.kind.pods is not None and self.kind.pods.per_node

    @property
    def has_policies(self) -> bool:
        """Whether RolloutPolicies may target workloads of its kind."""
        return Resource.POLICIES in self.kind.reads

    def is_workload(self, reference: v1.ObjectReference) -> bool:
        """Whether this is the workload."""
        return (reference.uid, reference.name) == (self.workload.uid, self.workload.key.name)


class ViolationError(Exception):
    """The plan must not be applied."""

    def __init__(self, what: str, action: v1.Action | None = None) -> None:
        """`action` is the wrong action; None if the plan as a whole is wrong."""
        self.what = one_line(what)
        of = "" if action is None else f"action {action.id} ({name_of(action)}): "
        super().__init__(f"the plan is refused and nothing of it is written: {of}{self.what}")


class UnclearError(Exception):
    """The plan cannot be checked now."""

    def __init__(self, message: str, http_status: int = 0) -> None:
        """`http_status` is the status of the apiserver's response to a read; 0 if there is none."""
        super().__init__(message)
        self.http_status = http_status


def name_of(action: v1.Action) -> str:
    """The name of the kind of an action, such as `CreatePod`."""
    kind = action.WhichOneof("kind")
    return "unknown" if kind is None else type(getattr(action, kind)).__name__
