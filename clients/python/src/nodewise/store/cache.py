"""The caches of all watched resources."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from .. import tracing, v1
from ..buckets import Buckets, Digest, Labels, OwnerId, SharedParts, Stored, bucket_of, render
from ..changes import Changes
from ..kinds import DAEMON_SET, KIND_OF, KINDS, Key, Kind, Resource, cached_kinds, watched
from ..label_keys import MAX_LABELS, KeySet
from ..objects import Node, Owner, Pod, Revision, Workload
from ..overlaps import Overlaps
from ..policies import RolloutPolicy
from ..revisions import Revisions, concerns
from ..sent_keys import SentKeys
from .events import (
    Applied,
    Bookmark,
    Deleted,
    Event,
    Listed,
    NodeChange,
    PodChange,
    PolicyChange,
    RevisionChange,
    RevisionPage,
    Unknown,
    Visit,
    Watched,
    WorkloadChange,
    identity,
    is_kept,
    resource_of,
)
from .namespace import LivePods, Namespace, PodView, fewest_buckets, is_finished
from .policies import Policies
from .related import related_pods
from .workloads import Workloads

_log = tracing.logger("nodewise.store")
_MAX_FORMER_TARGETS = 1_000
"""Most entries of a policy's status that are sent as those of former targets."""


