"""What the watches have shown: DaemonSets by key, pods by their controller, nodes, revisions, and the resourceVersion
that each watch has reached.

Applying an event answers with the transitions it made, from which `handlers` derives who is woken. Pods that neither a
DaemonSet controls nor nobody does are not kept at all: they are never read (D-3), and most pods of a cluster are of
that kind.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from . import tracing, v1
from .buckets import Buckets, Digest, Labels, Part, Parts, Stored, bucket_of, render
from .changes import Changes
from .kinds import OWNER_KIND, Key, Resource
from .objects import DaemonSet, Node, Owner, Pod, Revision, owner_of
from .overlaps import Overlaps
from .reads import MAX_LABELS, KeySet
from .revisions import Revisions, concerns
from .selector import Selector
from .sent_keys import SentKeys

_log = tracing.logger(__name__)

Watched: TypeAlias = DaemonSet | Pod | Node | Revision


@dataclass(frozen=True, slots=True)
class Applied:
    """An object was added or modified."""

    object: Watched


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object was deleted; this is its last state."""

    object: Watched


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete list, the first one or one after a gap: what is missing in it is gone."""

    resource: Resource
    objects: list[Watched]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed, but the watch of this resource has reached this version."""

    resource: Resource
    resource_version: str


@dataclass(frozen=True, slots=True)
class RevisionPage:
    """A part of a list of revisions that is not complete yet. `Listed` follows the last one, without them."""

    revisions: list[Revision]
    is_first: bool
    """What was shown before of a list that came to no end is void."""


Event: TypeAlias = Applied | Deleted | Listed | Bookmark | RevisionPage
"""A change that a watch showed. Those of one resource come in the order of the watch; across resources nothing is
promised.
"""


class DaemonSetChange(NamedTuple):
    """A DaemonSet changed. In each of these changes the old one is absent when it was not known, the new one when it is
    gone.
    """

    old: DaemonSet | None
    new: DaemonSet | None


class PodChange(NamedTuple):
    """A pod of this namespace changed."""

    namespace: str
    old: v1.Pod | None
    new: v1.Pod | None


class NodeChange(NamedTuple):
    """A node changed."""

    old: v1.Node | None
    new: v1.Node | None


class RevisionChange(NamedTuple):
    """A revision changed."""

    old: Revision | None
    new: Revision | None


Transition: TypeAlias = DaemonSetChange | PodChange | NodeChange | RevisionChange
Visit: TypeAlias = Callable[[Transition], None]

RESOURCE_OF: Mapping[type, Resource] = {
    DaemonSet: Resource.DAEMON_SETS,
    Pod: Resource.PODS,
    Node: Resource.NODES,
    Revision: Resource.REVISIONS,
}
"""What kind of object each type is."""


class _Selected:
    """The orphans that a selector matches."""

    def __init__(self, selector: Selector, bucket_count: int) -> None:
        self.selector = selector
        self.orphans = Buckets(bucket_count)

    def put(self, orphan: Stored) -> None:
        """An orphan came or changed."""
        labels = orphan.part.metadata().labels if orphan.part else ()
        if self.selector.selects({label.key: label.value for label in labels}):
            self.orphans.put(orphan)
        else:
            self.orphans.remove(orphan.bucket, orphan.name)


@dataclass(slots=True)
class _Namespace:
    pods: dict[str, Stored] = field(default_factory=dict)
    owned: dict[str, Buckets] = field(default_factory=dict)
    """Pods by the uid of the DaemonSet that controls them."""
    orphans: Buckets | None = None
    selected: dict[str, _Selected] = field(default_factory=dict)
    """By the name of a DaemonSet that was asked about while there were orphans: those that it selects."""
    revisions: Revisions = field(default_factory=Revisions)
    sealed: dict[str, str] = field(default_factory=dict)
    """Revisions that cannot be changed, by name, each with the resourceVersion at which that was seen."""
    left_out: set[str] = field(default_factory=set)
    """Names of orphans that cannot be adopted as they are. None of them is selected."""

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
        """Selects an orphan no more, as long as it stays as it is."""
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


