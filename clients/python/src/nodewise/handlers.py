"""Event handlers: which workloads a change of the caches queues, and which expectations it meets.

Pure functions of the change and of the known DaemonSets.
"""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from . import v1
from .convert import target_node
from .kinds import Key
from .objects import Owner, Revision, owner_of
from .store import DaemonSetChange, NodeChange, PodChange, RevisionChange, Store, Transition


class Urgency(enum.IntEnum):
    """The priority of a workload in the queue."""

    NORMAL = 0
    URGENT = 1


@dataclass(frozen=True, slots=True)
class Rules:
    """Deviations that concern event handling."""

    clear_replaced_own_writes: bool = True
    """A replaced DaemonSet clears the own-write record of its old uid (Q-2). Upstream clears that of the new one."""
    wake_on_node_delete: bool = True
    """A deleted node queues the DaemonSets (Q-19)."""
    count_repeated_deletions: bool = False
    """Each event of a pod that is being deleted counts as a deletion, as upstream does (Q-5), not only the first."""


@dataclass(frozen=True, slots=True)
class Wake:
    """Queue this workload, with a priority, or after a delay in seconds."""

    key: Key
    urgency: Urgency = Urgency.NORMAL
    after: float | None = None


@dataclass(frozen=True, slots=True)
class WakeAll:
    """Queue every workload. This is one reaction for all of them: a first list of many nodes would make millions. A
    node that became eligible must not wait behind a rollout.
    """

    urgency: Urgency


@dataclass(frozen=True, slots=True)
class ObserveCreate:
    """A pod of the workload, for this target node, was created."""

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
    the workload is seen on that node.
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


def react(store: Store, transition: Transition, rules: Rules) -> list[Reaction]:
    """The reactions to one change, in order."""
    match transition:
        case DaemonSetChange():
            return list(_daemon_set(transition, rules))
        case PodChange():
            return list(_pod(store, transition, rules))
        case NodeChange():
            return list(_node(transition, rules))
        case RevisionChange():
            return list(_revision(store, transition))


def _daemon_set(change: DaemonSetChange, rules: Rules) -> Iterator[Reaction]:
    old, new = change
    replaced = old is not None and new is not None and old.uid != new.uid
    if old is not None and (new is None or replaced):
        kept = new.uid if new is not None and not rules.clear_replaced_own_writes else old.uid
        yield Forget(old.key, kept)
    any_of_them = new or old
    if any_of_them is not None:
        is_new = old is None or replaced
        yield Wake(any_of_them.key, Urgency.URGENT if is_new else Urgency.NORMAL)


def _pod(store: Store, change: PodChange, rules: Rules) -> Iterator[Reaction]:
    namespace, old, new = change
    if old is not None and new is not None and old.uid != new.uid:
        # Another pod has that name. Its predecessor was deleted while no watch ran, and an expectation may wait for
        # that.
        yield from _pod_gone(store, namespace, old)
        yield from _pod(store, PodChange(namespace, None, new), rules)
    elif old is not None and old == new and not rules.count_repeated_deletions:
        return
    elif new is not None and new.HasField("deletion_time"):
        yield from _pod_going(store, namespace, new)
    elif new is not None and old is None:
        yield from _pod_added(store, namespace, new)
    elif new is not None and old is not None:
        yield from _pod_updated(store, namespace, old, new)
    elif old is not None:
        yield from _pod_gone(store, namespace, old)


def _pod_added(store: Store, namespace: str, new: v1.Pod) -> Iterator[Reaction]:
    if not new.HasField("controller"):
        yield from _wake_matching(store, namespace, _labels(new))
        return
    owner = store.resolve(namespace, _controller(new))
    if owner is not None:
        yield ObserveCreate(owner.key, new.name, target_node(new))
        yield Wake(owner.key)


def _pod_updated(store: Store, namespace: str, old: v1.Pod, new: v1.Pod) -> Iterator[Reaction]:
    yield from _former_owner(store, namespace, _controller(old), _controller(new))
    owner = store.resolve(namespace, _controller(new))
    if owner is not None:
        yield Wake(owner.key)
        became_ready = old.ready != v1.CONDITION_STATUS_TRUE and new.ready == v1.CONDITION_STATUS_TRUE
        if became_ready and owner.min_ready_seconds > 0:
            # One second more: another clock stamps readiness, in whole seconds.
            yield Wake(owner.key, after=owner.min_ready_seconds + 1)
    elif not new.HasField("controller") and (_labels(old) != _labels(new) or old.HasField("controller")):
        yield from _wake_matching(store, namespace, _labels(new))


def _pod_going(store: Store, namespace: str, pod: v1.Pod) -> Iterator[Reaction]:
    owner = store.resolve(namespace, _controller(pod))
    if owner is not None:
        yield ObserveDeletion(owner.key, pod.name, pod.uid)
        yield Wake(owner.key)


def _pod_gone(store: Store, namespace: str, pod: v1.Pod) -> Iterator[Reaction]:
    """While the caches have a pod, the snapshot has its name, and the planner gives that name to no other pod. From now
    on the executor has to send the name.
    """
    yield from _pod_going(store, namespace, pod)
    owner = store.resolve(namespace, _controller(pod))
    if owner is not None:
        yield RetireName(owner.key, owner.uid, pod.name, target_node(pod))


def _revision(store: Store, change: RevisionChange) -> Iterator[Reaction]:
    old, new = change
    if old is not None and new is not None:
        yield from _revision_updated(store, old, new)
    elif new is not None and not new.deleting:
        if new.controller is None:
            yield from _wake_matching(store, new.namespace, new.labels)
    else:
        gone = new or old
        owner = store.resolve(gone.namespace, gone.controller) if gone else None
        if owner is not None:
            yield Wake(owner.key)


def _revision_updated(store: Store, old: Revision, new: Revision) -> Iterator[Reaction]:
    yield from _former_owner(store, new.namespace, old.controller, new.controller)
    owner = store.resolve(new.namespace, new.controller)
    if owner is not None:
        yield Wake(owner.key)
    elif new.controller is None and (old.labels != new.labels or old.controller is not None):
        yield from _wake_matching(store, new.namespace, new.labels)


def _node(change: NodeChange, rules: Rules) -> Iterator[Reaction]:
    """A node change queues every DaemonSet. The service decides which of them it concerns. Upstream queues fewer
    (D-105). The extra cost is a plan without actions.
    """
    old, new = change
    if new is None:
        if rules.wake_on_node_delete:
            yield WakeAll(Urgency.NORMAL)
    elif old is None or list(old.labels) != list(new.labels) or list(old.taints) != list(new.taints):
        yield WakeAll(Urgency.URGENT)


def _former_owner(store: Store, namespace: str, old: Owner | None, new: Owner | None) -> Iterator[Reaction]:
    former = store.resolve(namespace, old) if old != new else None
    if former is not None:
        yield Wake(former.key)


def _wake_matching(store: Store, namespace: str, labels: Mapping[str, str]) -> Iterator[Reaction]:
    matching = store.matching(namespace, labels)
    if len(matching) > 1:
        store.overlaps.log([daemon_set.key for daemon_set in matching])
    for daemon_set in matching:
        yield Wake(daemon_set.key)


def _controller(pod: v1.Pod) -> Owner | None:
    return owner_of(pod.controller) if pod.HasField("controller") else None


def _labels(pod: v1.Pod) -> dict[str, str]:
    return {label.key: label.value for label in pod.labels}
