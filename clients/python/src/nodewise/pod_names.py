"""Names that no new pod gets for now: those of pods that were seen to finish, to be deleted or to vanish. People and
programs wait for the name of a pod to go away, so its successor has another one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from . import v1
from .buckets import bucket_of
from .convert import target_node
from .kinds import Key
from .objects import owner_of
from .store import DaemonSetChange, PodChange, Store, Transition


class PodName(NamedTuple):
    """The name of a pod, and the node that the pod is on or meant for; empty for none."""

    node_name: str
    pod_name: str


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A watch or a list showed a pod of the workload of this uid."""

    key: Key
    uid: str
    name: PodName
    active: bool
    """It is neither finished nor being deleted."""


@dataclass(frozen=True, slots=True)
class PodVanished:
    """The caches do not show a pod of the workload of this uid any more."""

    key: Key
    uid: str
    name: PodName


class UsedPodNames:
    """The used names of every workload.

    They are kept beside what plans say, since watches show pods before the first plan of a workload, and since a
    reconcile of the workload that was replaced must not touch those of its successor.
    """

    def __init__(self) -> None:
        self._used: dict[Key, tuple[str, dict[str, set[str]]]] = {}
        """By workload its uid and its names, by node. No node has an empty set, and no workload an empty dict."""

    def wire(self, key: Key, uid: str) -> list[v1.UsedPodName]:
        """What is sent: sorted by node and name, so that equal sets are equal bytes."""
        return [
            v1.UsedPodName(node_name=node, pod_name=pod)
            for node, pods in sorted(self._of(key, uid).items())
            for pod in sorted(pods)
        ]

    def seen(self, key: Key, uid: str, name: PodName, *, active: bool) -> None:
        """A watch or a list showed a pod. The name of one that is not active is used. An active one ends what is used
        on its node: what replaces a pod was seen there.
        """
        if active:
            self._of(key, uid).pop(name.node_name, None)
            self._drop_if_empty(key)
        else:
            self._use(key, uid, name)

    def vanished(self, key: Key, uid: str, name: PodName, has_active_pod: Callable[[], bool]) -> None:
        """The caches do not show a pod any more. Its name is used, unless they show an active pod of the workload on
        its node: that is asked only where it matters.
        """
        used = self._of(key, uid).get(name.node_name, ())
        if name.pod_name not in used and not has_active_pod():
            self._use(key, uid, name)

    def drop(self, key: Key, uid: str, sent: Iterable[v1.UsedPodName], answered: Iterable[v1.UsedPodName]) -> None:
        """Drops what was sent with a request and is not in its answer: the planner does not need it any more. What
        watches added meanwhile was not sent, and stays. Nothing is added.
        """
        used = self._of(key, uid)
        for node, pod in {*map(_name, sent)} - {*map(_name, answered)}:
            pods = used.get(node, set())
            pods.discard(pod)
            if not pods:
                used.pop(node, None)
        self._drop_if_empty(key)

    def forget(self, key: Key) -> None:
        """Drops the names of a workload."""
        self._used.pop(key, None)

    def _of(self, key: Key, uid: str) -> dict[str, set[str]]:
        of, used = self._used.get(key, (uid, {}))
        return used if of == uid else {}

    def _use(self, key: Key, uid: str, name: PodName) -> None:
        # A pod without a node takes the place of no other.
        if name.node_name and name.pod_name:
            used = self._of(key, uid)
            used.setdefault(name.node_name, set()).add(name.pod_name)
            # What was kept for another uid of the workload's name is dropped.
            self._used[key] = uid, used

    def _drop_if_empty(self, key: Key) -> None:
        if key in self._used and not self._used[key][1]:
            del self._used[key]


def _name(used: v1.UsedPodName) -> PodName:
    return PodName(used.node_name, used.pod_name)


def is_active(pod: v1.Pod) -> bool:
    """Whether a pod is neither finished nor being deleted."""
    return pod.phase not in (v1.POD_PHASE_SUCCEEDED, v1.POD_PHASE_FAILED) and not pod.HasField("deletion_time")


def has_active_pod(store: Store, namespace: str, uid: str, node_name: str) -> bool:
    """Whether the caches show an active pod of a workload that is on a node or meant for it."""
    owned, _ = store.pods(namespace, uid)
    if owned is None:
        return False
    name = node_name.encode()
    # Few pods of a bucket are for this node. The others need not be decoded.
    pods = (stored.pod() for stored in owned.bucket(bucket_of(node_name, store.bucket_count)) if name in stored.own)
    return any(is_active(pod) and target_node(pod) == node_name for pod in pods)


def sights(store: Store, transition: Transition) -> Iterator[PodSeen | PodVanished]:
    """What a transition shows of pods that a workload controls, in this order. The store is as it is after it.

    Lists of pods and of DaemonSets come in any order. So a DaemonSet that is new shows the pods that were listed before
    it.
    """
    match transition:
        case PodChange(namespace, old, new) if old != new:
            if old is not None and (new is None or old.uid != new.uid):
                yield from _sight(store, namespace, old, gone=True)
            if new is not None:
                yield from _sight(store, namespace, new, gone=False)
        case DaemonSetChange(before, after) if after is not None and (before is None or before.uid != after.uid):
            owned, _ = store.pods(after.key.namespace, after.uid)
            for stored in owned or ():
                pod = stored.pod()
                if not is_active(pod):
                    yield from _sight(store, after.key.namespace, pod, gone=False)


def _sight(store: Store, namespace: str, pod: v1.Pod, *, gone: bool) -> Iterator[PodSeen | PodVanished]:
    """What is seen of a pod, if a workload that is known controls it."""
    owner = store.resolve(namespace, owner_of(pod.controller) if pod.HasField("controller") else None)
    if owner is None:
        return
    name = PodName(target_node(pod), pod.name)
    yield PodVanished(owner.key, owner.uid, name) if gone else PodSeen(owner.key, owner.uid, name, is_active(pod))
