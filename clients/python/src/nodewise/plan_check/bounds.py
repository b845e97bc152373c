"""How many pods and revisions a plan creates, and where: a wrong service must not fill the cluster with pods of the
workload's own template.
"""

from collections import Counter
from collections.abc import Sequence

from .. import v1
from .values import WrongError, quoted

MAX_LIVE_PODS = 1
"""Most pods of the workload that live on a node which gets another one. With surge the old pod is still there."""


def check(actions: Sequence[v1.Action], burst: int) -> None:
    """Checks how many objects a plan with these actions creates and deletes. Raises `WrongError`."""
    counts = Counter(action.WhichOneof("kind") for action in actions)
    for does, count in (("creates", counts["create_pod"]), ("deletes", counts["delete_pod"])):
        if count > burst:
            raise WrongError(f"it {does} {count} pods, and {burst} are the most that were asked for")
    if counts["create_revision"] > 1:
        raise WrongError(f"it creates {counts['create_revision']} revisions, and 1 is the most")


class Nodes:
    """The nodes that one plan creates pods for."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def check(self, action: v1.Action) -> None:
        """Checks that an action does not create a second pod for a node. Raises `WrongError`."""
        if action.HasField("create_pod"):
            name = action.create_pod.node_name
            if name in self._names:
                raise WrongError(f"it creates a second pod for node {quoted(name)}")
            self._names.add(name)


def wrong_node(name: str, live_pods: int | None) -> str | None:
    """Why no pod may be created for a node, if so. `live_pods` are those of the workload that live there; None if there
    is no such node.
    """
    if live_pods is None:
        return f"node {quoted(name)} does not exist"
    if live_pods > MAX_LIVE_PODS:
        return f"node {quoted(name)} has {live_pods} pods of the workload already"
    return None
