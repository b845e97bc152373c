"""Event handlers: which workloads a change of the caches queues, and which expectations it meets.

Pure functions of the change, of the cached workloads, and of the kind of workload that is asked about.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from . import v1
from .convert import target_node
from .kinds import DAEMON_SET, Key, Kind, PodRules, Resource
from .objects import Owner, Revision, Workload, owner_of
from .store import NodeChange, PodChange, PolicyChange, RevisionChange, Store, Transition, WorkloadChange


class Urgency(enum.IntEnum):
    """The priority of a workload in the queue."""

    NORMAL = 0
    URGENT = 1


@dataclass(frozen=True, slots=True)
class Rules:
    """Deviations that concern event handling."""

    clear_replaced_own_writes: bool = True
    """A replaced workload clears the own-write record of its old uid (Q-2). Upstream clears that of the new one."""
    wake_on_node_delete: bool = True
    """A deleted node queues the DaemonSets (Q-19)."""
    count_repeated_deletions: bool = False
    """Each event of a pod that is being deleted counts as a deletion, as upstream does for DaemonSets (Q-5), not only
    the first.
    """


@dataclass(frozen=True, slots=True)
class Wake:
    """Queue this workload, with a priority, or after a delay in seconds."""

    key: Key
    urgency: Urgency = Urgency.NORMAL
    after: float | None = None


@dataclass(frozen=True, slots=True)
class WakeAll:
    """Queue every workload of the kind. This is one reaction for all of them: a first list of many nodes would make
    millions. A node that became eligible must not wait behind a rollout.
    """

    urgency: Urgency


@dataclass(frozen=True, slots=True)
class ObserveCreate:
    """A pod of the workload, for this target node, was created. The node is empty if pods are for no node."""

    key: Key
    pod_name: str
    node_name: str


@dataclass(frozen=True, slots=True)
class ObserveDeletion:
    """A pod of the workload is gone or being deleted."""

    key: Key
    pod_name: str
    pod_uid: str


@dataclass(frozen=True, slots=True)
class RetireName:
    """A pod of the workload of this uid, for this target node, is gone. No new pod gets its name until another pod of
    the workload is seen on that node. The node is empty if pods are for no node; then only a plan drops the name.
    """

    key: Key
    uid: str
    pod_name: str
    node_name: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop the state of the workload, and its own-write record if that is of this uid."""

    key: Key
    own_writes_of: str


Reaction: TypeAlias = Wake | WakeAll | ObserveCreate | ObserveDeletion | RetireName | Forget


def react(store: Store, transition: Transition, rules: Rules, kind: Kind = DAEMON_SET) -> list[Reaction]:
    """The reactions of workloads of this kind to one change, in order."""
    match transition:
        case WorkloadChange():
            return [*_workload(kind, transition, rules), *_controlled_workload(store, kind, transition)]
        case PodChange(namespace):
            if kind.pods is not None:
                return list(_Pods(store, kind, kind.pods, namespace, rules).changed(transition.old, transition.new))
            return list(_last_pod(store, kind, transition))
        case NodeChange():
            return list(_node(store, kind, transition, rules)) if Resource.NODES in kind.reads else []
        case RevisionChange():
            return list(_revision(store, kind, transition)) if Resource.REVISIONS in kind.reads else []
        case PolicyChange():
            return list(_policy(store, kind, transition)) if Resource.POLICIES in kind.reads else []


def _workload(kind: Kind, change: WorkloadChange, rules: Rules) -> Iterator[Reaction]:
    old, new = change
    any_of_them = new or old
    if any_of_them is None or any_of_them.key.kind != kind.name:
        return
    replaced = old is not None and new is not None and old.uid != new.uid
    if old is not None and (new is None or replaced):
        kept = new.uid if new is not None and not rules.clear_replaced_own_writes else old.uid
        yield Forget(old.key, kept)
    is_new = old is None or replaced
    yield Wake(any_of_them.key, Urgency.URGENT if is_new else Urgency.NORMAL)