class Store:
    """The caches for the plans of these kinds of workload. Nodes are sent in `bucket_count` buckets, pods in at most as
    many.
    """

    def __init__(self, bucket_count: int, kinds: Sequence[Kind] = (DAEMON_SET,)) -> None:
        if bucket_count < 1:
            raise ValueError("there is at least one bucket")
        self.kinds = tuple(cached_kinds(kinds))
        """The kinds of workload that are cached."""
        self.watched = tuple(watched(kinds))
        """The resources that are cached."""
        self.bucket_count = bucket_count
        self.nodes = Buckets(bucket_count)
        self._workloads = Workloads()
        self._namespaces: dict[str, Namespace] = {}
        self._policies = Policies()
        self.cut = 0
        """The number of added or changed objects of which labels that a decision could read were not sent."""
        self._parts = SharedParts()
        self._labels = Labels()
        self._keys = SentKeys()
        self._reached: dict[Resource, str] = {}
        self._unknown: dict[Resource, str] = {}
        """The resources of which it is not known which objects there are, and why."""
        self._changes = Changes()
        self._pages: dict[str, Revisions] = {}
        """The revisions of an incomplete list, by namespace."""
        self.overlaps = Overlaps()
        self.is_relisting = False
        """Versions restarted, and not every resource was listed since: the caches mix two histories."""

    def apply(self, event: Event, visit: Visit) -> None:
        """Applies a watch event. Calls `visit` with each change as it is made."""
        match event:
            case Applied(obj):
                self._advance(resource_of(obj), obj.resource_version)
                self._put(obj, visit)
            case Deleted(obj):
                self._advance(resource_of(obj), obj.resource_version)
                self._remove(obj, visit)
            case RevisionPage(revisions, is_first):
                self._put_page(revisions, is_first)
            case Listed(resource, objects, version):
                self._reached[resource] = version
                self._unknown.pop(resource, None)
                if resource is Resource.REVISIONS:
                    objects = [*self._take_pages(), *objects]
                self._forget_missing(resource, objects, visit)
                for obj in objects:
                    self._put(obj, visit)
                self.is_relisting = self.is_relisting and bool(self.unsynced())
            case Unknown(resource, reason):
                self._unknown[resource] = reason
            case Bookmark(resource, version):
                self._advance(resource, version)

    def _advance(self, resource: Resource, version: str) -> None:
        """Records the version that a watch has reached. Ignored before the first list."""
        if resource in self._reached:
            self._reached[resource] = version

    def restart_versions(self) -> None:
        """Versions restarted (D-112): the same version may now stand for another state. The cached objects of each
        resource stay until a list replaces them.
        """
        self.is_relisting = True
        self._reached.clear()
        self._workloads.sealed.clear()
        for kept in self._namespaces.values():
            kept.sealed.clear()

    def unsynced(self) -> list[Resource]:
        """The resources whose first list is not complete yet."""
        return [resource for resource in self.watched if resource not in self._reached]

    def unknown(self, kind: Kind) -> str | None:
        """Why no plan can be made for workloads of a kind: it is not known which objects of some resource there are.
        None if it is.
        """
        reasons = (
            f"nothing is rolled out without knowing the {resource.value}: {reason}"
            for resource, reason in self._unknown.items()
            if resource in kind.reads
        )
        return next(reasons, None)

    def reached(self, resource: Resource) -> str:
        """The resourceVersion that the watch of a resource has reached; empty before the first list."""
        return self._reached.get(resource, "")

    def workload(self, key: Key) -> Workload | None:
        """The workload of this key."""
        return self._workloads.get(key)

    def every_key(self, kind: Kind = DAEMON_SET) -> list[Key]:
        """The keys of all workloads of a kind, in order."""
        return sorted(workload.key for workload in self._workloads.of_kind(kind))

    def resolve(self, kind: Kind, namespace: str, controller: Owner | None) -> Workload | None:
        """The workload of this kind that a controller reference points at: the one of that name and uid in the object's
        namespace (D-103).
        """
        if controller is None or controller.kind != kind.name:
            return None
        workload = self._workloads.get(Key(namespace, controller.name, kind.name))
        return workload if workload is not None and workload.uid == controller.uid else None

    def matching(self, kind: Kind, namespace: str, labels: Mapping[str, str]) -> list[Workload]:
        """The workloads of a kind in a namespace whose selectors match an orphan's labels, ordered by name (D-104)."""
        of_kind = self._workloads.in_namespace(kind, namespace)
        return [workload for workload in of_kind if workload.selector.matches(labels)]

    def controlled(self, kind: Kind, workload: Workload) -> list[Workload]:
        """The workloads of a kind that this workload controls, by uid, ordered by name."""
        return self._workloads.controlled(kind, workload.key.namespace, workload.uid)

    def orphans(self, kind: Kind, workload: Workload) -> list[Workload]:
        """The workloads of a kind without a controller that this workload's selector matches, ordered by name. Without
        those that cannot be changed.
        """
        others = self._workloads.in_namespace(kind, workload.key.namespace)
        return [
            other
            for other in others
            if other.controller is None
            and workload.selector.selects(other.labels)
            and not self._workloads.is_sealed(other)
        ]

    def siblings(self, workload: Workload) -> list[Workload]:
        """The workloads of this workload's kind that have the same controller, this one included; none if it has no
        controller.
        """
        if workload.controller is None:
            return []
        return self._workloads.controlled(workload.kind, workload.key.namespace, workload.controller.uid)

    def related_pods(self, workload: Workload) -> list[v1.NodePodCount]:
        """The number of related pods on each node, as the plan of a ReplicaSet reads it."""
        kept = self._namespaces.get(workload.key.namespace)
        return related_pods(kept, workload, self.siblings(workload), self.bucket_count) if kept else []

    def controlled_pods(self, workload: Workload) -> list[v1.Pod]:
        """The pods that a workload controls, by kind, name and uid, in any state."""
        kept = self._namespaces.get(workload.key.namespace)
        return list(kept.controlled_pods(workload)) if kept else []

    def unfinished_pods(self, workload: Workload) -> int:
        """The number of pods that a workload controls and that have not finished."""
        return sum(not is_finished(pod) for pod in self.controlled_pods(workload))

    def claimable(self, kind: Kind, workload: Workload) -> list[Workload]:
        """The workloads of a kind that a workload controls, and those without a controller in its namespace, ordered by
        name.
        """
        others = self._workloads.in_namespace(kind, workload.key.namespace)
        return [other for other in others if other.controller is None or other.controller.uid == workload.uid]

    def revisions(self, workload: Workload) -> list[Revision]:
        """The revisions that a workload controls, and orphans that its selector matches (D-4), ordered by name."""
        kept = self._namespaces.get(workload.key.namespace)
        revisions = kept.revisions.by_name if kept else {}
        concern = (revision for revision in revisions.values() if concerns(workload, revision))
        return sorted(concern, key=lambda revision: revision.name)

    def pod(self, namespace: str, name: str) -> v1.Pod | None:
        """The pod of this name, if it is cached: an orphan, or controlled by a workload of a cached kind."""
        kept = self._namespaces.get(namespace)
        pod = kept.pods.get(name) if kept else None
        return None if pod is None else pod.pod()

    def has_node(self, name: str) -> bool:
        """Whether there is a node of this name."""
        return self.nodes.get(bucket_of(name, self.bucket_count), name) is not None

    @property
    def last_change(self) -> int:
        """The number of the last change of the caches."""
        return self._changes.last

    def changed(self, resource: Resource, namespace: str, name: str) -> int:
        """The number of the last change of a pod, revision or workload. For a node, or an object that is not in the
        caches: of the last removal of any object of the resource.
        """
        if resource in KIND_OF:
            changed = self._workloads.changed(Key(namespace, name, KIND_OF[resource].name))
            return self._changes.removal(resource) if changed is None else changed
        kept = self._namespaces.get(namespace)
        obj: Stored | Revision | None = None
        if kept is not None and resource is Resource.PODS:
            obj = kept.pods.get(name)
        elif kept is not None and resource is Resource.REVISIONS:
            obj = kept.revisions.by_name.get(name)
        return self._changes.removal(resource) if obj is None else obj.changed

    def revisions_changed(self, namespace: str) -> int:
        """The number of the last change or removal of any revision of a namespace."""
        kept = self._namespaces.get(namespace)
        revisions = kept.revisions.by_name.values() if kept else ()
        return max([self._changes.removal(Resource.REVISIONS), *(revision.changed for revision in revisions)])

    def live_pods(self, workload: Workload, nodes: Collection[str]) -> dict[str, LivePods]:
        """The existing ones of these nodes, with the workload's live pods on or targeting each: pods that it controls
        and selects, and that have not finished and are not being deleted.
        """
        bucket_of_node = {name: bucket_of(name, self.bucket_count) for name in nodes}
        live = {name: LivePods() for name, bucket in bucket_of_node.items() if self.nodes.get(bucket, name) is not None}
        kept = self._namespaces.get(workload.key.namespace)
        return kept.live_pods(workload, live, {bucket_of_node[name] for name in live}) if kept else live

    def live_pods_beyond(self, workload: Workload, most: int) -> LivePods | None:
        """The workload's live pods, if it has more than `most` pods in any state."""
        kept = self._namespaces.get(workload.key.namespace)
        return kept.live_pods_beyond(workload, most) if kept else None

    def revision(self, namespace: str, name: str) -> Revision | None:
        """The revision of this name, if it is cached: an orphan, or controlled by a workload of a cached kind."""
        kept = self._namespaces.get(namespace)
        return kept.revisions.by_name.get(name) if kept else None

    def policies(self, workload: Workload) -> list[RolloutPolicy]:
        """The RolloutPolicies of a workload's snapshot. Each targets the workload, or may target it."""
        return self._policies.sent(workload) if Resource.POLICIES in workload.kind.reads else []

    def has_policy(self, workload: Workload) -> bool:
        """Whether a workload has a RolloutPolicy, or may have one."""
        return any(True for _ in self._policies.may_target(workload))

    def former_targets(self, kind: Kind, policy: RolloutPolicy) -> list[str]:
        """The uids of workloads of a kind in the status of a RolloutPolicy that do not exist any more, or that the
        policy does not target any more. One whose targets cannot be told may still target all.
        """

        def is_target(name: str, uid: str) -> bool:
            found = self._workloads.get(Key(policy.namespace, name, kind.name))
            return found is not None and found.uid == uid and policy.may_target(found)

        return [uid for name, uid in policy.recorded if not is_target(name, uid)][:_MAX_FORMER_TARGETS]

    def targets(self, kind: Kind, policy: RolloutPolicy) -> Iterator[Workload]:
        """The workloads of a kind that a RolloutPolicy targets, or may target, ordered by name."""
        of_namespace = self._workloads.in_namespace(kind, policy.namespace)
        return (workload for workload in of_namespace if policy.may_target(workload))

    def with_policies(self, kind: Kind) -> Iterator[Workload]:
        """The workloads of a kind that have a RolloutPolicy, or may have one. One with several comes several times."""
        return (workload for policy in self._policies for workload in self.targets(kind, policy))

    def node_buckets(
        self, workload: Workload, known: Callable[[Digest], bool], *, shares_labels: bool = False
    ) -> list[v1.Bucket]:
        """The node buckets to send for a workload. With `shares_labels` the receiver reads shared labels."""
        self.ensure_keys(workload)
        keys = self._keys.of_nodes()
        return render(self.nodes, None, keys, self.bucket_count, known, shares_labels=shares_labels)

    def pod_buckets(self, workload: Workload, known: Callable[[Digest], bool]) -> list[v1.Bucket]:
        """The pod buckets to send for a workload: its pods, and the orphans of its namespace that it selects (D-3)."""
        self.ensure_keys(workload)
        namespace = workload.key.namespace
        kept = self._namespaces.get(namespace)
        owned, orphans = kept.sets(workload, self.bucket_count) if kept else (None, None)
        count = fewest_buckets(workload.key.kind, self.bucket_count) if owned is None else owned.count
        return render(owned, orphans, self._keys.of_pods(namespace), count, known)

    def ensure_keys(self, workload: Workload) -> None:
        """Makes sure that the labels that a workload names are sent, also if the caches have another version of it."""
        kept = self._workloads.get(workload.key)
        if kept is None or kept.label_keys != workload.label_keys:
            self._keys.name_besides(workload)

    def _warn_all_cut_labels(self, namespace: str) -> None:
        """Logs labels that cannot be sent, for objects that were cached before a workload named more labels."""
        if self._keys.nodes_have_grown():
            keys = self._keys.of_nodes()
            for node in self.nodes:
                self._warn_cut_labels(Resource.NODES, "", node, keys)
        if self._keys.pods_have_grown(namespace):
            keys, kept = self._keys.of_pods(namespace), self._namespaces.get(namespace)
            for pod in kept.pods.values() if kept else ():
                self._warn_cut_labels(Resource.PODS, namespace, pod, keys)

    def _warn_cut_labels(self, resource: Resource, namespace: str, stored: Stored, keys: KeySet) -> None:
        """Logs if some labels of an added or changed object cannot be sent."""
        cut = stored.cut(keys)
        if not cut:
            return
        self.cut += 1
        _log.warning(
            "%d labels of %s %s that plans may read are not sent: at most %d are",
            cut,
            resource.value,
            Key(namespace, stored.name),
            MAX_LABELS,
        )

    def pod_view(self, key: Key, uid: str) -> PodView:
        """The cached pods of a workload."""
        return PodView(self._namespaces.get(key.namespace), OwnerId(key.kind, uid))

    def forget_orphan(self, resource: Resource, namespace: str, name: str) -> None:
        """Removes an orphan that the apiserver does not find, before its watch reports that."""
        # Another object may have that name by now.
        if resource in KIND_OF:
            key = Key(namespace, name, KIND_OF[resource].name)
            workload = self._workloads.get(key)
            if workload is not None and workload.controller is None:
                self._remove_workload(key)
            return
        kept = self._namespaces.get(namespace)
        if kept is None:
            return
        if resource is Resource.PODS:
            pod = kept.pods.get(name)
            if pod is not None and pod.owner is None:
                self._remove_pod(namespace, name)
        elif resource is Resource.REVISIONS:
            revision = kept.revisions.by_name.get(name)
            if revision is not None and revision.controller is None:
                self._remove_revision(namespace, name)

    def seal(self, resource: Resource, namespace: str, name: str) -> None:
        """Marks a revision, an orphaned pod or an orphaned workload that cannot be changed, until it changes. A marked
        revision is sent with that mark. A marked pod or workload is not sent.
        """
        if resource in KIND_OF:
            self._workloads.seal(Key(namespace, name, KIND_OF[resource].name))
            return
        kept = self._namespaces.get(namespace)
        if kept is None:
            return
        revision = kept.revisions.by_name.get(name)
        if resource is Resource.PODS:
            kept.leave_out(name)
        elif resource is Resource.REVISIONS and revision is not None:
            kept.sealed[name] = revision.resource_version

    def is_sealed(self, revision: Revision) -> bool:
        """Whether a revision has that mark."""
        kept = self._namespaces.get(revision.namespace)
        return kept is not None and kept.sealed.get(revision.name) == revision.resource_version

    def count(self, resource: Resource) -> int:
        """The number of cached objects of a resource."""
        match resource:
            case Resource.NODES:
                return len(self.nodes)
            case Resource.PODS:
                return sum(len(kept.pods) for kept in self._namespaces.values())
            case Resource.REVISIONS:
                return sum(len(kept.revisions.by_name) for kept in self._namespaces.values())
            case Resource.POLICIES:
                return sum(1 for _ in self._policies)
            case _:
                return sum(1 for _ in self._workloads.of_kind(KIND_OF[resource]))

    def _put(self, obj: Watched, visit: Visit) -> None:
        match obj:
            case Workload():
                self._put_workload(obj, visit)
            case Node():
                self._put_node(obj, visit)
            case Pod():
                self._put_pod(obj, visit)
            case Revision():
                self._put_revision(obj, visit)
            case RolloutPolicy():
                self._put_policy(obj, visit)

    def _put_workload(self, workload: Workload, visit: Visit) -> None:
        key = workload.key
        old, changed = self._workloads.get(key), self._workloads.changed(key)
        is_same = old is not None and (old.uid, old.resource_version) == (workload.uid, workload.resource_version)
        # After versions restarted, one version may stand for two states (D-112).
        if changed is None or not is_same or self.is_relisting:
            changed = self._changes.next()
        # A sealed orphan that changed is tried again, as if it were new.
        is_back = old is not None and workload.controller is None and self._workloads.is_sealed(old) and not is_same
        self._workloads.put(workload, changed)
        self._keys.replace(old, workload)
        self._warn_all_cut_labels(key.namespace)
        visit(WorkloadChange(None if is_back else old, workload))

    def _put_node(self, node: Node, visit: Visit) -> None:
        stored = self._labels.store_node(node.projection, node.resource_version, self.bucket_count)
        old = self.nodes.put(stored)
        if old is not None:
            self._labels.release(old)
        keys = self._keys.of_nodes()
        # Heartbeats change nodes all the time, without changing the sent fields.
        if old is None or not old.is_sent_the_same(stored, keys):
            self._warn_cut_labels(Resource.NODES, "", stored, keys)
            visit(NodeChange(old.sent_node(keys) if old else None, stored.sent_node(keys)))

    def _remove_node(self, bucket: int, name: str) -> Stored | None:
        node = self.nodes.remove(bucket, name)
        if node is not None:
            self._labels.release(node)
            self._changes.removed(Resource.NODES)
        return node

    def _remove_workload(self, key: Key) -> Workload | None:
        old = self._workloads.remove(key)
        if old is not None:
            self._workloads.sealed.pop(key, None)
            self._keys.replace(old, None)
            self._changes.removed(KINDS[key.kind].resource)
            kept = self._namespaces.get(key.namespace)
            if kept is not None:
                kept.selected.pop(key, None)
        return old

    def _put_pod(self, pod: Pod, visit: Visit) -> None:
        projection, namespace = pod.projection, pod.namespace
        if not is_kept(pod, self.kinds):
            old = self._remove_pod(namespace, projection.name)
            if old is not None:
                visit(PodChange(namespace, old, projection))
            return
        stored = self._parts.store_pod(projection, pod.resource_version, self.bucket_count, self._changes.next())
        kept = self._namespaces.setdefault(namespace, Namespace())
        before = kept.pods.get(stored.name)
        # After versions restarted, one version may stand for two states (D-112).
        ordered = not self.is_relisting
        if ordered and before is not None and before.version == stored.version:
            # A list after a gap has the same object again.
            self._parts.release(stored)
            return
        # A marked orphan that changed is tried again, as if it were new.
        is_back = stored.owner is None and stored.name in kept.left_out
        kept.put(stored, self.bucket_count)
        keys = self._keys.of_pods(namespace)
        is_news = is_back or before is None or not before.is_sent_the_same(stored, keys)
        if is_news:
            self._warn_cut_labels(Resource.PODS, namespace, stored, keys)
        # Most events of a pod change no sent field, for example a container's state or an annotation. But upstream
        # counts each event of a pod that is being deleted.
        if is_news or projection.HasField("deletion_time"):
            visit(PodChange(namespace, before.pod() if before and not is_back else None, projection))
        if before is not None:
            self._parts.release(before)

    def _put_revision(self, revision: Revision, visit: Visit) -> None:
        revisions = self._namespaces.setdefault(revision.namespace, Namespace()).revisions
        foreign = not is_kept(revision, self.kinds)
        old = revisions.by_name.get(revision.name)
        same = old is not None and old.resource_version == revision.resource_version
        if not foreign:
            # After versions restarted, one version may stand for two states (D-112).
            changed = old.changed if old and same and not self.is_relisting else self._changes.next()
            revision = replace(self._reduced(revision, revisions), changed=changed)
            revisions.put(revision)
        elif revisions.remove(revision.name) is not None:
            self._changes.removed(Resource.REVISIONS)
        self._drop_if_empty(revision.namespace)
        if not same and not (foreign and old is None):
            # A sealed orphan that changed is tried again, as if it were new.
            is_back = old is not None and revision.controller is None and self.is_sealed(old)
            visit(RevisionChange(None if is_back else old, revision))

    def _put_policy(self, policy: RolloutPolicy, visit: Visit) -> None:
        old = self._policies.put(policy)
        self._keys.replace_policy(old, policy)
        self._warn_all_cut_labels(policy.namespace)
        is_same = old is not None and (old.uid, old.resource_version) == (policy.uid, policy.resource_version)
        # After versions restarted, one version may stand for two states (D-112).
        if not is_same or self.is_relisting:
            visit(PolicyChange(old, policy))

    def _remove_policy(self, namespace: str, name: str) -> RolloutPolicy | None:
        old = self._policies.remove(namespace, name)
        self._keys.replace_policy(old, None)
        return old

    def _put_page(self, revisions: Iterable[Revision], is_first: bool) -> None:
        """Keeps a page of a list. No plan may use an incomplete list, so the page is not visible. The size limits are
        those of a complete list.
        """
        if is_first:
            self._pages.clear()
        for revision in revisions:
            page = self._pages.setdefault(revision.namespace, Revisions())
            page.put(self._reduced(revision, page))

    def _take_pages(self) -> list[Revision]:
        pages, self._pages = self._pages, {}
        return [revision for page in pages.values() for revision in page.by_name.values()]

    def _reduced(self, revision: Revision, beside: Revisions | None = None) -> Revision:
        """The cached form of a revision, which has to fit beside these. Without `beside` there is no limit."""
        namespace, keys = revision.namespace, self._keys.of_pods(revision.namespace).labels
        readers = [kind for kind in self.kinds if Resource.REVISIONS in kind.reads]
        count = sum(self._workloads.count_in(kind, namespace) for kind in readers)
        has_room = beside is None or beside.has_room_for(revision, count)
        is_whole = has_room and any(
            concerns(workload, revision)
            for kind in readers
            for workload in self._workloads.in_namespace(kind, namespace)
        )
        revision = revision.with_labels_of(keys)
        return revision if is_whole else revision.without_object()

    def keep_whole(self, read: Revision) -> None:
        """Caches a revision completely that was read live, if a workload needs it and its watch shows the same
        version.
        """
        kept = self.revision(read.namespace, read.name)
        if kept is not None and (kept.uid, kept.resource_version) == (read.uid, read.resource_version):
            self._namespaces[read.namespace].revisions.put(replace(self._reduced(read), changed=kept.changed))

    def drop_object(self, revision: Revision) -> None:
        """Reduces a cached revision to its metadata."""
        self._namespaces[revision.namespace].revisions.put(revision.without_object())

    def _remove(self, obj: Watched, visit: Visit) -> None:
        match obj:
            case Workload():
                self._remove_workload(obj.key)
                visit(WorkloadChange(obj, None))
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
            case RolloutPolicy():
                self._remove_policy(obj.namespace, obj.name)
                visit(PolicyChange(obj, None))

    def _forget_missing(self, resource: Resource, listed: Iterable[Watched], visit: Visit) -> None:
        """Removes the cached objects that a list does not have."""
        there = set(map(identity, listed))
        if resource in KIND_OF:
            for key in [key for key in self.every_key(KIND_OF[resource]) if key not in there]:
                visit(WorkloadChange(self._remove_workload(key), None))
        elif resource is Resource.NODES:
            for node in [node for node in self.nodes if Key("", node.name) not in there]:
                self._remove_node(node.bucket, node.name)
                visit(NodeChange(node.node(), None))
        elif resource is Resource.PODS:
            kept = [(namespace, name) for namespace, of in self._namespaces.items() for name in of.pods]
            for namespace, name in kept:
                if Key(namespace, name) not in there:
                    visit(PodChange(namespace, self._remove_pod(namespace, name), None))
        elif resource is Resource.POLICIES:
            for policy in [policy for policy in self._policies if identity(policy) not in there]:
                visit(PolicyChange(self._remove_policy(policy.namespace, policy.name), None))
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
