"""The names of pods that are gone, until another pod of their workload is seen on their node. No new pod gets such a
name: people and programs wait for the name of a pod to disappear. Names of pods that were for no node stay until a plan
drops them: another pod does not say which of them it replaces.
"""

from collections.abc import Iterable

from . import v1
from .kinds import KINDS, Key

_MOST_OF_A_NODE = 50_000
"""The most names of one node, and without a node: as many as the pods of the largest ReplicaSets. Plans drop names,
but there are none while the service refuses the requests for a workload. A tenant can still create and delete its pods.
"""


class UsedPodNames:
    """The used pod names of every workload. They are separate from the state of plans, as pods may be deleted before
    the first plan.
    """

    def __init__(self) -> None:
        self._used: dict[Key, tuple[str, dict[str, set[str]]]] = {}
        """The uid and the names by node, for each workload."""

    def wire(self, key: Key, uid: str) -> list[v1.UsedPodName]:
        """The message to send, sorted by node and name, so that equal sets give equal bytes."""
        return [
            v1.UsedPodName(node_name=node, pod_name=pod)
            for node, pods in sorted(self._of(key, uid).items())
            for pod in sorted(pods)
        ]

    def retire(self, key: Key, uid: str, node_name: str, pod_name: str) -> None:
        """Records that a pod of the workload of this uid is gone. Names of another uid of the workload are dropped."""
        # Where each pod is for a node, a pod without one is never replaced, and the service refuses its name.
        pods = KINDS[key.kind].pods
        if node_name or (pods is not None and not pods.per_node):
            used = self._of(key, uid)
            names = used.setdefault(node_name, set())
            if len(names) < _MOST_OF_A_NODE:
                names.add(pod_name)
            self._used[key] = uid, used

    def replaced(self, key: Key, node_name: str) -> None:
        """Records that another pod of the workload is on the node."""
        if node_name and key in self._used:
            self._used[key][1].pop(node_name, None)

    def drop(self, key: Key, uid: str, sent: Iterable[v1.UsedPodName], kept: Iterable[v1.UsedPodName]) -> None:
        """Drops names that were sent with a request and that the plan does not keep. Names that were added since
        stay.
        """
        used = self._of(key, uid)
        for node, pod in {*map(_pair, sent)} - {*map(_pair, kept)}:
            pods = used.get(node, set())
            pods.discard(pod)
            if not pods:
                used.pop(node, None)

    def forget(self, key: Key) -> None:
        """Drops the names of a workload."""
        self._used.pop(key, None)

    def _of(self, key: Key, uid: str) -> dict[str, set[str]]:
        of, used = self._used.get(key, (uid, {}))
        return used if of == uid else {}


def _pair(used: v1.UsedPodName) -> tuple[str, str]:
    return used.node_name, used.pod_name