def _controlled_workload(store: Store, kind: Kind, change: WorkloadChange) -> Iterator[Reaction]:
    """A workload of the kind that workloads of this kind control changed, such as a ReplicaSet for its Deployment (P-6,
    P-7).
    """
    old, new = change
    any_of_them = new or old
    if kind.controls is None or any_of_them is None or any_of_them.key.kind != kind.controls.name:
        return
    if old is not None and new is not None and (old.uid, old.resource_version) == (new.uid, new.resource_version):
        # A list after a gap, or a resync, has the same object again.
        return
    yield from _controlled(store, kind, old, new)


def _last_pod(store: Store, kind: Kind, change: PodChange) -> Iterator[Reaction]:
    """The last pod of a Deployment with strategy Recreate is gone (P-8). Upstream reads its ReplicaSets from the
    apiserver at this point. Here the cached ones count: if the caches lack a ReplicaSet or its pods, their events will
    follow, and a plan is made from the caches in any case.
    """
    namespace, old, new = change
    if kind.controls is None or old is None or (new is not None and new.uid == old.uid):
        return
    controlled = store.resolve(kind.controls, namespace, _controller(old))
    workload = None if controlled is None else store.resolve(kind, namespace, controlled.controller)
    if workload is None or not workload.recreates:
        return
    others = store.controlled(kind.controls, workload)
    if not any(store.controlled_pods(other) for other in others if workload.selector.selects(other.labels)):
        yield Wake(workload.key)


@dataclass(frozen=True, slots=True)
class _Pods:
    """The reactions to changes of pods of one namespace, for a kind of workload that controls pods."""

    store: Store
    kind: Kind
    of: PodRules
    namespace: str
    rules: Rules

    def changed(self, old: v1.Pod | None, new: v1.Pod | None) -> Iterator[Reaction]:
        counts_repeated = self.rules.count_repeated_deletions and self.of.counts_deletions
        if old is not None and new is not None and old.uid != new.uid:
            # Another pod has that name. Its predecessor was deleted while no watch ran, and an expectation may wait for
            # that.
            yield from self._gone(old)
            yield from self.changed(None, new)
        elif old is not None and old == new and not counts_repeated:
            return
        elif new is not None and new.HasField("deletion_time"):
            yield from self._going(new)
            if self.of.deletes_relabelled and old is not None and list(old.labels) != list(new.labels):
                yield from self._going(old)
        elif new is not None and old is None:
            yield from self._added(new)
        elif new is not None and old is not None:
            yield from self._updated(old, new)
        elif old is not None:
            yield from self._gone(old)

    def _added(self, new: v1.Pod) -> Iterator[Reaction]:
        if not new.HasField("controller"):
            yield from self._wake_matching(new)
            return
        owner = self._owner(new)
        if owner is not None:
            yield ObserveCreate(owner.key, new.name, self._node(new))
            yield Wake(owner.key)

    def _updated(self, old: v1.Pod, new: v1.Pod) -> Iterator[Reaction]:
        yield from _former_owner(self.store, self.kind, self.namespace, _controller(old), _controller(new))
        owner = self._owner(new)
        if owner is not None:
            if _is_restart(old, new) and not (self.of.restarts_matter or self.store.has_policy(owner)):
                return
            yield Wake(owner.key)
            became_ready = old.ready != v1.CONDITION_STATUS_TRUE and new.ready == v1.CONDITION_STATUS_TRUE
            if became_ready and owner.min_ready_seconds > 0:
                yield Wake(owner.key, after=owner.min_ready_seconds + self.of.after_ready)
        elif not new.HasField("controller") and (_labels(old) != _labels(new) or old.HasField("controller")):
            yield from self._wake_matching(new)

    def _going(self, pod: v1.Pod) -> Iterator[Reaction]:
        owner = self._owner(pod)
        if owner is not None:
            yield ObserveDeletion(owner.key, pod.name, pod.uid)
            yield Wake(owner.key)

    def _gone(self, pod: v1.Pod) -> Iterator[Reaction]:
        """While the caches have a pod, the snapshot has its name, and the planner gives that name to no other pod. From
        now on the executor has to send the name.
        """
        yield from self._going(pod)
        owner = self._owner(pod)
        if owner is not None:
            yield RetireName(owner.key, owner.uid, pod.name, self._node(pod))

    def _owner(self, pod: v1.Pod) -> Workload | None:
        return self.store.resolve(self.kind, self.namespace, _controller(pod))

    def _node(self, pod: v1.Pod) -> str:
        """The node that expectations and used names of the pod belong to. Empty if pods are for no node."""
        return target_node(pod) if self.of.per_node else ""

    def _wake_matching(self, orphan: v1.Pod) -> Iterator[Reaction]:
        yield from _wake_matching(self.store, self.kind, self.namespace, _labels(orphan))


