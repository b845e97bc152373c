"""The cached pods and revisions of one namespace."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .. import v1
from ..buckets import Buckets, OwnerId, SharedPart, Stored
from ..kinds import KINDS, Key
from ..objects import Workload, owner_of
from ..revisions import Revisions
from ..selector import Selector

_MOST_BUCKETS = 1_024
"""`Limits.max_bucket_count` of a service with default settings."""


class _Selected:
    """The cached orphans that a selector matches."""

    def __init__(self, selector: Selector, buckets: Buckets) -> None:
        """`buckets` are empty, and as many as the workload's own pods have."""
        self.selector = selector
        self.orphans = buckets

    def put(self, orphan: Stored) -> None:
        """An orphan was added or changed."""
        labels = orphan.part.metadata().labels if orphan.part else ()
        if self.selector.selects({label.key: label.value for label in labels}):
            self.orphans.put(orphan)
        else:
            self.orphans.take_out(orphan)


class LivePods(NamedTuple):
    """The live pods of a workload on one node, or targeting it."""

    number: int = 0
    """The number of pods."""
    changed: int = 0
    """The number of the last change of any of them."""


@dataclass(slots=True)
class Namespace:
    """The cached pods and revisions of one namespace."""

    pods: dict[str, Stored] = field(default_factory=dict)
    owned: dict[OwnerId, Buckets] = field(default_factory=dict)
    """Pods by their controller."""
    orphans: Buckets | None = None
    """By node."""
    selected: dict[Key, _Selected] = field(default_factory=dict)
    """The selected orphans by workload, once a snapshot of it was taken. They are in buckets like those of its pods."""
    revisions: Revisions = field(default_factory=Revisions)
    sealed: dict[str, str] = field(default_factory=dict)
    """Sealed revisions, which cannot be changed: the resourceVersion at which that was seen, by name."""
    left_out: set[str] = field(default_factory=set)
    """Names of orphans that cannot be adopted as they are. They are not selected."""

    def put(self, pod: Stored, bucket_count: int) -> Stored | None:
        self.left_out.discard(pod.name)
        old = self.pods.get(pod.name)
        self.pods[pod.name] = pod
        if old is not None and (old.owner, old.bucket) != (pod.owner, pod.bucket):
            self._take_out(old)
        if pod.owner is None:
            self.orphans = self.orphans or Buckets(bucket_count)
            self.orphans.put(pod)
            for selected in self.selected.values():
                selected.put(pod)
        else:
            self._owned_by(pod.owner, bucket_count).put(pod)
        return old

    def remove(self, name: str) -> Stored | None:
        pod = self.pods.pop(name, None)
        if pod is not None:
            self.left_out.discard(name)
            self._take_out(pod)
        return pod

    def leave_out(self, name: str) -> None:
        """Does not select an orphan until it changes."""
        orphan = self.pods.get(name)
        if orphan is None or orphan.owner is not None:
            return
        for selected in self.selected.values():
            selected.orphans.take_out(orphan)
        self.left_out.add(name)

    def sets(self, workload: Workload, bucket_count: int) -> tuple[Buckets | None, Buckets | None]:
        """The pods that a workload controls, and the orphans that its selector matches, in as many buckets."""
        owned, key = self.owned.get(_id_of(workload)), workload.key
        if self.orphans is None:
            self.selected.pop(key, None)
            return owned, None
        count = owned.count if owned is not None else fewest_buckets(key.kind, bucket_count)
        selected = self.selected.get(key)
        if selected is None or (selected.selector, selected.orphans.count) != (workload.selector, count):
            buckets = Buckets(count, by_name=is_by_name(key.kind))
            selected = self.selected[key] = _Selected(workload.selector, buckets)
            for orphan in self.orphans:
                if orphan.name not in self.left_out:
                    selected.put(orphan)
        return owned, selected.orphans

    def controlled_pods(self, workload: Workload) -> Iterator[v1.Pod]:
        """The pods that a workload controls, by kind, name and uid, in any state."""
        pods = (stored.pod() for stored in self.owned.get(_id_of(workload), ()))
        return (pod for pod in pods if owner_of(pod.controller) == workload.owner)

    def live_pods(self, workload: Workload, live: dict[str, LivePods], buckets: Iterable[int]) -> dict[str, LivePods]:
        """Counts the live pods of a workload on the nodes in `live`. `buckets` are the buckets of these nodes."""
        owned = self.owned.get(_id_of(workload))
        if owned is None:
            return live
        # Most pods share the same part.
        own: dict[SharedPart, bool] = {}
        for bucket in buckets:
            for pod in owned.members(bucket):
                # Most pods of the bucket are on other nodes. They are not decoded.
                if pod.target not in live or pod.part is None:
                    continue
                if pod.part not in own:
                    own[pod.part] = _is_own(workload, pod.part.metadata())
                if own[pod.part] and is_live(v1.Pod.FromString(pod.own)):
                    number, changed = live[pod.target]
                    live[pod.target] = LivePods(number + 1, max(changed, pod.changed))
        return live

    def live_pods_beyond(self, workload: Workload, most: int) -> LivePods | None:
        """The live pods of a workload, if its pods in any state are more than `most`. Otherwise none is decoded."""
        owned = self.owned.get(_id_of(workload))
        if owned is None or sum(1 for _ in owned) <= most:
            return None
        live = [
            pod.changed
            for pod in owned
            if pod.part is not None and _is_own(workload, pod.part.metadata()) and is_live(v1.Pod.FromString(pod.own))
        ]
        return LivePods(len(live), max(live, default=0))

    def _take_out(self, pod: Stored) -> None:
        if pod.owner is None:
            for selected in self.selected.values():
                selected.orphans.take_out(pod)
        buckets = self.orphans if pod.owner is None else self.owned.get(pod.owner)
        if buckets is None:
            return
        buckets.take_out(pod)
        if not buckets:
            if pod.owner is None:
                self.orphans = None
            else:
                del self.owned[pod.owner]

    def _owned_by(self, owner: OwnerId, bucket_count: int) -> Buckets:
        owned = self.owned.get(owner)
        if owned is None:
            by_name = is_by_name(owner.kind)
            count, grows_to = fewest_buckets(owner.kind, bucket_count), most_buckets(bucket_count) if by_name else None
            owned = self.owned[owner] = Buckets(count, by_name=by_name, grows_to=grows_to)
        return owned


