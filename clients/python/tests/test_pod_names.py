"""Tests the used pod names. The rules of the set are in the vectors."""

from collections.abc import Callable

import pytest

from nodewise import v1
from nodewise.kinds import Resource
from nodewise.pod_names import UsedPodNames
from nodewise.state import State
from nodewise.store import Applied, Deleted, Event

from .objects import KEY, daemon_set, filled, listed, pod


def wire(*names: str) -> list[v1.UsedPodName]:
    """Pods, each on the node of the same name."""
    return [v1.UsedPodName(node_name=f"n-{name}", pod_name=name) for name in names]


def pods(*pods: object) -> Event:
    return listed(Resource.PODS, *pods)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], []),
        ([Applied(pod("a")), Applied(pod("a", "2", deleting=True))], []),
        ([Applied(pod("a", deleting=True)), Deleted(pod("a", "2", deleting=True))], ["n1/a"]),
        ([Applied(pod("a")), Deleted(pod("a", "2"))], ["n1/a"]),
        # Another pod exists, or is created.
        ([Applied(pod("a")), Applied(pod("b")), Deleted(pod("a", "2"))], ["n1/a"]),
        ([Applied(pod("a")), Applied(pod("b")), Deleted(pod("a", "2")), Applied(pod("b", "3", ready=True))], ["n1/a"]),
        ([Applied(pod("a")), Deleted(pod("a", "2")), Applied(pod("b"))], []),
        ([Applied(pod("a")), Deleted(pod("a", "2")), Applied(pod("b", node="n2"))], ["n1/a"]),
        # Another pod is created under the name.
        ([Applied(pod("a")), Applied(pod("a", "2", uid="other"))], []),
        ([Applied(pod("a")), Applied(pod("a", "2", uid="other", node="n2"))], ["n1/a"]),
        ([Applied(pod("a")), Applied(pod("a", "2", uid="other", owner=None))], ["n1/a"]),
        # A list after a gap.
        ([pods(pod("a")), pods()], ["n1/a"]),
        # The pod is released.
        ([Applied(pod("a")), Applied(pod("a", "2", owner=None)), Deleted(pod("a", "3", owner=None))], []),
        # The pod is on no node.
        ([Applied(pod("a", node="")), Deleted(pod("a", "2", node=""))], []),
        # The workload is gone or was replaced.
        ([Applied(pod("a")), Deleted(pod("a", "2")), Deleted(daemon_set())], []),
        ([Applied(pod("a")), Deleted(pod("a", "2")), Applied(daemon_set("u2"))], []),
    ],
)
def test_what_watches_show_to_be_gone_is_used(events: list[Event], expected: list[str]) -> None:
    state = filled(State(1, v1.PlanOptions()), *events)
    used = state.reconcile_states.get(KEY, "u1").used_pod_names
    assert [f"{name.node_name}/{name.pod_name}" for name in used] == expected


# While the service refuses the requests for a workload no plan drops names. A tenant can still create and delete pods.
def test_the_names_of_a_node_are_limited() -> None:
    names = UsedPodNames()
    for node in ("n1", "n2"):
        for index in range(50_001):
            names.retire(KEY, "u1", node, str(index))
    assert len(names.wire(KEY, "u1")) == 2 * 50_000


def forget(names: UsedPodNames) -> None:
    names.forget(KEY)


def replace(names: UsedPodNames) -> None:
    names.retire(KEY, "u2", "n-b", "b")


@pytest.mark.parametrize(("happens", "left"), [(forget, []), (replace, wire("b"))])
def test_names_are_of_one_workload(happens: Callable[[UsedPodNames], None], left: list[v1.UsedPodName]) -> None:
    names = UsedPodNames()
    names.retire(KEY, "u1", "n-a", "a")
    happens(names)
    assert names.wire(KEY, "u1") == []
    # Late results of a reconcile of the replaced workload.
    names.drop(KEY, "u1", wire("a", "b"), [])
    assert names.wire(KEY, "u2") == left