def _revision(store: Store, kind: Kind, change: RevisionChange) -> Iterator[Reaction]:
    # The executor itself creates the revisions that come together with their controller.
    yield from _controlled(store, kind, change.old, change.new, ignores_new=True)


def _controlled(
    store: Store,
    kind: Kind,
    old: Revision | Workload | None,
    new: Revision | Workload | None,
    *,
    ignores_new: bool = False,
) -> Iterator[Reaction]:
    """An object, other than a pod, changed that workloads of this kind control or may adopt. `ignores_new`: an object
    that came together with its controller is no news.
    """
    if old is not None and new is not None:
        yield from _former_owner(store, kind, new.namespace, old.controller, new.controller)
        owner = store.resolve(kind, new.namespace, new.controller)
        if owner is not None:
            yield Wake(owner.key)
        elif new.controller is None and (old.labels != new.labels or old.controller is not None):
            yield from _wake_matching(store, kind, new.namespace, new.labels)
    elif new is not None and not new.deleting and new.controller is None:
        yield from _wake_matching(store, kind, new.namespace, new.labels)
    elif new is None or new.deleting or not ignores_new:
        gone = new or old
        owner = store.resolve(kind, gone.namespace, gone.controller) if gone else None
        if owner is not None:
            yield Wake(owner.key)


def _policy(store: Store, kind: Kind, change: PolicyChange) -> Iterator[Reaction]:
    """A policy queues the workloads that it targets, and those that it targeted before. Also after a status that this
    executor wrote: the plan that follows has nothing to write.
    """
    sides = (policy for policy in change if policy is not None)
    yield from _wake_each(workload for policy in sides for workload in store.targets(kind, policy))


def _wake_each(workloads: Iterable[Workload]) -> Iterator[Reaction]:
    """Queues workloads, each once, in order."""
    for key in sorted({workload.key for workload in workloads}):
        yield Wake(key)


def _node(store: Store, kind: Kind, change: NodeChange, rules: Rules) -> Iterator[Reaction]:
    """A node change queues every DaemonSet. The service decides which of them it concerns. Upstream queues fewer
    (D-105). The extra cost is a plan without actions. What only rollouts with a policy read of a node (L-20 to L-23)
    queues only the DaemonSets that have one.
    """
    old, new = change
    if new is None:
        if rules.wake_on_node_delete:
            yield WakeAll(Urgency.NORMAL)
    elif old is None or list(old.labels) != list(new.labels) or list(old.taints) != list(new.taints):
        yield WakeAll(Urgency.URGENT)
    elif _read_by_policies(old) != _read_by_policies(new):
        yield from _wake_each(store.with_policies(kind))


def _read_by_policies(node: v1.Node) -> tuple[object, ...]:
    since = node.ready_transition_time
    return node.ready, since.seconds, since.nanos, node.unschedulable, node.maintenance_in_progress


def _is_restart(old: v1.Pod, new: v1.Pod) -> bool:
    """Whether nothing has changed but the number of restarts."""
    if old.restarts == new.restarts:
        return False
    before = v1.Pod()
    before.CopyFrom(old)
    before.restarts = new.restarts
    return before == new


def _former_owner(store: Store, kind: Kind, namespace: str, old: Owner | None, new: Owner | None) -> Iterator[Reaction]:
    former = store.resolve(kind, namespace, old) if old != new else None
    if former is not None:
        yield Wake(former.key)


def _wake_matching(store: Store, kind: Kind, namespace: str, labels: Mapping[str, str]) -> Iterator[Reaction]:
    matching = store.matching(kind, namespace, labels)
    if len(matching) > 1:
        store.overlaps.log([workload.key for workload in matching])
    for workload in matching:
        yield Wake(workload.key)


def _controller(pod: v1.Pod) -> Owner | None:
    return owner_of(pod.controller) if pod.HasField("controller") else None


def _labels(pod: v1.Pod) -> dict[str, str]:
    return {label.key: label.value for label in pod.labels}
