"""Names that no new pod gets for now. The rules of the set are in the vectors, too."""

from collections.abc import Callable
from functools import partial

import pytest

from nodewise import v1
from nodewise.kinds import Resource
from nodewise.pod_names import PodName, UsedPodNames, has_active_pod, is_active
from nodewise.state import State
from nodewise.store import Applied, Deleted, Event, Store

from .objects import KEY, daemon_set, filled, listed, pod

A, B, C = PodName("n1", "a"), PodName("n2", "b"), PodName("n3", "c")


def wire(*names: PodName) -> list[v1.UsedPodName]:
    return [v1.UsedPodName(node_name=name.node_name, pod_name=name.pod_name) for name in names]


def used(state: State, uid: str = "u1") -> list[str]:
    return [f"{name.node_name}/{name.pod_name}" for name in state.holdings.get(KEY, uid).used_pod_names]


def pods(*pods: object) -> Event:
    return listed(Resource.PODS, *pods)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], []),
        ([pods(pod("a", deleting=True, node="n2"), pod("b", phase="Failed"), pod("c", node="n3"))], ["n1/b", "n2/a"]),
        ([Applied(pod("a")), Applied(pod("a", "2", phase="Succeeded"))], ["n1/a"]),
        ([Applied(pod("a")), Applied(pod("a", "2", phase="Failed"))], ["n1/a"]),
        ([Applied(pod("a")), Applied(pod("a", "2", deleting=True))], ["n1/a"]),
        ([Applied(pod("a", deleting=True)), Deleted(pod("a", "2", deleting=True))], ["n1/a"]),
        ([Applied(pod("a")), Deleted(pod("a", "2"))], ["n1/a"]),
        # While another is there, or only ends there, or is elsewhere.
        ([Applied(pod("a")), Applied(pod("b")), Deleted(pod("a", "2"))], []),
        ([Applied(pod("a")), Applied(pod("b", deleting=True)), Deleted(pod("a", "2"))], ["n1/a", "n1/b"]),
        ([Applied(pod("a")), Applied(pod("b", node="n11")), Deleted(pod("a", "2"))], ["n1/a"]),
        ([Applied(pod("a")), Applied(pod("b", owner="u9")), Deleted(pod("a", "2"))], ["n1/a"]),
        # Another comes.
        ([Applied(pod("a")), Deleted(pod("a", "2")), Applied(pod("b"))], []),
        ([Applied(pod("a", deleting=True)), Applied(pod("a", "2", uid="other"))], []),
        ([Applied(pod("a", deleting=True)), Applied(pod("a", "2", uid="other", node="n2"))], ["n1/a"]),
        ([Applied(pod("a")), Applied(pod("a", "2", uid="other", owner="r", kind="ReplicaSet"))], ["n1/a"]),
        # Lists after a gap.
        ([pods(pod("a")), pods()], ["n1/a"]),
        ([pods(pod("a")), pods(pod("b"))], []),
        # It is released, or taken over.
        ([Applied(pod("a")), Applied(pod("a", "2", owner=None)), Deleted(pod("a", "3", owner=None))], []),
        ([Applied(pod("a")), Applied(pod("a", "2", owner="r", kind="ReplicaSet"))], []),
        # It is on no node.
        ([Applied(pod("a", node="")), Deleted(pod("a", "2", node=""))], []),
        # The workload is gone, or another one.
        ([Applied(pod("a", deleting=True)), Deleted(daemon_set())], []),
        ([Applied(pod("a", deleting=True)), Applied(daemon_set("u2"))], []),
    ],
)
def test_what_watches_show_is_used(events: list[Event], expected: list[str]) -> None:
    assert used(filled(State(1, v1.PlanOptions()), *events)) == expected


def test_pods_may_be_listed_before_their_workload() -> None:
    state = State(1, v1.PlanOptions())
    for event in (
        pods(pod("a", deleting=True), pod("b", node="n2"), pod("c", owner="u2", deleting=True)),
        listed(Resource.DAEMON_SETS, daemon_set()),
    ):
        state.take_in(event)
    assert used(state) == ["n1/a"]
    state.holdings.used_names.drop(KEY, "u1", wire(A), [])
    state.take_in(Applied(daemon_set(version="2")))
    assert used(state) == [], "it is known already"
    state.take_in(Applied(daemon_set("u2")))
    assert used(state, "u2") == ["n1/c"]


def test_a_plan_drops_only_what_it_was_sent_and_adds_nothing() -> None:
    names = UsedPodNames()
    for name in (A, B, C):
        names.seen(KEY, "u1", name, active=False)
    names.seen(KEY, "u1", PodName(B.node_name, "new"), active=True)
    names.drop(KEY, "u1", wire(A, B), wire(B, PodName("n9", "z")))
    assert names.wire(KEY, "u1") == wire(C)
    names.drop(KEY, "u1", wire(A, B, C), [])
    assert names.wire(KEY, "u1") == []


def test_another_pod_is_looked_for_only_where_that_matters() -> None:
    names = UsedPodNames()
    looked: list[PodName] = []

    def has_active_pod(name: PodName) -> bool:
        looked.append(name)
        return True

    names.seen(KEY, "u1", A, active=False)
    for name in (A, B):
        names.vanished(KEY, "u1", name, partial(has_active_pod, name))
    assert names.wire(KEY, "u1") == wire(A)
    assert looked == [B]


def forget(names: UsedPodNames) -> None:
    names.forget(KEY)


def replace(names: UsedPodNames) -> None:
    names.seen(KEY, "u2", B, active=False)


@pytest.mark.parametrize(("happens", "left"), [(forget, []), (replace, wire(B))])
def test_names_are_of_one_workload(happens: Callable[[UsedPodNames], None], left: list[v1.UsedPodName]) -> None:
    names = UsedPodNames()
    names.seen(KEY, "u1", A, active=False)
    happens(names)
    assert names.wire(KEY, "u1") == []
    # What still comes of a reconcile of the one that was replaced.
    names.drop(KEY, "u1", wire(A, B), [])
    names.seen(KEY, "u1", B, active=True)
    assert names.wire(KEY, "u2") == left


@pytest.mark.parametrize("buckets", [1, 64])
@pytest.mark.parametrize(
    ("shown", "active", "on_node"),
    [
        (pod(), True, True),
        (pod(phase="Unknown"), True, True),
        (pod(phase="Succeeded"), False, False),
        (pod(phase="Failed"), False, False),
        (pod(deleting=True), False, False),
        (pod(node="n12"), True, False),
        (pod("n1", node="n2"), True, False),
        (pod(owner="u2"), True, False),
        (pod(owner=None), True, False),
    ],
)
def test_a_pod_is_active_while_it_neither_finished_nor_ends(
    shown: object, active: bool, on_node: bool, buckets: int
) -> None:
    store = Store(buckets)
    assert not has_active_pod(store, "ns", "u1", "n1")
    store.apply(Applied(shown), lambda _: None)  # type: ignore[arg-type]
    assert is_active(shown.projection) is active  # type: ignore[attr-defined]
    assert has_active_pod(store, "ns", "u1", "n1") is on_node
