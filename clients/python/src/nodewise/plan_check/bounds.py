"""Limits how much a plan does, and on which nodes it creates pods. Otherwise a faulty service could fill the cluster
with pods of the workload's own template, or keep the executor writing.
"""

from collections import Counter
from collections.abc import Sequence

from .. import v1
from ..kinds import Kind
from .values import WrongError, quoted

MAX_LIVE_PODS = 1
"""Most live pods of the workload on a node for which the plan creates another one. With surge, the old pod still
exists.
"""
MAX_WRITES = 4
"""Most actions on one object of any resource: a plan may adopt an object and change it."""
MAX_MEASUREMENTS = 100
"""Most measurements. A stage of a RolloutPolicy has at most ten checks."""
MAX_FOLLOWING_EVENTS = 4
"""Most Events that follow one action."""
MAX_OTHER_EVENTS = 10
"""Most Events besides one for each deleted pod."""
_LEAST_CLAIMS, _MOST_CLAIMS = 1_000, 10_000
"""Bounds for the number of adoptions, releases, relabels, and changes of revisions and other objects of a plan: the
burst, but within these bounds. The plan may delete as many such objects besides.
"""
_CLAIMS = (
    "adopt_pod",
    "adopt_revision",
    "release_pod",
    "release_revision",
    "relabel_pod",
    "update_revision",
    "delete_revision",
    "patch_object",
    "delete_object",
)
"""Actions of an unknown kind count, too."""


def check(plan: v1.Plan, actions: Sequence[v1.Action], burst: int, decides_after_cut: bool) -> None:
    """Checks how much a plan with these actions does. `burst` is the requested maximum of pod creates, and of pod
    deletes. Raises `WrongError`.
    """
    if any(not phase.batches for phase in plan.phases):
        raise WrongError("it has a phase without batches")
    # Even an empty batch may cause a read, to confirm the workload.
    if any(not batch.actions for phase in plan.phases for batch in phase.batches):
        raise WrongError("it has a batch without actions")
    counts: Counter[str | None] = Counter(action.WhichOneof("kind") for action in actions)
    claims = 2 * min(max(burst, _LEAST_CLAIMS), _MOST_CLAIMS)
    bounds = [
        ("creates", counts["create_pod"], burst, "pods"),
        ("deletes", counts["delete_pod"] + counts["evict_pod"], burst, "pods"),
        ("creates", counts["create_revision"], 1, "revisions"),
        ("creates", counts["create_object"], 1, "objects"),
        ("writes", counts["update_status"], 1, "statuses"),
        ("asks for", counts["measure"], MAX_MEASUREMENTS, "measurements"),
        (
            "adopts, releases, relabels, changes and deletes",
            sum(counts[kind] for kind in (None, *_CLAIMS)),
            claims,
            "objects",
        ),
    ]
    if decides_after_cut:
        bounds.append(("emits", counts["emit_event"], burst + MAX_OTHER_EVENTS, "Events"))
    for does, count, most, what in bounds:
        if count > most:
            raise WrongError(f"it {does} {count} {what}, and {most} {'is' if most == 1 else 'are'} the most")


class Nodes:
    """The nodes for which one plan creates pods."""

    def __init__(self, kind: Kind) -> None:
        """The plan is for a workload of this kind."""
        self.names: set[str] = set()
        self._kind = kind

    def check(self, action: v1.Action) -> None:
        """Checks that an action does not create a second pod for a node, or a pod for a node where pods are for none.
        Raises `WrongError`.
        """
        if not action.HasField("create_pod"):
            return
        name = action.create_pod.node_name
        if self._kind.pods is not None and self._kind.pods.per_node:
            if name in self.names:
                raise WrongError(f"it creates a second pod for node {quoted(name)}")
            self.names.add(name)
        elif name:
            raise WrongError(f"it creates a pod for node {quoted(name)}, and pods of a {self._kind} are for no node")


class Writes:
    """How often one plan writes each object of any resource, and how many Events follow."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def check(self, action: v1.Action) -> None:
        """Checks one action after the other. Raises `WrongError`."""
        if len(action.success_events) > MAX_FOLLOWING_EVENTS:
            raise WrongError(f"more than {MAX_FOLLOWING_EVENTS} events follow it")
        match action.WhichOneof("kind"):
            case "patch_object":
                reference = action.patch_object.object
            case "delete_object":
                reference = action.delete_object.object
            case _:
                return
        self._counts[reference.uid] += 1
        if self._counts[reference.uid] > MAX_WRITES:
            raise WrongError(f"it writes {reference.name} more than {MAX_WRITES} times")


def wrong_node(name: str, live_pods: int | None) -> str | None:
    """Why no pod may be created for a node with this number of live pods; None as the number means that the node does
    not exist. Returns None if a pod may be created.
    """
    if live_pods is None:
        return f"node {quoted(name)} does not exist"
    if live_pods > MAX_LIVE_PODS:
        return f"node {quoted(name)} has {live_pods} pods of the workload already"
    return None
