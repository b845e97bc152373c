"""From what is known to the request: one workload's snapshot."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from . import convert, times, v1
from .buckets import Digest, node_buckets, pod_buckets
from .convert import KubernetesObject
from .objects import DaemonSet, Revision
from .reads import KeySet, reduce_labels
from .revisions import MAX_BYTES, concerns
from .store import Store


class Taken(NamedTuple):
    """A snapshot, and what is not in it."""

    snapshot: v1.Snapshot
    left_out: int
    """How many revisions are left out, since all together are too large."""


def take(
    store: Store,
    workload: DaemonSet,
    state: v1.ReconcileState,
    live: Sequence[Revision],
    *,
    now: Timestamp,
    known: Callable[[Digest], bool],
) -> Taken:
    """Takes the snapshot of a workload. Buckets of which `known` says that the receiver has them go by their digest
    alone.

    `live` are ControllerRevisions, read live, whose names a plan found taken.
    """
    revisions, left_out = _revisions(store, workload, live)
    taken = v1.Snapshot(
        now=now,
        workload=v1.Workload(daemon_set=v1.DaemonSet(object=workload.object)),
        revisions=revisions,
        caches_synced=not store.unsynced(),
        bucket_count=store.bucket_count,
        node_buckets=store.node_buckets(workload, known),
        pod_buckets=store.pod_buckets(workload, known),
        digest_function=v1.DIGEST_FUNCTION_SHA256,
        state=state,
    )
    return Taken(taken, left_out)


def unread(store: Store, workload: DaemonSet, live: Sequence[Revision]) -> list[Revision]:
    """Those revisions that the snapshot would have now and that the caches do not keep whole: they have to be read
    live, and kept with `Store.keep_whole`. A snapshot without them must not be planned from. Others, in whose place
    they come, are kept whole no more.
    """
    store.know(workload)
    cached, fits = _cached(store, workload, live)
    found = [revision for revision in fits if revision.object is None]
    if found:
        sent = {revision.name for revision in fits}
        for revision in cached:
            if revision.name not in sent:
                store.drop_object(revision)
    return found


def _cached(store: Store, workload: DaemonSet, live: Sequence[Revision]) -> tuple[list[Revision], list[Revision]]:
    """The cached revisions in whose place none was read live; and those of them that fit into a snapshot besides what
    was.
    """
    read = {revision.name for revision in live}
    cached = [revision for revision in store.revisions(workload) if revision.name not in read]
    return cached, fitting(cached, MAX_BYTES - sum(revision.size for revision in live))


def _revisions(store: Store, workload: DaemonSet, live: Sequence[Revision]) -> tuple[list[v1.ControllerRevision], int]:
    """The cached revisions, and in the place of or besides them those that were read live; and how many of the cached
    ones are left out since all are too many.
    """
    cached, fits = _cached(store, workload, live)
    # What cannot be changed is used as it is or not at all, as what was read after a collision.
    marked = [(revision.object, store.is_sealed(revision)) for revision in fits]
    marked += [(revision.object, True) for revision in live]
    sent = [
        v1.ControllerRevision(object=served, read_after_name_collision=mark)
        for served, mark in marked
        if served is not None
    ]
    return sent, len(cached) - len(fits)


def fitting(revisions: Sequence[Revision], room: int) -> list[Revision]:
    """The revisions that fit into `room` bytes, in the order in which they came; at least one.

    The workload's own rank before orphans, and new ones before old ones. The first that does not fit, and all that rank
    after it, are left out.
    """
    # Those of equal rank stay in order of their names.
    ranked = sorted(revisions, key=lambda revision: (revision.controller is None, -revision.number))
    fits: set[str] = set()
    for revision in ranked:
        room -= revision.size
        if room < 0 and fits:
            break
        fits.add(revision.name)
    return [revision for revision in revisions if revision.name in fits]


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
    namespace, as complete lists show them. Those that belong to others are left out, and so are orphans that it does
    not select, and labels that it does not name.
    """
    workload = DaemonSet.read(daemon_set)
    of_nodes, of_pods = KeySet.of_nodes([workload.reads]), KeySet.of_pods([workload.reads])
    sent_nodes, sent_pods = (
        [*map(convert.node, nodes)],
        [pod for pod in map(convert.pod, pods) if is_sent(workload, pod)],
    )
    for node in sent_nodes:
        reduce_labels(node, of_nodes)
    for pod in sent_pods:
        reduce_labels(pod, of_pods)
    known = (revision.object for revision in map(Revision.read, revisions) if concerns(workload, revision))
    return v1.Snapshot(
        now=now or times.now(),
        workload=v1.Workload(daemon_set=v1.DaemonSet(object=workload.object)),
        revisions=[v1.ControllerRevision(object=served) for served in known if served is not None],
        caches_synced=True,
        bucket_count=1,
        node_buckets=node_buckets(sent_nodes),
        pod_buckets=pod_buckets(sent_pods),
        digest_function=v1.DIGEST_FUNCTION_SHA256,
        state=state,
    )


def is_sent(workload: DaemonSet, pod: v1.Pod) -> bool:
    """Whether a workload controls a pod, or selects one without a controller."""
    if pod.controller.uid:
        return pod.controller.uid == workload.uid
    return workload.selector.selects({label.key: label.value for label in pod.labels})
