"""Builds the snapshot of one workload from the caches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from . import convert, times, v1
from .buckets import node_buckets, pod_buckets
from .convert import ConversionError, KubernetesObject
from .kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, Resource
from .label_keys import KeySet, reduce_labels
from .live import LiveObjects
from .objects import Revision, Workload
from .policies import RolloutPolicy
from .receiver import Receiver
from .revisions import MAX_BYTES, concerns
from .store import Store
from .store.policies import Policies

MAX_OBJECTS = 10_000
"""Most workloads that a workload controls or may adopt in one snapshot: the default limit of the service."""

_T = TypeVar("_T")


class Taken(NamedTuple):
    """A snapshot, and the number of objects that it leaves out."""

    snapshot: v1.Snapshot
    left_out: int
    """The number of revisions, or of ReplicaSets of a Deployment, that are left out because all together are too
    large.
    """


class _Message(NamedTuple):
    """The workload as a part of its snapshot."""

    message: v1.Workload
    left_out: int = 0
    """The number of objects of the workload that are left out."""


def take(
    store: Store,
    workload: Workload,
    state: v1.ReconcileState,
    live: LiveObjects,
    *,
    now: Timestamp,
    receiver: Receiver,
) -> Taken:
    """Builds the snapshot of a workload. A bucket that the receiver has is sent as its digest.

    `live` are objects that were read live, because a plan found their names taken.
    """
    kind = workload.kind
    revisions, left_out = _revisions(store, workload, live.revisions)
    message, more_left_out = _MESSAGES[kind.name](store, workload, live)
    nodes = []
    if Resource.NODES in kind.reads:
        nodes = store.node_buckets(workload, receiver, shares_labels=receiver.reads_shared_labels)
    pods = store.pod_buckets(workload, receiver) if kind.pods is not None else []
    taken = v1.Snapshot(
        now=now,
        workload=message,
        revisions=revisions,
        caches_synced=not store.unsynced(),
        bucket_count=max(len(nodes), len(pods)),
        node_buckets=nodes,
        pod_buckets=pods,
        digest_function=v1.DIGEST_FUNCTION_SHA256,
        state=state,
    )
    return Taken(taken, left_out + more_left_out)


def _daemon_set(store: Store, workload: Workload, _: LiveObjects) -> _Message:
    def message(policy: RolloutPolicy) -> v1.RolloutPolicy:
        former = store.former_targets(workload.kind, policy)
        return v1.RolloutPolicy(object=policy.object, former_target_uids=former)

    return _Message(_daemon_set_with(workload, [message(policy) for policy in store.policies(workload)]))


def _daemon_set_with(workload: Workload, sent: Iterable[v1.RolloutPolicy]) -> v1.Workload:
    return v1.Workload(daemon_set=v1.DaemonSet(object=workload.object, rollout_policies=sent))


def _replica_set(store: Store, workload: Workload, _: LiveObjects) -> _Message:
    related = store.related_pods(workload)
    return _Message(v1.Workload(replica_set=v1.ReplicaSet(object=workload.object, related_pods=related)))


def _deployment(store: Store, workload: Workload, live: LiveObjects) -> _Message:
    """The ReplicaSets that a Deployment controls, and those without a controller that its selector matches. If they do
    not fit into a request, orphans and then the oldest empty ones are left out.
    """
    read = {found.key for found in live.workloads}
    of_workload = [*store.controlled(REPLICA_SET, workload), *store.orphans(REPLICA_SET, workload)]
    cached = [found for found in of_workload if found.key not in read]
    room = MAX_BYTES - sum(len(found.object) for found in live.workloads)
    fits = _fitting(
        cached, [len(found.object) for found in cached], [_rank(found) for found in cached], room, MAX_OBJECTS
    )

    def message(found: Workload, read_after_name_collision: bool) -> v1.DeploymentReplicaSet:
        return v1.DeploymentReplicaSet(
            object=found.object,
            # Only a plan for the strategy Recreate waits for pods to finish.
            unfinished_pods=store.unfinished_pods(found) if workload.recreates else 0,
            read_after_name_collision=read_after_name_collision,
        )

    sets = [message(found, False) for found in fits] + [message(found, True) for found in live.workloads]
    deployment = v1.Deployment(object=workload.object, replica_sets=sets)
    return _Message(v1.Workload(deployment=deployment), len(cached) - len(fits))


def _rank(found: Workload) -> tuple[bool, bool, int, int]:
    """The rank of a ReplicaSet in the snapshot of a Deployment, lowest first: its own, those with pods, new ones."""
    seconds, nanos = found.created
    return found.controller is None, found.replicas == 0, -seconds, -nanos


_MESSAGES: Mapping[str, Callable[[Store, Workload, LiveObjects], _Message]] = {
    DAEMON_SET.name: _daemon_set,
    REPLICA_SET.name: _replica_set,
    DEPLOYMENT.name: _deployment,
}
"""How the snapshot of each kind of workload contains it."""


def unread(store: Store, workload: Workload, live: Sequence[Revision]) -> list[Revision]:
    """The revisions of the next snapshot that the caches do not have completely. They must be read live and passed to
    `Store.keep_whole`: the snapshot is invalid without them. To make room, other revisions are reduced to their
    metadata.
    """
    if Resource.REVISIONS not in workload.kind.reads:
        return []
    store.ensure_keys(workload)
    cached, fits = _cached(store, workload, live)
    found = [revision for revision in fits if revision.object is None]
    if found:
        sent = {revision.name for revision in fits}
        for revision in cached:
            if revision.name not in sent:
                store.drop_object(revision)
    return found


def _cached(store: Store, workload: Workload, live: Sequence[Revision]) -> tuple[list[Revision], list[Revision]]:
    """The cached revisions without those that were read live, and those of them that fit into a snapshot together with
    the live ones.
    """
    read = {revision.name for revision in live}
    cached = [revision for revision in store.revisions(workload) if revision.name not in read]
    return cached, fitting(cached, MAX_BYTES - sum(revision.size for revision in live))


def _revisions(store: Store, workload: Workload, live: Sequence[Revision]) -> tuple[list[v1.ControllerRevision], int]:
    """The revisions to send, cached and live, and the number of cached ones that are left out because all together are
    too large.
    """
    if Resource.REVISIONS not in workload.kind.reads:
        return [], 0
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
    ranks = [(revision.controller is None, -revision.number) for revision in revisions]
    return _fitting(revisions, [revision.size for revision in revisions], ranks, room)


def _fitting(
    objects: Sequence[_T], sizes: Sequence[int], ranks: Sequence[tuple[int, ...]], room: int, most: int | None = None
) -> list[_T]:
    """The objects of these sizes and ranks that fit into `room` bytes, and of which there are not more than `most`."""
    # Objects of equal rank stay in their order.
    ranked = sorted(range(len(objects)), key=lambda index: ranks[index])
    fits: set[int] = set()
    for index in ranked[:most]:
        room -= sizes[index]
        if room < 0 and fits:
            break
        fits.add(index)
    return [found for index, found in enumerate(objects) if index in fits]


def snapshot_of(
    daemon_set: KubernetesObject,
    *,
    nodes: Iterable[KubernetesObject],
    pods: Iterable[KubernetesObject],
    revisions: Iterable[KubernetesObject],
    policies: Iterable[KubernetesObject] = (),
    state: v1.ReconcileState | None = None,
    now: Timestamp | None = None,
) -> v1.Snapshot:
    """The snapshot of a DaemonSet, for programs without caches. `nodes` are all nodes; `pods`, `revisions` and
    RolloutPolicies are those of its namespace, from complete lists. Objects of other controllers, orphans that the
    DaemonSet does not select, policies that do not target it, and labels that neither names are left out. A plan for a
    DaemonSet with policies may be applied only if its `rollout_policy_uids` name each policy of the snapshot.

    Raises ConversionError, which names the argument, the index and the field, if an object does not have the shape
    that its API promises.
    """
    workload = Workload.read(DAEMON_SET, daemon_set)
    cached = Policies()
    for policy in _each("policies", RolloutPolicy.read, policies):
        cached.put(policy)
    heeded = cached.sent(workload)
    of_nodes = KeySet.of_nodes([workload.label_keys, *(policy.label_keys for policy in heeded)])
    of_pods = KeySet.of_pods([workload.label_keys])
    sent_nodes, sent_pods = (
        [*_each("nodes", convert.node, nodes)],
        [pod for pod in _each("pods", convert.pod, pods) if is_sent(workload, pod)],
    )
    for node in sent_nodes:
        reduce_labels(node, of_nodes)
    for pod in sent_pods:
        reduce_labels(pod, of_pods)
    read = _each("revisions", Revision.read, revisions)
    known = (revision.object for revision in read if concerns(workload, revision))
    return v1.Snapshot(
        now=now or times.now(),
        workload=_daemon_set_with(workload, [v1.RolloutPolicy(object=policy.object) for policy in heeded]),
        revisions=[v1.ControllerRevision(object=served) for served in known if served is not None],
        caches_synced=True,
        bucket_count=1,
        node_buckets=node_buckets(sent_nodes),
        pod_buckets=pod_buckets(sent_pods),
        digest_function=v1.DIGEST_FUNCTION_SHA256,
        state=state,
    )


def _each(argument: str, read: Callable[[KubernetesObject], _T], objects: Iterable[KubernetesObject]) -> Iterator[_T]:
    """Reads each object of an argument."""
    if isinstance(objects, str | bytes | Mapping):
        raise ConversionError(argument, "is no list of objects; of a served list, pass convert.items(text)")
    for index, item in enumerate(objects):
        try:
            yield read(item)
        except ConversionError as error:
            path = f"{argument}[{index}]"
            raise ConversionError(path if error.path == "." else f"{path}.{error.path}", error.message) from error


def is_sent(workload: Workload, pod: v1.Pod) -> bool:
    """Whether a workload controls a pod, or selects it as an orphan."""
    if pod.controller.uid:
        return pod.controller.uid == workload.uid
    return workload.selector.selects({label.key: label.value for label in pod.labels})
