"""Builds the snapshot of one workload from the caches."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from . import convert, times, v1
from .buckets import Digest, node_buckets, pod_buckets
from .convert import KubernetesObject
from .label_keys import KeySet, reduce_labels
from .objects import DaemonSet, Revision
from .revisions import MAX_BYTES, concerns
from .store import Store


class Taken(NamedTuple):
    """A snapshot, and the number of objects that it leaves out."""

    snapshot: v1.Snapshot
    left_out: int
    """The number of revisions that are left out because all together are too large."""


def take(
    store: Store,
    workload: DaemonSet,
    state: v1.ReconcileState,
    live: Sequence[Revision],
    *,
    now: Timestamp,
    known: Callable[[Digest], bool],
) -> Taken:
    """Builds the snapshot of a workload. A bucket that the receiver has according to `known` is sent as its digest.

    `live` are ControllerRevisions that were read live, because a plan found their names taken.
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
    """The revisions of the next snapshot that the caches do not have completely. They must be read live and passed to
    `Store.keep_whole`: the snapshot is invalid without them. To make room, other revisions are reduced to their
    metadata.
    """
    store.ensure_keys(workload)
    cached, fits = _cached(store, workload, live)
    found = [revision for revision in fits if revision.object is None]
    if found:
        sent = {revision.name for revision in fits}
        for revision in cached:
            if revision.name not in sent:
                store.drop_object(revision)
    return found


def _cached(store: Store, workload: DaemonSet, live: Sequence[Revision]) -> tuple[list[Revision], list[Revision]]:
    """The cached revisions without those that were read live, and those of them that fit into a snapshot together with
    the live ones.
    """
    read = {revision.name for revision in live}
    cached = [revision for revision in store.revisions(workload) if revision.name not in read]
    return cached, fitting(cached, MAX_BYTES - sum(revision.size for revision in live))


def _revisions(store: Store, workload: DaemonSet, live: Sequence[Revision]) -> tuple[list[v1.ControllerRevision], int]:
    """The revisions to send, cached and live, and the number of cached ones that are left out because all together are
    too large.
    """
    cached, fits = _cached(store, workload, live)
    # A sealed revision, like one that was read after a name collision, is used as it is or not at all.
    marked = [(revision.object, store.is_sealed(revision)) for revision in fits]
    marked += [(revision.object, True) for revision in live]
    sent = [
        v1.ControllerRevision(object=served, read_after_name_collision=mark)
        for served, mark in marked
        if served is not None
    ]
    return sent, len(cached) - len(fits)


def fitting(revisions: Sequence[Revision], room: int) -> list[Revision]:
    """The revisions that fit into `room` bytes, in their order; at least one.

    The workload's own revisions rank before orphans, and newer before older ones. The first revision that does not fit,
    and all that rank after it, are left out.
    """
    # Revisions of equal rank stay ordered by name.
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
    """The snapshot of a DaemonSet, for programs without caches. `nodes` are all nodes; `pods` and `revisions` are those
    of its namespace, from complete lists. Objects of other controllers, orphans that the DaemonSet does not select, and
    labels that it does not name are left out.
    """
    workload = DaemonSet.read(daemon_set)
    of_nodes, of_pods = KeySet.of_nodes([workload.label_keys]), KeySet.of_pods([workload.label_keys])
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
    """Whether a workload controls a pod, or selects it as an orphan."""
    if pod.controller.uid:
        return pod.controller.uid == workload.uid
    return workload.selector.selects({label.key: label.value for label in pod.labels})
