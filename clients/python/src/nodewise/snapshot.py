"""From what is known to the request: one workload's snapshot."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from . import convert, times, v1
from .buckets import Digest, node_buckets, pod_buckets
from .convert import KubernetesObject
from .objects import DaemonSet, Revision
from .reads import KeySet, reduce_labels
from .store import Store, concerns

MAX_REVISION_BYTES = 16 << 20
"""Bytes of the revisions of one snapshot. Anyone who may create revisions in the namespace may make orphans that the
selector matches, and all together must leave room for the rest of the request."""


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


def _revisions(store: Store, workload: DaemonSet, live: Sequence[Revision]) -> tuple[list[v1.ControllerRevision], int]:
    """The cached revisions, and in the place of or besides them those that were read live; and how many of the cached
    ones are left out.
    """
    read = {revision.name for revision in live}
    cached = [revision for revision in store.revisions(workload) if revision.name not in read]
    kept = fitting(cached, MAX_REVISION_BYTES - sum(len(revision.object) for revision in live))
    sent = [
        # What cannot be changed is used as it is or not at all, as what was read after a collision.
        v1.ControllerRevision(object=revision.object, read_after_name_collision=store.is_sealed(revision))
        for revision in kept
    ]
    sent += [v1.ControllerRevision(object=revision.object, read_after_name_collision=True) for revision in live]
    return sent, len(cached) - len(kept)


def fitting(revisions: Sequence[Revision], room: int) -> list[Revision]:
    """The revisions that fit into `room` bytes, in the order in which they came; at least one.

    The workload's own rank before orphans, and new ones before old ones. The first that does not fit, and all that rank
    after it, are left out.
    """
    # Those of equal rank stay in order of their names.
    ranked = sorted(revisions, key=lambda revision: (revision.controller is None, -revision.number))
    fits: set[str] = set()
    for revision in ranked:
        room -= len(revision.object)
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
    known = (revision for revision in map(Revision.read, revisions) if concerns(workload, revision))
    return v1.Snapshot(
        now=now or times.now(),
        workload=v1.Workload(daemon_set=v1.DaemonSet(object=workload.object)),
        revisions=[v1.ControllerRevision(object=revision.object) for revision in known],
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
