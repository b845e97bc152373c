"""Checks and bounds the state of a plan. It is sent with every later request, so its size is bounded by the number of
nodes.
"""

from collections.abc import Callable, Iterator

from .. import v1
from ..kinds import Kind
from . import names
from .values import WrongError, quoted

_MAX_BACKOFFS = 4
"""Most back-off entries of one node. Each is for another generation of the workload's spec, and only the current one
counts.
"""


def check(state: v1.ReconcileState, sent: v1.ReconcileState, may_exist: Callable[[str], bool]) -> None:
    """Checks the state of a plan. `sent` is the state of the request. `may_exist` returns whether a node exists or may
    have existed at the time of the snapshot; entries of a node that is gone are not stored. Raises `WrongError`.
    """
    known = set(_nodes(sent))
    for node in _nodes(state):
        if not names.is_of_object(node):
            raise WrongError(f"its state names node {quoted(node)}, and no object can be called so")
        if node not in known and not may_exist(node):
            raise WrongError(f"its state names node {quoted(node)}, and that does not exist")
    _check_hash(state)


def check_without_nodes(state: v1.ReconcileState, kind: Kind) -> None:
    """Checks the state of a plan for a kind of workload whose pods are for no node. Raises `WrongError`."""
    for node in filter(None, _nodes(state)):
        raise WrongError(f"its state names node {quoted(node)}, and pods of a {kind} are for no node")
    _check_hash(state)


def _check_hash(state: v1.ReconcileState) -> None:
    """Checks the hash of the pods whose creates were slowed down."""
    if not names.is_label_value(state.slow_start.revision_hash):
        named = quoted(state.slow_start.revision_hash)
        raise WrongError(f"its state names the hash {named}, and no label has such a value")


def retain(state: v1.ReconcileState, sent: v1.ReconcileState, has_node: Callable[[str], bool] | None) -> None:
    """Removes entries from a state: of nodes that neither exist nor were in the sent state, of older specs if there are
    too many, and duplicates. Without `has_node` pods are for no node, and only entries without a node stay.
    """
    known = set(_nodes(sent))

    def is_known(node: str) -> bool:
        if has_node is None:
            return not node
        return names.is_of_object(node) and (node in known or has_node(node))

    newest: dict[str, set[int]] = {}
    for entry in state.failed_pod_backoffs:
        generations = newest.setdefault(entry.node_name, set())
        generations.add(entry.observed_generation)
        if len(generations) > _MAX_BACKOFFS:
            generations.remove(min(generations))
    backoffs = []
    for entry in state.failed_pod_backoffs:
        generations = newest[entry.node_name]
        if entry.observed_generation in generations and is_known(entry.node_name):
            # Keeps each generation once.
            generations.remove(entry.observed_generation)
            backoffs.append(entry)
    collisions: dict[str, v1.PodNameCollision] = {}
    for collision in state.pod_name_collisions:
        if is_known(collision.node_name):
            collisions.setdefault(collision.node_name, collision)
    retained = v1.ReconcileState(failed_pod_backoffs=backoffs, pod_name_collisions=collisions.values())
    state.ClearField("failed_pod_backoffs")
    state.ClearField("pod_name_collisions")
    state.MergeFrom(retained)
    if not names.is_label_value(state.slow_start.revision_hash):
        state.ClearField("slow_start")


def _nodes(state: v1.ReconcileState) -> Iterator[str]:
    """The nodes in the parts of a state that only the service reads."""
    yield from (entry.node_name for entry in state.failed_pod_backoffs)
    yield from (entry.node_name for entry in state.pod_name_collisions)
