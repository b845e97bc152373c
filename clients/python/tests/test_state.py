from collections.abc import Callable

import pytest

from nodewise import v1
from nodewise.handlers import Urgency, Wake
from nodewise.kinds import Resource
from nodewise.live import MAX_LIVE, LiveObjects
from nodewise.options import is_enabled
from nodewise.state import State
from nodewise.store import Applied, Bookmark, Deleted, Event

from .objects import KEY, daemon_set, filled, listed, node, pod, revision

OPTIONS = v1.PlanOptions()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (v1.PlanOptions(), True),
        (v1.PlanOptions(disabled_deviations=[v1.DEVIATION_DELETIONS_BY_UID]), False),
        (v1.PlanOptions(profile=v1.PROFILE_UPSTREAM_STRICT), False),
        (v1.PlanOptions(profile=v1.PROFILE_UPSTREAM_STRICT, enabled_deviations=[v1.DEVIATION_DELETIONS_BY_UID]), True),
    ],
)
def test_deviations_follow_the_profile(options: v1.PlanOptions, expected: bool) -> None:
    assert is_enabled(options, v1.DEVIATION_DELETIONS_BY_UID) is expected


# D-110: a workload that waits for a cache is queued by any event that updates the cache, also if no cached object
# changed.
@pytest.mark.parametrize(
    "event",
    [
        lambda version: Applied(pod(version=version)),
        lambda version: Applied(pod("foreign", version, kind="ReplicaSet")),
        lambda version: Deleted(pod("foreign", version, kind="ReplicaSet")),
        lambda version: Bookmark(Resource.PODS, version),
        lambda version: listed(Resource.PODS, pod(version="11"), version=version),
    ],
    ids=["its pod", "another pod", "another pod that goes", "a bookmark", "a list"],
)
def test_a_workload_that_waits_is_woken_by_any_event_that_reaches_it(event: Callable[[str], Event]) -> None:
    state = filled(State(1, OPTIONS), Applied(pod(version="11")))
    state.gate.record(KEY, "u1", Resource.PODS, "20")
    assert state.gate.check(KEY, state.store.reached)
    for version, expected in (("19", []), ("20", [Wake(KEY)]), ("21", [])):
        assert state.apply_event(event(version)) == expected
        assert state.store.reached(Resource.PODS) == version


# D-112: after etcd was restored from a backup no watch reaches the written versions.
@pytest.mark.parametrize(
    ("version", "is_let_go"),
    [("500", True), ("999", True), ("1000", False), ("1001", False), ("odd", True)],
)
def test_a_list_that_is_older_than_the_cache_lets_nobody_wait_for_own_writes(version: str, is_let_go: bool) -> None:
    state = filled(State(1, OPTIONS))
    state.apply_event(Bookmark(Resource.PODS, "1000"))
    state.gate.record(KEY, "u1", Resource.PODS, "2000")
    state.gate.record(KEY, "u1", Resource.DAEMON_SETS, "1")
    assert state.gate.check(KEY, state.store.reached)
    woken = state.apply_event(listed(Resource.PODS, version=version))
    assert state.store.is_relisting is (version in ("500", "999"))
    if state.store.is_relisting:
        # A bookmark of another watch may be from before the restore. It is not a list.
        state.apply_event(Bookmark(Resource.NODES, "1001"))
        for resource in (Resource.DAEMON_SETS, Resource.REVISIONS, Resource.POLICIES, Resource.NODES):
            assert state.store.is_relisting, resource
            objects = [daemon_set()] if resource is Resource.DAEMON_SETS else []
            woken = state.apply_event(listed(resource, *objects))
        assert not state.store.is_relisting
    assert (Wake(KEY) in woken) is is_let_go
    assert (state.gate.check(KEY, state.store.reached) is None) is is_let_go