class Sighted:
    """How the pods of a workload look now, for expectations that are met already when they are set."""

    def __init__(self, namespace: _Namespace | None, uid: str) -> None:
        self._namespace = namespace or _Namespace()
        self._uid = uid

    def exists(self, pod_name: str) -> bool:
        """Whether the caches show a pod of this name that the workload controls."""
        pod = self._namespace.pods.get(pod_name)
        return pod is not None and pod.owner == self._uid

    def deleting(self) -> dict[str, bool]:
        """By uid whether it is being deleted, for each pod that the workload controls, and each orphan of its
        namespace: a pod that was adopted just now may still look like one.
        """
        pods = (stored.pod() for buckets in self._sets() for stored in buckets)
        return {pod.uid: pod.HasField("deletion_time") for pod in pods}

    def _sets(self) -> Iterator[Buckets]:
        for buckets in (self._namespace.owned.get(self._uid), self._namespace.orphans):
            if buckets is not None:
                yield buckets


class LivePods(NamedTuple):
    """Pods of a workload that live on one node or are meant for it."""

    number: int = 0
    """How many."""
    changed: int = 0
    """The number of the last change of any of them."""


class Store:
    """The caches, whose nodes and pods will be sent in so many buckets."""

    def __init__(self, bucket_count: int) -> None:
        if bucket_count < 1:
            raise ValueError("there is at least one bucket")
        self.bucket_count = bucket_count
        self.nodes = Buckets(bucket_count)
        self._daemon_sets: dict[Key, DaemonSet] = {}
        self._namespaces: dict[str, _Namespace] = {}
        self.cut = 0
        """How often an object came or changed of which not all labels are sent that a decision could read."""
        self._parts = Parts()
        self._labels = Labels()
        self._keys = SentKeys()
        self._reached: dict[Resource, str] = {}
        self._changes = Changes()
        self._pages: dict[str, Revisions] = {}
        """Of a list of revisions that is not complete yet, by namespace."""
        self.overlaps = Overlaps()
        self.is_relisting = False
        """Versions have begun anew, and not every resource was listed since then: the caches are of two histories."""

    def apply(self, event: Event, visit: Visit) -> None:
        """Takes in what a watch showed. `visit` is told each change as it is made."""
        match event:
            case Applied(obj):
                self._advance(RESOURCE_OF[type(obj)], obj.resource_version)
                self._put(obj, visit)
            case Deleted(obj):
                self._advance(RESOURCE_OF[type(obj)], obj.resource_version)
                self._remove(obj, visit)
            case RevisionPage(revisions, is_first):
                self._put_page(revisions, is_first)
            case Listed(resource, objects, version):
                self._reached[resource] = version
                if resource is Resource.REVISIONS:
                    objects = [*self._take_pages(), *objects]
                self._forget_missing(resource, objects, visit)
                for obj in objects:
                    self._put(obj, visit)
                self.is_relisting = self.is_relisting and bool(self.unsynced())
            case Bookmark(resource, version):
                self._advance(resource, version)

    def _advance(self, resource: Resource, version: str) -> None:
        """A watch has reached a version. Before the first list that says nothing about what is known."""
        if resource in self._reached:
            self._reached[resource] = version

    def begin_anew(self) -> None:
        """The versions have begun anew (D-112): what was seen at one of them may look different now. What is kept of
        each resource stays until a list has replaced it.
        """
        self.is_relisting = True
        self._reached.clear()
        for kept in self._namespaces.values():
            kept.sealed.clear()

    def unsynced(self) -> list[Resource]:
        """Resources whose first list is not complete yet."""
        return [resource for resource in Resource if resource not in self._reached]

    def reached(self, resource: Resource) -> str:
        """The resourceVersion that the watch of a resource has reached; empty before its first list."""
        return self._reached.get(resource, "")

    def daemon_set(self, key: Key) -> DaemonSet | None:
        """A DaemonSet."""
        return self._daemon_sets.get(key)

    def every_key(self) -> list[Key]:
        """The keys of all DaemonSets, in order."""
        return sorted(self._daemon_sets)

    def resolve(self, namespace: str, controller: Owner | None) -> DaemonSet | None:
        """The DaemonSet that an object's controller reference points at: of that name in the object's namespace, with
        that uid (D-103).
        """
        if controller is None or controller.kind != OWNER_KIND:
            return None
        daemon_set = self._daemon_sets.get(Key(namespace, controller.name))
        return daemon_set if daemon_set is not None and daemon_set.uid == controller.uid else None

    def matching(self, namespace: str, labels: Mapping[str, str]) -> list[DaemonSet]:
        """Every DaemonSet of a namespace whose selector matches an orphan's labels, ordered by name (D-104)."""
        found = (workload for workload in self._daemon_sets_in(namespace) if workload.selector.matches(labels))
        return sorted(found, key=lambda daemon_set: daemon_set.key)

    def _daemon_sets_in(self, namespace: str) -> Iterator[DaemonSet]:
        return (workload for workload in self._daemon_sets.values() if workload.key.namespace == namespace)

    def revisions(self, workload: DaemonSet) -> list[Revision]:
        """Revisions that a workload controls, and those without a controller that its selector matches (D-4), ordered
        by name.
        """
        kept = self._namespaces.get(workload.key.namespace)
        revisions = kept.revisions.by_name if kept else {}
        concern = (revision for revision in revisions.values() if concerns(workload, revision))
        return sorted(concern, key=lambda revision: revision.name)

    def pod(self, namespace: str, name: str) -> v1.Pod | None:
        """The pod of this name, if a DaemonSet controls it or it is an orphan."""
        kept = self._namespaces.get(namespace)
        pod = kept.pods.get(name) if kept else None
        return None if pod is None else pod.pod()

    def has_node(self, name: str) -> bool:
        """Whether there is a node of this name."""
        return self.nodes.get(bucket_of(name, self.bucket_count), name) is not None

    @property
    def last_change(self) -> int:
        """The number of the last change."""
        return self._changes.last

    def changed(self, resource: Resource, namespace: str, name: str) -> int:
        """The number of the last change of a pod or revision. Of what the caches do not show, and of nodes, it is that
        of the last change that took any object of the resource out.
        """
        kept = self._namespaces.get(namespace)
        obj: Stored | Revision | None = None
        if kept is not None and resource is Resource.PODS:
            obj = kept.pods.get(name)
        elif kept is not None and resource is Resource.REVISIONS:
            obj = kept.revisions.by_name.get(name)
        return self._changes.removal(resource) if obj is None else obj.changed

    def revisions_changed(self, namespace: str) -> int:
        """The number of the last change of any revision of a namespace, or that took any revision out."""
        kept = self._namespaces.get(namespace)
        revisions = kept.revisions.by_name.values() if kept else ()
        return max([self._changes.removal(Resource.REVISIONS), *(revision.changed for revision in revisions)])

    def live_pods(self, workload: DaemonSet, nodes: Collection[str]) -> dict[str, LivePods]:
        """Of these nodes those that there are, and the pods of a workload that live on each or are meant for it: those
        that it controls and selects, but for those that have finished or are being deleted.
        """
        bucket_of_node = {name: bucket_of(name, self.bucket_count) for name in nodes}
        live = {name: LivePods() for name, bucket in bucket_of_node.items() if self.nodes.get(bucket, name) is not None}
        kept = self._namespaces.get(workload.key.namespace)
        owned = kept.owned.get(workload.uid) if kept else None
        if owned is None:
            return live
        # Most pods have the same part.
        own: dict[Part, bool] = {}
        for bucket in {bucket_of_node[name] for name in live}:
            for pod in owned.members(bucket):
                # Most pods of the bucket are of other nodes: these are not decoded.
                if pod.target not in live or pod.part is None:
                    continue
                if pod.part not in own:
                    own[pod.part] = _is_own(workload, pod.part.metadata())
                if own[pod.part] and _is_live(v1.Pod.FromString(pod.own)):
                    number, changed = live[pod.target]
                    live[pod.target] = LivePods(number + 1, max(changed, pod.changed))
        return live

    def revision(self, namespace: str, name: str) -> Revision | None:
        """The revision of this name, if a DaemonSet controls it or it is an orphan."""
        kept = self._namespaces.get(namespace)
        return kept.revisions.by_name.get(name) if kept else None

    def node_buckets(self, workload: DaemonSet, known: Callable[[Digest], bool]) -> list[v1.Bucket]:
        """The nodes as they are sent about a workload."""
        self.know(workload)
        return render(self.nodes, None, self._keys.of_nodes(), self.bucket_count, known)

    def pod_buckets(self, workload: DaemonSet, known: Callable[[Digest], bool]) -> list[v1.Bucket]:
        """The pods of a workload, and the orphans of its namespace that it selects, as they are sent (D-3)."""
        self.know(workload)
        namespace = workload.key.namespace
        kept = self._namespaces.get(namespace)
        owned, orphans = kept.sets(workload, self.bucket_count) if kept else (None, None)
        return render(owned, orphans, self._keys.of_pods(namespace), self.bucket_count, known)

    def know(self, workload: DaemonSet) -> None:
        """A workload is asked about. Nothing that is sent about it may lack a label that it names, even when the caches
        do not show it as it is.
        """
        kept = self._daemon_sets.get(workload.key)
        if kept is None or kept.reads != workload.reads:
            self._keys.name_besides(workload)

    def _tell_cuts(self, namespace: str) -> None:
        """Looks for what cannot be sent, of what a DaemonSet may have named just now, in objects that were there
        before.
        """
        if self._keys.nodes_have_grown():
            keys = self._keys.of_nodes()
            for node in self.nodes:
                self._look(Resource.NODES, "", node, keys)
        if self._keys.pods_have_grown(namespace):
            keys, kept = self._keys.of_pods(namespace), self._namespaces.get(namespace)
            for pod in kept.pods.values() if kept else ():
                self._look(Resource.PODS, namespace, pod, keys)

    def _look(self, resource: Resource, namespace: str, stored: Stored, keys: KeySet) -> None:
        """An object came or changed, or more of its labels are named."""
        cut = stored.cut(keys)
        if not cut:
            return
        self.cut += 1
        _log.warning(
            "%d labels of %s %s that DaemonSets may read are not sent: at most %d are",
            cut,
            resource.value,
            Key(namespace, stored.name),
            MAX_LABELS,
        )

    def sighted(self, namespace: str, uid: str) -> Sighted:
        """What the caches show of a workload's pods."""
        return Sighted(self._namespaces.get(namespace), uid)

    def forget_orphan(self, resource: Resource, namespace: str, name: str) -> None:
        """Takes out an orphan that the API does not find before its watch shows that. Nobody waits for it to go."""
        kept = self._namespaces.get(namespace)
        if kept is None:
            return
        # By now another object may have that name.
        if resource is Resource.PODS:
            pod = kept.pods.get(name)
            if pod is not None and pod.owner is None:
                self._remove_pod(namespace, name)
        elif resource is Resource.REVISIONS:
            revision = kept.revisions.by_name.get(name)
            if revision is not None and revision.controller is None:
                self._remove_revision(namespace, name)

    def seal(self, resource: Resource, namespace: str, name: str) -> None:
        """Marks a revision or an orphaned pod as one that cannot be changed, as long as it stays as it is. A revision
        is sent with that mark. A pod is not sent.
        """
        kept = self._namespaces.get(namespace)
        if kept is None:
            return
        revision = kept.revisions.by_name.get(name)
        if resource is Resource.PODS:
            kept.leave_out(name)
        elif resource is Resource.REVISIONS and revision is not None:
            kept.sealed[name] = revision.resource_version

    def is_sealed(self, revision: Revision) -> bool:
        """Whether a revision is marked so."""
        kept = self._namespaces.get(revision.namespace)
        return kept is not None and kept.sealed.get(revision.name) == revision.resource_version

    def count(self, resource: Resource) -> int:
        """How many objects of a resource are kept."""
        match resource:
            case Resource.DAEMON_SETS:
                return len(self._daemon_sets)
            case Resource.NODES:
                return len(self.nodes)
            case Resource.PODS:
                return sum(len(kept.pods) for kept in self._namespaces.values())
            case Resource.REVISIONS:
                return sum(len(kept.revisions.by_name) for kept in self._namespaces.values())

    def _put(self, obj: Watched, visit: Visit) -> None:
        match obj:
            case DaemonSet():
                old = self._daemon_sets.get(obj.key)
                self._daemon_sets[obj.key] = obj
                self._keys.replace(old, obj)
                self._tell_cuts(obj.key.namespace)
                visit(DaemonSetChange(old, obj))
            case Node():
                self._put_node(obj, visit)
            case Pod():
                self._put_pod(obj, visit)
            case Revision():
                self._put_revision(obj, visit)

    def _put_node(self, node: Node, visit: Visit) -> None:
        stored = self._labels.store_node(node.projection, node.resource_version, self.bucket_count)
        old = self.nodes.put(stored)
        if old is not None:
            self._labels.release(old)
        keys = self._keys.of_nodes()
        # Heartbeats change nodes all the time without changing what is sent.
        if old is None or not old.is_sent_alike(stored, keys):
            self._look(Resource.NODES, "", stored, keys)
            visit(NodeChange(old.sent_node(keys) if old else None, stored.sent_node(keys)))

    def _remove_node(self, bucket: int, name: str) -> Stored | None:
        node = self.nodes.remove(bucket, name)
        if node is not None:
            self._labels.release(node)
            self._changes.removed(Resource.NODES)
        return node

    def _remove_daemon_set(self, key: Key) -> DaemonSet | None:
        old = self._daemon_sets.pop(key, None)
        if old is not None:
            self._keys.replace(old, None)
            kept = self._namespaces.get(key.namespace)
            if kept is not None:
                kept.selected.pop(key.name, None)
        return old

    def _put_pod(self, pod: Pod, visit: Visit) -> None:
        projection, namespace = pod.projection, pod.namespace
        if not is_kept(pod):
            old = self._remove_pod(namespace, projection.name)
            if old is not None:
                visit(PodChange(namespace, old, projection))
            return
        stored = self._parts.store_pod(projection, pod.resource_version, self.bucket_count, self._changes.next())
        kept = self._namespaces.setdefault(namespace, _Namespace())
        before = kept.pods.get(stored.name)
        # Where versions have begun anew, one stands for two states (D-112).
        ordered = not self.is_relisting
        if ordered and before is not None and before.version == stored.version:
            # The same object again, by a list after a gap.
            self._parts.release(stored)
            return
        # An orphan that was left out is tried again. It is as if it came just now.
        is_back = stored.owner is None and stored.name in kept.left_out
        kept.put(stored, self.bucket_count)
        keys = self._keys.of_pods(namespace)
        is_news = is_back or before is None or not before.is_sent_alike(stored, keys)
        if is_news:
            self._look(Resource.PODS, namespace, stored, keys)
        # Most events of a pod tell of what nobody here reads: of a container's state, or of an annotation. But upstream
        # counts each event of a pod that is being deleted.
        if is_news or projection.HasField("deletion_time"):
            visit(PodChange(namespace, before.pod() if before and not is_back else None, projection))
        if before is not None:
            self._parts.release(before)

    def _put_revision(self, revision: Revision, visit: Visit) -> None:
        revisions = self._namespaces.setdefault(revision.namespace, _Namespace()).revisions
        foreign = not is_kept(revision)
        old = revisions.by_name.get(revision.name)
        same = old is not None and old.resource_version == revision.resource_version
        if not foreign:
            # Where versions have begun anew, one stands for two states (D-112).
            changed = old.changed if old and same and not self.is_relisting else self._changes.next()
            revision = replace(self._reduced(revision, revisions), changed=changed)
            revisions.put(revision)
        elif revisions.remove(revision.name) is not None:
            self._changes.removed(Resource.REVISIONS)
        self._drop_if_empty(revision.namespace)
        if not same and not (foreign and old is None):
            # An orphan that could not be changed is tried again. It is as if it came just now.
            is_back = old is not None and revision.controller is None and self.is_sealed(old)
            visit(RevisionChange(None if is_back else old, revision))

    def _put_page(self, revisions: Iterable[Revision], is_first: bool) -> None:
        """Half a list must not be planned from, so nobody is shown it. No more of it is kept than of a whole one."""
        if is_first:
            self._pages.clear()
        for revision in revisions:
            page = self._pages.setdefault(revision.namespace, Revisions())
            page.put(self._reduced(revision, page))

    def _take_pages(self) -> list[Revision]:
        pages, self._pages = self._pages, {}
        return [revision for page in pages.values() for revision in page.by_name.values()]

    def _reduced(self, revision: Revision, beside: Revisions | None = None) -> Revision:
        """What is kept of a revision, where it has to fit in beside these."""
        namespace, keys = revision.namespace, self._keys.of_pods(revision.namespace).labels
        has_room = beside is None or beside.has_room_for(revision, self._keys.daemon_sets_in(namespace))
        is_whole = has_room and any(concerns(workload, revision) for workload in self._daemon_sets_in(namespace))
        revision = revision.with_labels_of(keys)
        return revision if is_whole else revision.without_object()

    def keep_whole(self, read: Revision) -> None:
        """Keeps a revision whole that was read live, if a DaemonSet needs it and it is as its watch has shown it."""
        kept = self.revision(read.namespace, read.name)
        if kept is not None and (kept.uid, kept.resource_version) == (read.uid, read.resource_version):
            self._namespaces[read.namespace].revisions.put(replace(self._reduced(read), changed=kept.changed))

    def drop_object(self, revision: Revision) -> None:
        """Keeps of a revision, which is kept, what is said besides its object."""
        self._namespaces[revision.namespace].revisions.put(revision.without_object())

    def _remove(self, obj: Watched, visit: Visit) -> None:
        match obj:
            case DaemonSet():
                self._remove_daemon_set(obj.key)
                visit(DaemonSetChange(obj, None))
            case Node():
                name = obj.projection.name
                self._remove_node(bucket_of(name, self.bucket_count), name)
                visit(NodeChange(obj.projection, None))
            case Pod():
                self._remove_pod(obj.namespace, obj.projection.name)
                visit(PodChange(obj.namespace, obj.projection, None))
            case Revision():
                self._remove_revision(obj.namespace, obj.name)
                visit(RevisionChange(obj, None))

    def _forget_missing(self, resource: Resource, listed: Iterable[Watched], visit: Visit) -> None:
        """What is kept and not listed is gone without a last state."""
        there = set(map(_identity, listed))
        if resource is Resource.DAEMON_SETS:
            for key in [key for key in self._daemon_sets if key not in there]:
                visit(DaemonSetChange(self._remove_daemon_set(key), None))
        elif resource is Resource.NODES:
            for node in [node for node in self.nodes if Key("", node.name) not in there]:
                self._remove_node(node.bucket, node.name)
                visit(NodeChange(node.node(), None))
        elif resource is Resource.PODS:
            kept = [(namespace, name) for namespace, of in self._namespaces.items() for name in of.pods]
            for namespace, name in kept:
                if Key(namespace, name) not in there:
                    visit(PodChange(namespace, self._remove_pod(namespace, name), None))
        else:
            kept = [(namespace, name) for namespace, of in self._namespaces.items() for name in of.revisions.by_name]
            for namespace, name in kept:
                if Key(namespace, name) not in there:
                    visit(RevisionChange(self._remove_revision(namespace, name), None))

    def _remove_pod(self, namespace: str, name: str) -> v1.Pod | None:
        kept = self._namespaces.get(namespace)
        pod = kept.remove(name) if kept else None
        if pod is None:
            return None
        self._changes.removed(Resource.PODS)
        self._drop_if_empty(namespace)
        self._parts.release(pod)
        return pod.pod()

    def _remove_revision(self, namespace: str, name: str) -> Revision | None:
        kept = self._namespaces.get(namespace)
        if kept is None:
            return None
        revision = kept.revisions.remove(name)
        if revision is not None:
            self._changes.removed(Resource.REVISIONS)
        kept.sealed.pop(name, None)
        self._drop_if_empty(namespace)
        return revision

    def _drop_if_empty(self, namespace: str) -> None:
        kept = self._namespaces[namespace]
        if not kept.pods and not kept.revisions.by_name:
            del self._namespaces[namespace]


def is_kept(obj: Watched) -> bool:
    """Whether an object is kept: of pods and revisions those that a DaemonSet controls, or nobody does."""
    match obj:
        case Pod(projection=pod):
            return not pod.HasField("controller") or pod.controller.kind == OWNER_KIND
        case Revision(controller=controller):
            return controller is None or controller.kind == OWNER_KIND
        case _:
            return True


def _is_own(workload: DaemonSet, shared: v1.SharedMetadata) -> bool:
    """Whether a workload controls the pods that have this in common, and selects them."""
    owner = Owner(OWNER_KIND, workload.key.name, workload.uid)
    labels = {label.key: label.value for label in shared.labels}
    return owner_of(shared.controller) == owner and workload.selector.selects(labels)


def _is_live(pod: v1.Pod) -> bool:
    return pod.phase not in (v1.POD_PHASE_FAILED, v1.POD_PHASE_SUCCEEDED) and not pod.HasField("deletion_time")


def _identity(obj: Watched) -> Key:
    match obj:
        case DaemonSet():
            return obj.key
        case Node():
            return Key("", obj.projection.name)
        case Pod():
            return Key(obj.namespace, obj.projection.name)
        case Revision():
            return Key(obj.namespace, obj.name)
