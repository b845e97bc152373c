"""The cached pods and revisions of one namespace."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .. import v1
from ..buckets import Buckets, SharedPart, Stored
from ..kinds import OWNER_KIND
from ..objects import DaemonSet, Owner, owner_of
from ..revisions import Revisions
from ..selector import Selector


class _Selected:
    """The cached orphans that a selector matches."""

    def __init__(self, selector: Selector, bucket_count: int) -> None:
        self.selector = selector
        self.orphans = Buckets(bucket_count)

    def put(self, orphan: Stored) -> None:
        """An orphan was added or changed."""
        labels = orphan.part.metadata().labels if orphan.part else ()
        if self.selector.selects({label.key: label.value for label in labels}):
            self.orphans.put(orphan)
        else:
            self.orphans.remove(orphan.bucket, orphan.name)


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
    owned: dict[str, Buckets] = field(default_factory=dict)
    """Pods by the uid of their DaemonSet."""
    orphans: Buckets | None = None
    selected: dict[str, _Selected] = field(default_factory=dict)
    """The selected orphans by the name of the DaemonSet, once a snapshot of it was taken."""
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
            self.owned.setdefault(pod.owner, Buckets(bucket_count)).put(pod)
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
            selected.orphans.remove(orphan.bucket, name)
        self.left_out.add(name)

    def sets(self, workload: DaemonSet, bucket_count: int) -> tuple[Buckets | None, Buckets | None]:
        """The pods that a DaemonSet controls, and the orphans that its selector matches."""
        owned, name = self.owned.get(workload.uid), workload.key.name
        if self.orphans is None:
            self.selected.pop(name, None)
            return owned, None
        selected = self.selected.get(name)
        if selected is None or selected.selector != workload.selector:
            selected = self.selected[name] = _Selected(workload.selector, bucket_count)
            for orphan in self.orphans:
                if orphan.name not in self.left_out:
                    selected.put(orphan)
        return owned, selected.orphans

    def live_pods(self, workload: DaemonSet, live: dict[str, LivePods], buckets: Iterable[int]) -> dict[str, LivePods]:
        """Counts the live pods of a workload on the nodes in `live`. `buckets` are the buckets of these nodes."""
        owned = self.owned.get(workload.uid)
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
                if own[pod.part] and _is_live(v1.Pod.FromString(pod.own)):
                    number, changed = live[pod.target]
                    live[pod.target] = LivePods(number + 1, max(changed, pod.changed))
        return live

    def _take_out(self, pod: Stored) -> None:
        if pod.owner is None:
            for selected in self.selected.values():
                selected.orphans.remove(pod.bucket, pod.name)
        buckets = self.orphans if pod.owner is None else self.owned.get(pod.owner)
        if buckets is None:
            return
        buckets.remove(pod.bucket, pod.name)
        if not buckets:
            if pod.owner is None:
                self.orphans = None
            else:
                del self.owned[pod.owner]


class PodView:
    """The current pods of a workload, for expectations that are already met when they are set."""

    def __init__(self, namespace: Namespace | None, uid: str) -> None:
        self._namespace = namespace or Namespace()
        self._uid = uid

    def exists(self, pod_name: str) -> bool:
        """Whether the caches have a pod of this name that the workload controls."""
        pod = self._namespace.pods.get(pod_name)
        return pod is not None and pod.owner == self._uid

    def deleting(self) -> dict[str, bool]:
        """Whether each pod of the workload and each orphan of its namespace is being deleted, by uid. A pod that was
        just adopted may still look like an orphan.
        """
        pods = (stored.pod() for buckets in self._sets() for stored in buckets)
        return {pod.uid: pod.HasField("deletion_time") for pod in pods}

    def _sets(self) -> Iterator[Buckets]:
        for buckets in (self._namespace.owned.get(self._uid), self._namespace.orphans):
            if buckets is not None:
                yield buckets


def _is_own(workload: DaemonSet, shared: v1.SharedMetadata) -> bool:
    """Whether a workload controls and selects the pods with this shared metadata."""
    owner = Owner(OWNER_KIND, workload.key.name, workload.uid)
    labels = {label.key: label.value for label in shared.labels}
    return owner_of(shared.controller) == owner and workload.selector.selects(labels)


def _is_live(pod: v1.Pod) -> bool:
    return pod.phase not in (v1.POD_PHASE_FAILED, v1.POD_PHASE_SUCCEEDED) and not pod.HasField("deletion_time")
