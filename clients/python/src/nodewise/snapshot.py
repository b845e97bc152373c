"""From what is known to the request: one workload's snapshot."""

from collections.abc import Callable, Iterable, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from . import convert, times, v1
from .buckets import Digest, node_buckets, pod_buckets, render
from .convert import KubernetesObject
from .objects import DaemonSet, Revision
from .store import Store


def take(
    store: Store,
    workload: DaemonSet,
    state: v1.ReconcileState,
    live: Sequence[Revision],
    *,
    now: Timestamp,
    known: Callable[[Digest], bool],
) -> v1.Snapshot:
    """Takes the snapshot of a workload. Buckets of which `known` says that the receiver has them go by their digest
    alone.

    `live` are ControllerRevisions, read live, whose names a plan found taken.
    """
    owned, orphans = store.pods(workload.key.namespace, workload.uid)
    return v1.Snapshot(
        now=now,
        workload=v1.Workload(daemon_set=v1.DaemonSet(object=workload.object)),
        revisions=_revisions(store, workload, live),
        caches_synced=not store.unsynced(),
        bucket_count=store.bucket_count,
        node_buckets=render(store.nodes, None, store.bucket_count, known),
        pod_buckets=render(owned, orphans, store.bucket_count, known),
        digest_function=v1.DIGEST_FUNCTION_SHA256,
        state=state,
    )


def _revisions(store: Store, workload: DaemonSet, live: Sequence[Revision]) -> list[v1.ControllerRevision]:
    """The cached revisions, and in the place of or besides them those that were read live."""
    read = {revision.name for revision in live}
    cached = [
        # What cannot be changed is used as it is or not at all, as what was read after a collision.
        v1.ControllerRevision(object=revision.object, read_after_name_collision=store.is_sealed(revision))
        for revision in store.revisions(workload.key.namespace, workload.uid)
        if revision.name not in read
    ]
    return cached + [v1.ControllerRevision(object=revision.object, read_after_name_collision=True) for revision in live]


def snapshot_of(
    daemon_set: KubernetesObject,
    *,
    nodes: Iterable[KubernetesObject],
    pods: Iterable[KubernetesObject],
    revisions: Iterable[KubernetesObject],
    state: v1.ReconcileState | None = None,
    now: Timestamp | None = None,
) -> v1.Snapshot:
    """The snapshot of a DaemonSet, for whoever keeps no caches: all nodes, and the pods and ControllerRevisions of its
    namespace, as complete lists show them. Those that belong to others are left out.
    """
    workload = DaemonSet.read(daemon_set)
    owned_or_orphans = (pod for pod in map(convert.pod, pods) if pod.controller.uid in ("", workload.uid))
    known = (
        revision
        for revision in map(Revision.read, revisions)
        if revision.controller is None or revision.controller.uid == workload.uid
    )
    return v1.Snapshot(
        now=now or times.now(),
        workload=v1.Workload(daemon_set=v1.DaemonSet(object=workload.object)),
        revisions=[v1.ControllerRevision(object=revision.object) for revision in known],
        caches_synced=True,
        bucket_count=1,
        node_buckets=node_buckets(map(convert.node, nodes)),
        pod_buckets=pod_buckets(owned_or_orphans),
        digest_function=v1.DIGEST_FUNCTION_SHA256,
        state=state,
    )