def is_by_name(kind: str) -> bool:
    """Whether the pods of workloads of this kind are in the buckets of their own names."""
    of = KINDS.get(kind)
    return of is not None and of.pods is not None and not of.pods.per_node


def most_buckets(bucket_count: int) -> int:
    """The most buckets for the pods of one workload by their own names. They are more than for nodes: without nodes,
    smaller buckets make smaller requests, and one workload may have many more pods than there are nodes.
    """
    return min(4 * bucket_count, max(bucket_count, _MOST_BUCKETS))


def fewest_buckets(kind: str, bucket_count: int) -> int:
    """The number of buckets of a workload of this kind without pods."""
    return 1 if is_by_name(kind) else bucket_count


def _id_of(workload: Workload) -> OwnerId:
    return OwnerId(workload.key.kind, workload.uid)


class PodView:
    """The current pods of a workload, for expectations that are already met when they are set."""

    def __init__(self, namespace: Namespace | None, owner: OwnerId) -> None:
        self._namespace = namespace or Namespace()
        self._owner = owner

    def exists(self, pod_name: str) -> bool:
        """Whether the caches have a pod of this name that the workload controls."""
        pod = self._namespace.pods.get(pod_name)
        return pod is not None and pod.owner == self._owner

    def deleting(self) -> dict[str, bool]:
        """Whether each pod of the workload and each orphan of its namespace is being deleted, by uid. A pod that was
        just adopted may still look like an orphan.
        """
        pods = (stored.pod() for buckets in self._sets() for stored in buckets)
        return {pod.uid: pod.HasField("deletion_time") for pod in pods}

    def _sets(self) -> Iterator[Buckets]:
        for buckets in (self._namespace.owned.get(self._owner), self._namespace.orphans):
            if buckets is not None:
                yield buckets


def _is_own(workload: Workload, shared: v1.SharedMetadata) -> bool:
    """Whether a workload controls and selects the pods with this shared metadata."""
    labels = {label.key: label.value for label in shared.labels}
    return owner_of(shared.controller) == workload.owner and workload.selector.selects(labels)


def is_finished(pod: v1.Pod) -> bool:
    """Whether a pod has finished."""
    return pod.phase in (v1.POD_PHASE_FAILED, v1.POD_PHASE_SUCCEEDED)


def is_live(pod: v1.Pod) -> bool:
    """Whether a pod is neither finished nor being deleted."""
    return not is_finished(pod) and not pod.HasField("deletion_time")