# D-112: objects that were read or marked before the restore may differ now.
def test_nothing_is_kept_by_versions_that_have_begun_anew() -> None:
    state = filled(State(1, OPTIONS))
    for version, stays in (("20", True), ("21", True), ("15", False)):
        state.keep_live(KEY, "u1", LiveObjects([revision("a")]))
        state.apply_event(listed(Resource.REVISIONS, revision(version="7"), version=version))
        assert bool(state.take_live(KEY, "u1")) is stays, version
        if version == "20":
            state.store.seal(Resource.REVISIONS, "ns", "r")
        assert state.store.is_sealed(revision(version="7")) is stays, version
    # The same version of a pod, with another state.
    state.apply_event(Applied(pod(version="11")))
    state.apply_event(listed(Resource.PODS, pod(version="11", ready=True), version="9"))
    kept = state.store.pod("ns", "p")
    assert kept is not None
    assert kept.ready == v1.CONDITION_STATUS_TRUE


# A service may cause reads of the same revision again and again, and of others.
def test_no_more_is_kept_of_what_was_read_live_than_a_few() -> None:
    state = filled(State(1, OPTIONS))
    for index in range(MAX_LIVE + 2):
        state.keep_live(KEY, "u1", LiveObjects([revision("a")]))
        state.keep_live(KEY, "u1", LiveObjects([revision(f"b{index}")]))
    kept = [kept.name for kept in state.take_live(KEY, "u1").revisions]
    assert (len(kept), kept[-1]) == (MAX_LIVE, f"b{MAX_LIVE + 1}")


# D-105: each workload is queued once for all nodes of an event. A new node has priority over a deleted one.
def test_many_nodes_wake_each_workload_once() -> None:
    state = filled(State(1, OPTIONS))
    nodes = listed(Resource.NODES, *(node(f"n{index}") for index in range(1000)))
    assert state.apply_event(nodes) == [Wake(KEY, Urgency.URGENT)]
    assert state.apply_event(listed(Resource.NODES, node("new"))) == [Wake(KEY, Urgency.URGENT)]
    assert state.apply_event(listed(Resource.NODES)) == [Wake(KEY)]


def test_what_watches_show_shrinks_what_is_held() -> None:
    state = filled(State(1, OPTIONS))
    creates = [v1.ExpectedCreate(pod_name="p", node_name="n1")]
    planned = v1.ReconcileState(expectations=v1.Expectations(creates=creates))
    planned.expectations.set_at.seconds = 1
    state.reconcile_states.replace(KEY, "u1", planned, v1.ReconcileState(), state.store.pod_view(KEY, "u1"))
    assert state.reconcile_states.outstanding(KEY) == (1, 0)
    assert state.apply_event(Applied(pod())) == [Wake(KEY)]
    assert state.reconcile_states.outstanding(KEY) == (0, 0)


def report(plan: int) -> v1.ReportRequest:
    return v1.ReportRequest(workload=v1.WorkloadReference(uid="u1"), plan_id=str(plan))


def test_the_newest_reports_are_kept_until_delivered() -> None:
    state = State(1, OPTIONS)
    for plan in range(10):
        state.keep_report(KEY, report(plan))
    assert state.undelivered(KEY, "u1") == [report(plan) for plan in range(2, 10)]
    assert state.undelivered(KEY, "u2") == [], "of another workload of the same name"
    state.reports_delivered(KEY)
    assert state.undelivered(KEY, "u1") == []


def test_what_was_read_live_is_kept_for_one_workload() -> None:
    def names(live: LiveObjects) -> list[str]:
        return [revision.name for revision in live.revisions]

    state = State(1, OPTIONS)
    state.keep_live(KEY, "u1", LiveObjects([revision("a")]))
    state.keep_live(KEY, "u1", LiveObjects([]))
    state.keep_live(KEY, "u1", LiveObjects([revision("b")]))
    assert names(state.take_live(KEY, "u1")) == ["a", "b"]
    assert names(state.take_live(KEY, "u1")) == [], "they were taken"
    state.keep_live(KEY, "u1", LiveObjects([revision("a")]))
    state.keep_live(KEY, "u2", LiveObjects([revision("b")]))
    assert names(state.take_live(KEY, "u1")) == [], "of a workload that was replaced"
    state.keep_live(KEY, "u2", LiveObjects([revision("b")]))
    assert names(state.take_live(KEY, "u2")) == ["b"]
    state.keep_live(KEY, "u1", LiveObjects([revision("a")]))
    state.forget(KEY)
    assert names(state.take_live(KEY, "u1")) == [], "nothing is kept of what is gone"
