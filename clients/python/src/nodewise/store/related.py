"""Counts the pods beside which the plan of a ReplicaSet prefers not to keep others."""

from collections import Counter
from collections.abc import Sequence

from .. import v1
from ..buckets import SharedPart
from ..objects import Workload
from .namespace import Namespace, is_live

_MOST_SELECTORS = 100
"""Of more workloads with one controller the selectors are not compared with each pod: that would take seconds."""


def related_pods(
    namespace: Namespace, workload: Workload, siblings: Sequence[Workload], bucket_count: int
) -> list[v1.NodePodCount]:
    """The number of related pods on each node, ordered by the node's name (R-37, R-38): live pods that the selector of
    any of the `siblings` matches. These are the workloads of the same kind and controller, this one included. Empty if
    there are none, or if the workload does not have more live pods than it should have: only a plan that deletes pods
    reads them. Of more than 100 siblings only the pods that they control are counted.
    """
    if not siblings or not _has_too_many_pods(namespace, workload, bucket_count):
        return []
    uids = {sibling.uid for sibling in siblings}

    def is_related(part: SharedPart) -> bool:
        if len(siblings) > _MOST_SELECTORS:
            return part.metadata().controller.uid in uids
        labels = {label.key: label.value for label in part.metadata().labels}
        return any(sibling.selector.selects(labels) for sibling in siblings)

    # Most pods share their labels with others.
    known: dict[SharedPart, bool] = {}
    counts: Counter[str] = Counter()
    for stored in namespace.pods.values():
        part = stored.part
        if part is None:
            continue
        if part not in known:
            known[part] = is_related(part)
        if known[part]:
            pod = v1.Pod.FromString(stored.own)
            if is_live(pod):
                counts[pod.node_name] += 1
    return [v1.NodePodCount(node_name=node, pods=count) for node, count in sorted(counts.items())]


def _has_too_many_pods(namespace: Namespace, workload: Workload, bucket_count: int) -> bool:
    """Whether there are more live pods than the workload should have, including the orphans that it may adopt."""
    sets = [buckets for buckets in namespace.sets(workload, bucket_count) if buckets is not None]
    wanted = max(workload.replicas, 0)
    # Usually there are none too many, and no pod has to be decoded.
    if sum(map(len, sets)) <= wanted:
        return False
    return sum(is_live(v1.Pod.FromString(stored.own)) for buckets in sets for stored in buckets) > wanted
