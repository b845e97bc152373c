"""Tests one reconcile: the request, the stored state, the writes, the report, and the result."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import execute, v1
from nodewise.client import FieldViolation, RefusedError, UnreachableError
from nodewise.execute import MAX_PLANS, Executor, Failed, Settled, StoppedError, Unreachable, Waiting
from nodewise.gate import Behind
from nodewise.kinds import REPLICA_SET, Resource
from nodewise.objects import Revision
from nodewise.plan_check import MAX_UNSEEN
from nodewise.receiver import Receiver
from nodewise.requeue_limit import MAX_TOKENS, MIN_DELAY
from nodewise.selection import EVERYTHING, Selection
from nodewise.state import State
from nodewise.store import Applied, Bookmark, Deleted, Listed, Unknown

from .fakes import (
    FIELD,
    MANIFEST,
    NODE_NAME,
    OWNER,
    REVISION,
    TERM,
    FakeActuator,
    FakeService,
    action,
    adopt,
    batch,
    create,
    delete,
    phase,
    plan,
    pod_name,
    refused,
)
from .objects import KEY, SET_KEY, daemon_set, filled, node, pod, replica_set, revision

CREATES, DELETES, CLAIMS, REVISIONS, EVENTS = (
    v1.PHASE_KIND_CREATES,
    v1.PHASE_KIND_DELETES,
    v1.PHASE_KIND_CLAIMS,
    v1.PHASE_KIND_REVISIONS,
    v1.PHASE_KIND_EVENTS,
)
NOW = 1_700_000_000
NOOP = plan(verdict=v1.VERDICT_NOOP)
REVISE = action(create_revision=v1.CreateRevision(name="foo-rrrrrrrrrr", manifest=REVISION))
EVENT = action(emit_event=v1.EmitEvent(type="Normal", reason="Reason"))


class Rig:
    """An executor with one DaemonSet in its caches."""

    def __init__(
        self,
        *plans: Any,
        options: v1.PlanOptions | None = None,
        writes: bool = True,
        selection: Selection = EVERYTHING,
    ) -> None:
        options = options or v1.PlanOptions()
        self.clock = 0.0
        own = revision("foo-h1", labels={"app": "foo", "controller-revision-hash": "h1"})
        self.state = filled(State(1, options), *(Applied(node(f"n{number}")) for number in (1, 2, 3)), Applied(own))
        self.actuator = FakeActuator(writes=writes)
        self.service = FakeService(list(plans))
        self.executor = Executor(
            self.state,
            self.actuator,
            self.service,
            options,
            selection=selection,
            now=lambda: Timestamp(seconds=NOW),
            clock=lambda: self.clock,
        )

    async def reconcile(self) -> Any:
        return await self.executor.reconcile(KEY)

    def held(self) -> v1.ReconcileState:
        return self.state.reconcile_states.get(KEY, "u1")


def expecting(
    *names: str, deletes: tuple[str, ...] = (), at: int = 5, nodes: tuple[str, ...] = ("n1", "n2", "n3"), **rest: Any
) -> v1.ReconcileState:
    """A state with expected pods of these names, the first one on the first node, and so on."""
    creates = [v1.ExpectedCreate(pod_name=name, node_name=node) for name, node in zip(names, nodes, strict=False)]
    expectations = v1.Expectations(set_at=Timestamp(seconds=at), creates=creates, delete_uids=deletes)
    return v1.ReconcileState(expectations=expectations, **rest)


async def test_nothing_to_do() -> None:
    rig = Rig(NOOP)
    assert await rig.reconcile() == Settled()
    assert rig.actuator.calls == []
    assert rig.service.reported == []
    (request,) = rig.service.requests
    assert request.snapshot.now.seconds == 1_700_000_000
    assert request.snapshot.caches_synced
    assert json.loads(request.snapshot.workload.daemon_set.object)["metadata"]["uid"] == "u1"


# With standard logging alone, an operator sees what the executor does, and why.
@pytest.mark.parametrize("writes", [True, False])
async def test_the_log_says_what_is_done_and_why(writes: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    why = v1.Action(id=90, message="n1 has no pod", create_pod=v1.CreatePod(pod_name="foo-bbbbbbbbbb", node_name="n1"))
    more = [delete("foo-b"), action(emit_event=v1.EmitEvent(type="Normal", reason="R", message="m"))]
    rig = Rig(plan(phase(CREATES, batch(why, create("foo-cccccccccc", "n2")), batch(*more))), NOOP, writes=writes)
    rig.state.apply_event(Applied(pod("foo-b")))
    rig.actuator.script("create", "foo-cccccccccc", refused(403, message="a quota"))
    await rig.reconcile()
    told = [(record.name, record.levelname, record.message) for record in caplog.records if "nodewise" in record.name]
    counts = "create_pod 2, delete_pod 1, emit_event 1"
    doing = "applying" if writes else "observing"
    assert ("nodewise.execute", "INFO", f"DaemonSet ns/foo: {doing} plan plan: {counts}") in told
    done, failed = ("SUCCEEDED", "FAILED, a quota") if writes else ("not written", "not written, a quota")
    lines = [message for name, level, message in told if (name, level) == ("nodewise.apply", "DEBUG")]
    skipped = "SKIPPED" if writes else "not written"
    assert lines == [
        f"DaemonSet ns/foo: create_pod foo-bbbbbbbbbb on node n1, since n1 has no pod: {done}",
        f"DaemonSet ns/foo: create_pod foo-cccccccccc on node n2: {failed}",
        f"DaemonSet ns/foo: delete_pod foo-b on node n1: {skipped}",
        f"DaemonSet ns/foo: emit_event R: {skipped}",
    ]
    caplog.clear()
    await rig.reconcile()
    assert not [record for record in caplog.records if record.levelname == "INFO"], "there was nothing to do"


async def test_a_workload_that_is_gone_is_forgotten() -> None:
    rig = Rig()
    rig.state.gate.record(KEY, "u1", Resource.PODS, "99")
    rig.state.apply_event(Deleted(daemon_set()))
    assert await rig.reconcile() == Settled()
    assert rig.state.gate.check(KEY, lambda _: "") is None


async def test_expectations_are_held_before_the_first_write_and_shrink_by_what_is_seen() -> None:
    rig = Rig(
        plan(
            phase(CREATES, batch(create("foo-bbbbbbbbbb"), create("foo-cccccccccc", "n2"))),
            state=expecting("foo-bbbbbbbbbb", "foo-cccccccccc"),
        )
    )
    outstanding = []
    rig.actuator.on_call = lambda *_: outstanding.append(rig.state.reconcile_states.outstanding(KEY))
    assert await rig.reconcile() == Settled()
    assert outstanding == [(2, 0), (2, 0)]
    assert rig.executor.waits_for_watches(KEY)
    rig.state.apply_event(Applied(pod("foo-bbbbbbbbbb")))
    assert rig.held() == expecting("foo-cccccccccc", nodes=("n2",))


async def test_what_is_seen_while_the_plan_is_under_way_is_not_awaited() -> None:
    actions = [create("foo-bbbbbbbbbb"), create("foo-cccccccccc", "n2"), *map(delete, ("gone", "going", "here"))]
    expected = expecting("foo-bbbbbbbbbb", "foo-cccccccccc", deletes=("gone-uid", "going-uid", "here-uid"))
    rig = Rig(plan(phase(CREATES, batch(*actions)), state=expected))
    rig.state.apply_event(Applied(pod("going", deleting=True)))
    rig.state.apply_event(Applied(pod("here", node="n3")))
    rig.actuator.script("delete", "gone", refused(404))
    rig.service.on_plan = lambda: rig.state.apply_event(Applied(pod("foo-bbbbbbbbbb")))
    await rig.reconcile()
    assert rig.held() == expecting("foo-cccccccccc", deletes=("here-uid",), nodes=("n2",))


# An expectation that no write of this executor meets would stay forever, so it is dropped, whatever a faulty service
# says.
async def test_what_a_plan_does_not_do_is_not_expected() -> None:
    first = expecting("foo-bbbbbbbbbb", "foo-cccccccccc", "", deletes=("a-uid", "b-uid"))
    first.expectations.creates.add(pod_name="foo-bbbbbbbbbb", node_name="n2")
    first.used_pod_names.add(node_name="n1", pod_name="never")
    second = expecting("foo-bbbbbbbbbb", "foo-dddddddddd", deletes=("a-uid", "b-uid"), at=6)
    for _ in range(3):
        second.expectations.creates.add(node_name="n3")
    rig = Rig(
        plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"), delete("a"))), state=first),
        plan(phase(CREATES, batch(create("", "n3"))), state=second),
    )
    for name in ("a", "b"):
        rig.state.apply_event(Applied(pod(name, node="n2")))
    answer = v1.ReportResponse(requeue=v1.REQUEUE_NONE, state=first)
    rig.service.reports = [answer, answer]
    await rig.reconcile()
    assert rig.held() == expecting("foo-bbbbbbbbbb", deletes=("a-uid",))
    rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_NONE)]
    rig.state.gate.clear(KEY)
    await rig.reconcile()
    third = expecting("foo-bbbbbbbbbb", deletes=("a-uid",), at=6)
    third.expectations.creates.add(node_name="n3")
    assert rig.held() == third


async def test_outcomes_are_reported_and_settle_what_is_held() -> None:
    rig = Rig(
        plan(
            phase(
                CREATES, batch(create("foo-bbbbbbbbbb"), create("foo-cccccccccc", "n2"), create("foo-dddddddddd", "n3"))
            ),
            state=expecting("foo-bbbbbbbbbb", "foo-cccccccccc", "foo-dddddddddd"),
        )
    )
    rig.actuator.script("create", "foo-cccccccccc", refused(403))
    rig.service.reports = [
        v1.ReportResponse(
            requeue=v1.REQUEUE_BACKOFF,
            state=expecting("foo-bbbbbbbbbb", "foo-xxxxxxxxxx"),
            message="m",
            requeue_after=Duration(seconds=7),
        )
    ]
    ending = await rig.reconcile()
    assert ending == Failed(
        "2 of 3 actions were done, 1 failed, 0 were not tried; the first failure: refused", 7, http_status=403
    )
    (report,) = rig.service.reported
    assert report.plan_id == "plan"
    assert report.state == expecting("foo-bbbbbbbbbb", "foo-dddddddddd", nodes=("n1", "n3")), "one was refused"
    assert [outcome.result for outcome in report.outcomes] == [
        v1.RESULT_SUCCEEDED,
        v1.RESULT_FAILED,
        v1.RESULT_SUCCEEDED,
    ]
    assert rig.held() == expecting("foo-bbbbbbbbbb"), "settled, and none added"


async def test_what_succeeded_without_a_subject_is_not_told() -> None:
    rig = Rig(plan(phase(CLAIMS, batch(adopt("a"))), phase(CREATES, batch(create("foo-cccccccccc")))))
    await rig.reconcile()
    assert len(rig.service.reported[0].outcomes) == 1


# D-109, D-110: named creates are expected, everything else goes through the gate.
async def test_own_writes_are_awaited() -> None:
    rig = Rig(plan(phase(CLAIMS, batch(adopt("a"))), phase(CREATES, batch(create("foo-cccccccccc")))), NOOP)
    await rig.reconcile()
    assert await rig.reconcile() == Waiting(Behind(Resource.PODS, "101", "1"))
    assert [wake.key for wake in rig.state.apply_event(Bookmark(Resource.PODS, "101"))] == [KEY]
    assert await rig.reconcile() == Settled()


async def test_without_slow_start_across_plans_every_create_is_awaited() -> None:
    options = v1.PlanOptions(disabled_deviations=[v1.DEVIATION_SLOW_START_ACROSS_PLANS], burst=1)
    rig = Rig(plan(phase(CREATES, batch(create("foo-cccccccccc")))), options=options)
    assert await rig.reconcile() == Settled()
    assert isinstance(await rig.reconcile(), Waiting)


# W15: the check also counts pods that the executor created and that the caches do not show yet. It does not refuse a
# plan that ignores them.
async def test_pods_that_are_created_and_not_seen_yet_count() -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {"app": "web"},
            "ownerReferences": [{**OWNER, "kind": "ReplicaSet", "name": "web-1", "uid": "s1"}],
        },
    }

    def creating(*names: str) -> v1.Plan:
        made = plan(phase(CREATES, batch(*(create(name, "") for name in names))))
        made.workload.CopyFrom(v1.WorkloadReference(kind="ReplicaSet", namespace="ns", name="web-1", uid="s1"))
        made.pod_manifest = json.dumps(manifest).encode()
        del made.node_name_pointers[:]
        return made

    template = {"metadata": {"labels": {"app": "web"}}}
    options = v1.PlanOptions()
    state = filled(State(1, options, [REPLICA_SET]), Applied(replica_set(replicas=3, template=template)))
    actuator = FakeActuator()
    second = creating("web-1-ddddd", "web-1-fffff")
    executor = Executor(state, actuator, FakeService([creating("web-1-bbbbb", "web-1-ccccc"), second, second]), options)
    assert await executor.reconcile(SET_KEY) == Settled()
    assert await executor.reconcile(SET_KEY) == Settled(0)
    created = ["web-1-bbbbb", "web-1-ccccc", "web-1-ddddd"]
    assert actuator.calls == [("create", name) for name in created]
    # All of them are gone again, as the watch shows.
    state.apply_event(Bookmark(Resource.PODS, "103"))
    assert await executor.reconcile(SET_KEY) == Settled()
    assert len(actuator.calls) == 5


async def test_only_the_answer_to_a_report_lets_a_plan_be_followed_at_once() -> None:
    full = plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"))), requeue_after=Duration())
    rig = Rig(full, NOOP)
    rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_AFTER, requeue_after=Duration())]
    assert await rig.reconcile() == Settled(0.0)
    rig = Rig(full, NOOP)
    rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_NONE)]
    assert await rig.reconcile() == Settled()
    for error in (UnreachableError("away"), RefusedError("no")):
        rig = Rig(full, NOOP)
        rig.service.reports = [error]
        ending = await rig.reconcile()
        assert isinstance(ending, Failed)
        assert ending.after is None
    rig = Rig(full, NOOP)
    rig.actuator.writes = False
    assert await rig.reconcile() == Settled()


AT_ONCE = v1.ReportResponse(requeue=v1.REQUEUE_AFTER, requeue_after=Duration(), state=expecting("foo-bbbbbbbbbb"))


def two_in_a_row(
    *more: v1.Phase, then: v1.Plan | None = None, state: v1.ReconcileState | None = None, **fields: Any
) -> Rig:
    """Two plans. The second one follows the first at once."""
    fields = {"requeue_after": Duration(), "state": state or expecting("foo-bbbbbbbbbb"), **fields}
    first = plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"))), *more, **fields)
    second = plan(phase(CREATES, batch(create("foo-cccccccccc", "n2"))))
    rig = Rig(first, then or second, second)
    rig.service.reports = [v1.ReportResponse.FromString(AT_ONCE.SerializeToString())]
    return rig


async def asked(rig: Rig, between: Callable[[Rig], object] = lambda _: None) -> list[int]:
    """The number of requested plans after each of two reconciles."""
    counts = []
    for _ in range(2):
        await rig.reconcile()
        counts.append(len(rig.service.requests))
        between(rig)
    return counts


# The executor requests the next plan while the apiserver creates pods. That plan knows these creates.
async def test_what_follows_a_full_burst_is_asked_for_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute.plans, "MAX_AGE_OF_NEXT", 60.0)
    rig = two_in_a_row()
    assert await rig.reconcile() == Settled(0.0)
    assert [create.pod_name for create in rig.service.requests[1].snapshot.state.expectations.creates] == [
        "foo-bbbbbbbbbb"
    ]
    assert rig.actuator.calls == [("create", "foo-bbbbbbbbbb")]
    assert rig.state.reconcile_states.outstanding(KEY) == (1, 0), "what is not applied is not held"
    assert await rig.reconcile() == Settled()
    assert len(rig.service.requests) == 2
    assert rig.actuator.calls == [("create", "foo-bbbbbbbbbb"), ("create", "foo-cccccccccc")]


async def test_the_next_plan_is_not_taken_when_something_else_is_so_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute.plans, "MAX_AGE_OF_NEXT", 60.0)
    assert await asked(two_in_a_row()) == [2, 2]
    changed = daemon_set(version="2")
    assert await asked(two_in_a_row(), lambda rig: rig.state.apply_event(Applied(changed))) == [2, 3], "another spec"
    other = daemon_set("u2")
    assert await asked(two_in_a_row(), lambda rig: rig.state.apply_event(Applied(other))) == [2, 3], "another workload"
    gone = daemon_set()
    assert await asked(two_in_a_row(), lambda rig: rig.state.apply_event(Deleted(gone))) == [2, 2], "no workload"
    rig = two_in_a_row()
    rig.actuator.script("create", "foo-bbbbbbbbbb", refused(403))
    assert await asked(rig) == [2, 3], "a create failed"
    for answer in (UnreachableError("away"), RefusedError("no"), v1.ReportResponse(requeue=v1.REQUEUE_NONE)):
        rig = two_in_a_row()
        rig.service.reports = [answer]
        assert await asked(rig) == [2, 3], "the answer to the report does not say so"
    assert await asked(two_in_a_row(then=plan(phase(DELETES, batch(delete("x")))))) == [2, 3], "it does anything else"
    assert await asked(two_in_a_row(), lambda _: monkeypatch.setattr(execute.plans, "MAX_AGE_OF_NEXT", -1.0)) == [2, 3]


async def test_a_plan_that_does_anything_else_is_done_first() -> None:
    assert await asked(two_in_a_row(phase(v1.PHASE_KIND_STATUS, batch(delete("x"))))) == [1, 2]
    assert await asked(two_in_a_row(requeue_after=Duration(seconds=1))) == [1, 2]
    assert await asked(two_in_a_row(requeue_after=None)) == [1, 2]
    rig = two_in_a_row()
    rig.service.plans[0].phases[0].batches.append(batch(create("foo-dddddddddd", "n2")))
    assert await asked(rig) == [1, 2]
    rig = two_in_a_row()
    rig.actuator.writes = False
    assert await asked(rig) == [1, 2], "what is not done need not be gone on with"


# Also if the next plan fails.
async def test_a_plan_is_reported_whatever_becomes_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in (UnreachableError("away"), RefusedError("wrong"), KeyError("a defect")):
        rig = two_in_a_row()
        rig.service.plans[1] = answer
        assert await rig.reconcile() == Settled(0.0)
        assert len(rig.service.reported) == 1
    monkeypatch.setattr(execute.plans, "MAX_AGE_OF_NEXT", 0.01)
    rig, real = two_in_a_row(), FakeService.plan
    first = True

    async def slow(uid: str, build: Any) -> v1.Plan:
        nonlocal first
        if not first:
            await asyncio.Event().wait()
        first = False
        return await real(rig.service, uid, build)

    rig.service.plan = slow  # type: ignore[method-assign]
    assert await rig.reconcile() == Settled(0.0)
    assert len(rig.service.reported) == 1


def taking(*plans: Any, names: int = 1) -> Rig:
    """Plans that create pods, while other pods have this number of the names `foo-bbbbbbbbbb`."""
    rig = Rig(*plans)
    rig.service.reports = [AT_ONCE] * names
    take(rig, names)
    return rig


def take(rig: Rig, names: int = 1) -> None:
    """Another pod has the name `foo-bbbbbbbbbb`, this number of times."""
    rig.actuator.script("create", "foo-bbbbbbbbbb", *[refused(409, "AlreadyExists")] * names)
    rig.actuator.script("read", "foo-bbbbbbbbbb", *[{"metadata": {"name": "foo-bbbbbbbbbb", "uid": "x"}}] * names)


async def test_a_taken_name_is_reported_and_planned_around_at_once() -> None:
    first = plan(
        phase(CREATES, batch(create("foo-bbbbbbbbbb"), create("foo-cccccccccc", "n2"))),
        phase(DELETES, batch(delete("x")), requires=True),
    )
    rig = taking(first, plan(phase(CREATES, batch(create("foo-bbbbbbbbb2")))))
    assert await rig.reconcile() == Settled()
    assert [len(rig.service.requests), len(rig.service.reported)] == [2, 2]
    created = [name for verb, name in rig.actuator.calls if verb == "create"]
    assert created == ["foo-bbbbbbbbbb", "foo-cccccccccc", "foo-bbbbbbbbb2"]
    assert ("delete", "x") in rig.actuator.calls
    taken = rig.service.reported[0].outcomes[0]
    assert (taken.result, taken.created_pod.pod_name) == (v1.RESULT_NAME_TAKEN, "foo-bbbbbbbbbb")
    assert "FailedCreate" not in [event.reason for event in rig.actuator.events]


async def test_many_taken_names_cost_no_back_off() -> None:
    rig = taking(*[plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"))))] * MAX_PLANS, names=MAX_PLANS)
    assert await rig.reconcile() == Settled(MIN_DELAY)
    assert [len(rig.service.requests), len(rig.service.reported)] == [MAX_PLANS, MAX_PLANS]


async def test_a_taken_name_is_followed_as_the_answer_to_the_report_says() -> None:
    for answer, reason in (
        (
            v1.ReportResponse(requeue=v1.REQUEUE_BACKOFF, requeue_after=Duration()),
            "0 of 2 actions were done, 2 failed, 0 were not tried; the first failure: refused",
        ),
        (UnreachableError("away"), "the report rides on the next plan"),
        (RefusedError("wrong"), "wrong"),
    ):
        rig = taking(plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"), create("foo-cccccccccc", "n2")))))
        if isinstance(answer, v1.ReportResponse):
            rig.actuator.script("create", "foo-cccccccccc", refused(403))
        rig.service.reports = [answer]
        ending = await rig.reconcile()
        assert isinstance(ending, Failed)
        assert reason in ending.reason
        assert len(rig.service.requests) == 1


# The plan was requested before the taken names were known.
async def test_a_plan_that_was_asked_for_meanwhile_is_not_taken_after_a_taken_name() -> None:
    rig = two_in_a_row()
    take(rig)
    assert await rig.reconcile() == Settled()
    assert len(rig.service.requests) == 3
    assert rig.actuator.calls == [
        ("create", "foo-bbbbbbbbbb"),
        ("read", "foo-bbbbbbbbbb"),
        ("create", "foo-cccccccccc"),
    ]


async def test_creates_without_a_name_are_awaited_and_those_with_one_are_not() -> None:
    state = expecting("foo-bbbbbbbbbb")
    state.expectations.creates.add(node_name="n2")
    rig = Rig(
        plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"), create("", "n2"))), state=state, requeue_after=Duration()),
        NOOP,
        NOOP,
    )
    rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_AFTER, requeue_after=Duration(), state=state)]
    assert await rig.reconcile() == Settled(0)
    assert len(rig.service.requests) == 1, "no plan is asked for ahead"
    assert await rig.reconcile() == Waiting(Behind(Resource.PODS, "102", "1"))
    for index, (name, on) in enumerate((("foo-bbbbbbbbbb", "n1"), ("foo-xyz", "n2"))):
        assert rig.state.reconcile_states.outstanding(KEY) == (2 - index, 0)
        rig.state.apply_event(Applied(pod(name, str(101 + index), node=on)))
    assert rig.state.reconcile_states.outstanding(KEY) == (0, 0)
    assert await rig.reconcile() == Settled()


async def test_used_names_go_out_and_a_plan_drops_those_that_it_leaves_out() -> None:
    def using(*names: str) -> v1.ReconcileState:
        return v1.ReconcileState(used_pod_names=[v1.UsedPodName(node_name="n1", pod_name=name) for name in names])

    rig = Rig(plan(phase(CREATES, batch(create("foo-cccccccccc", "n2"))), state=using("y")), NOOP)
    for name in ("x", "y", "z"):
        rig.state.apply_event(Applied(pod(name)))
    for name in ("x", "y"):
        rig.state.apply_event(Deleted(pod(name)))
    rig.service.on_plan = lambda: rig.state.apply_event(Deleted(pod("z")))
    rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_NONE, state=v1.ReconcileState())]
    assert await rig.reconcile() == Settled()
    assert rig.service.requests[0].snapshot.state == using("x", "y")
    assert rig.service.reported[0].state == using("y", "z")
    assert rig.held() == using("y", "z"), "the answer to the report drops none"


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        (v1.PlanOptions(), True),
        (v1.PlanOptions(profile=v1.PROFILE_UPSTREAM_STRICT, enabled_deviations=[v1.DEVIATION_DELETE_WITH_UID]), True),
        (v1.PlanOptions(profile=v1.PROFILE_UPSTREAM_STRICT), False),
        (v1.PlanOptions(disabled_deviations=[v1.DEVIATION_DELETE_WITH_UID]), False),
    ],
)
async def test_only_the_options_may_ask_for_deletes_by_name_alone(options: v1.PlanOptions, refused: bool) -> None:
    rig = Rig(plan(phase(DELETES, batch(delete("foo-bbbbbbbbbb", uid_precondition=False)))), options=options)
    rig.state.apply_event(Applied(pod("foo-bbbbbbbbbb")))
    ending = await rig.reconcile()
    assert isinstance(ending, Failed if refused else Settled)
    assert rig.actuator.calls == ([] if refused else [("delete", "foo-bbbbbbbbbb")])
    if isinstance(ending, Failed):
        assert ending.reason.endswith("(DeletePod): it deletes foo-bbbbbbbbbb without its uid as a precondition")
    assert [event.reason for event in rig.actuator.events] == (["PlanRefused"] if refused else ["SuccessfulDelete"])


def release(name: str) -> v1.Action:
    pod = v1.ObjectReference(name=name, uid=f"{name}-uid")
    patch = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "u1"}], "uid": pod.uid}}
    return action(release_pod=v1.ReleasePod(pod=pod, patch=json.dumps(patch).encode()))


WRONG_EVENT = action(emit_event=v1.EmitEvent(type="Odd", reason="Reason"))
CREATE = create("foo-bbbbbbbbbb", "n1")


# A faulty service must neither fill the cluster with pods of the workload's own template, nor keep the executor
# writing.
@pytest.mark.parametrize(
    ("actions", "burst", "wrong"),
    [
        ([create(pod_name(at), f"n{at}") for at in range(251)], None, "it creates 251 pods, and 250 are the most"),
        ([CREATE, create("foo-cccccccccc", "n2")], 1, "it creates 2 pods, and 1 is the most"),
        ([CREATE, create("foo-cccccccccc", "n1")], None, 'it creates a second pod for node "n1"'),
        ([delete("a"), delete("b")], 1, "it deletes 2 pods, and 1 is the most"),
        ([REVISE, REVISE], None, "it creates 2 revisions, and 1 is the most"),
        ([action(update_status=v1.UpdateStatus())] * 2, None, "it writes 2 statuses, and 1 is the most"),
        ([EVENT] * 14, 3, "it emits 14 Events, and 13 are the most"),
        (
            [release("a")] * 2001,
            None,
            "it adopts, releases, relabels, changes and deletes 2001 objects, and",
        ),
        ([adopt("a")] * 3001, 1_500, "changes and deletes 3001 objects, and 3000 are the most"),
        ([release("a")] * 20_001, 1_000_000, "changes and deletes 20001 objects, and 20000 are the most"),
        # Objects that may have changed since the snapshot do not hide certain violations.
        ([create("foo-bbbbbbbbbb", "gone"), WRONG_EVENT], None, "the type of its event is neither Normal nor Warning"),
        ([delete("orphan"), WRONG_EVENT], None, "the type of its event is neither Normal nor Warning"),
    ],
)
async def test_a_plan_that_does_too_much_is_refused(actions: list[v1.Action], burst: int | None, wrong: str) -> None:
    rig = Rig(plan(phase(CREATES, batch(*actions))), options=v1.PlanOptions(burst=burst))
    rig.state.apply_event(Applied(pod("orphan", owner=None)))
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert wrong in ending.reason
    assert rig.executor.refused_plans == 1
    assert [event.reason for event in rig.actuator.events] == ["PlanRefused"]
    assert rig.actuator.calls == []


async def test_events_are_not_counted_where_decisions_come_before_the_cut() -> None:
    rig = Rig(
        plan(phase(EVENTS, batch(*[EVENT] * 300))),
        options=v1.PlanOptions(disabled_deviations=[v1.DEVIATION_DECIDE_AFTER_CUT]),
    )
    assert await rig.reconcile() == Settled()


def changed(of: dict[str, Any], **members: Any) -> Any:
    return {**of, **members}


# Each pod goes to the node of its action, and is counted there.
@pytest.mark.parametrize(
    ("terms", "pointers", "more", "wrong"),
    [
        ([TERM], [NODE_NAME], {}, None),
        ([TERM], [], {}, "node_name_pointers is [], where"),
        ([TERM], [NODE_NAME, NODE_NAME], {}, "alone belongs"),
        ([TERM], ["/spec/nodeName"], {"nodeName": "n9"}, 'node_name_pointers is ["/spec/nodeName"], where'),
        ([TERM], [NODE_NAME], {"nodeName": "n9"}, "has other spec than"),
        ([TERM, TERM], [NODE_NAME], {}, "requires of its node [{"),
        ([], [NODE_NAME], {}, "requires of its node [], where"),
        (None, [NODE_NAME], {}, "requires of its node null, where"),
        ([changed(TERM, matchExpressions=[])], [NODE_NAME], {}, "requires of its node"),
        ([{"matchFields": [changed(FIELD, values=["n1", "n2"])]}], [NODE_NAME], {}, "requires of its node"),
        ([{"matchFields": [changed(FIELD, values=[])]}], [NODE_NAME], {}, "requires of its node"),
        ([{"matchFields": [changed(FIELD, operator="NotIn")]}], [NODE_NAME], {}, "requires of its node"),
        ([{"matchFields": [FIELD, FIELD]}], [NODE_NAME], {}, "requires of its node"),
    ],
)
async def test_a_pod_goes_where_its_action_says(terms: Any, pointers: list[str], more: Any, wrong: str | None) -> None:
    planned = plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"))))
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    manifest = changed(MANIFEST, spec={"affinity": {"nodeAffinity": required}, **more})
    planned.pod_manifest = json.dumps(manifest).encode()
    planned.node_name_pointers[:] = pointers
    rig = Rig(planned)
    ending = await rig.reconcile()
    assert isinstance(ending, Failed if wrong else Settled)
    assert len(rig.actuator.calls) == (wrong is None)
    assert wrong is None or (isinstance(ending, Failed) and wrong in ending.reason)


# Neither a client that may write revisions nor the service may crash the check of a plan.
@pytest.mark.parametrize("depth", [200, 400, 600, 800])
async def test_what_is_nested_deeply_ends_no_check(depth: int) -> None:
    inner = b'{"a":' * depth + b"1" + b"}" * depth
    deep = REVISION.replace(b'{"$patch": "replace"}', b'{"spec":' + inner + b"}")
    deep = deep.replace(b'"metadata": {', b'"metadata": {"namespace": "ns", ')
    planned = [plan(phase(CREATES, batch(create("foo-bbbbbbbbbb")))) for _ in range(2)]
    planned[0].pod_manifest = json.dumps(changed(MANIFEST, spec={**MANIFEST["spec"], "hostPID": True})).encode()
    planned[1].pod_manifest = planned[0].pod_manifest.replace(b'"hostPID": true', b'"deep": ' + inner)
    rig = Rig(*planned)
    rig.state.apply_event(Applied(Revision.read(deep)))
    assert rig.state.store.revisions(daemon_set())
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert "pod_manifest has other spec than the workload's template" in ending.reason
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert ending.reason.startswith("the plan is refused")


# A pod that another client relabelled does not count for the workload, even with its controller reference.
async def test_relabelled_pods_do_not_keep_others_from_a_node() -> None:
    rig = Rig(plan(phase(CREATES, batch(create("foo-bbbbbbbbbb")))))
    for name in ("a", "b", "c"):
        rig.state.apply_event(Applied(pod(name, labels={"app": "bar"})))
    assert await rig.reconcile() == Settled()


@pytest.mark.parametrize(
    ("labels", "owner", "refused"),
    [({"app": "foo"}, "u1", True), ({"app": "bar"}, "u1", False), ({"app": "foo"}, None, False)],
)
async def test_a_pod_that_is_selected_is_not_released(labels: Any, owner: str | None, refused: bool) -> None:
    rig = Rig(*[plan(phase(CLAIMS, batch(release("a"))))] * 2)
    rig.state.apply_event(Applied(pod("a", labels=labels, owner=owner)))
    for _ in range(2):
        ending = await rig.reconcile()
        assert isinstance(ending, Failed if refused else Settled)
    assert rig.executor.refused_plans == 2 * refused
    assert rig.actuator.calls == ([] if refused else [("patch", "a")] * 2)


CHANGES: dict[str, Callable[[State], object]] = {
    "the orphan": lambda state: state.apply_event(Applied(pod("orphan", "9", owner=None))),
    "another orphan": lambda state: state.apply_event(Applied(pod("other", "9", owner=None))),
    "the orphan, again": lambda state: state.apply_event(Applied(pod("orphan", owner=None))),
    "a pod on the node": lambda state: state.apply_event(Applied(pod("a", "9", node="full"))),
    "a pod elsewhere": lambda state: state.apply_event(Applied(pod("elsewhere", "9"))),
    "a node": lambda state: state.apply_event(Deleted(node("n3"))),
    "a revision": lambda state: state.apply_event(Applied(revision("r", "9", owner=None))),
}


# An action that is wrong about an object that changed after the snapshot is left out alone. Otherwise the plan was not
# made from the snapshot: it is refused and reported at once.
@pytest.mark.parametrize(
    ("planned", "changed", "is_left_out"),
    [
        (delete("orphan"), "the orphan", True),
        (delete("orphan"), "another orphan", False),
        (delete("orphan"), "the orphan, again", False),
        (create("foo-bbbbbbbbbb", "gone"), "a node", True),
        (create("foo-bbbbbbbbbb", "gone"), "the orphan", False),
        (create("foo-bbbbbbbbbb", "full"), "a pod on the node", True),
        (create("foo-bbbbbbbbbb", "full"), "a pod elsewhere", False),
        (create("foo-bbbbbbbbbb", "n1"), "a revision", True),
        (create("foo-bbbbbbbbbb", "n1"), "the orphan", False),
    ],
)
async def test_what_has_changed_since_the_snapshot_is_left_out_alone(
    planned: v1.Action, changed: str, is_left_out: bool
) -> None:
    first = plan(phase(DELETES, batch(planned, delete("own"))))
    if planned.create_pod.node_name == "n1":
        first.pod_manifest = first.pod_manifest.replace(b'"h1"', b'"h9"')
    rig = Rig(first)
    for name in ("orphan", "other"):
        rig.state.apply_event(Applied(pod(name, owner=None)))
    rig.state.apply_event(Applied(node("full")))
    for name in ("a", "b"):
        rig.state.apply_event(Applied(pod(name, node="full")))
    rig.state.apply_event(Applied(pod("own")))
    rig.service.on_plan = lambda: CHANGES[changed](rig.state)
    ending = await rig.reconcile()
    told = [event.reason for event in rig.actuator.events]
    if not is_left_out:
        assert isinstance(ending, Failed)
        assert (rig.executor.refused_plans, rig.actuator.calls, told) == (1, [], ["PlanRefused"])
        return
    assert ending == Settled(0), "it may still be due, in another plan"
    assert (rig.executor.refused_plans, rig.actuator.calls, told) == (0, [("delete", "own")], ["SuccessfulDelete"])
    (report,) = rig.service.reported
    assert [outcome.deleted_pod_uid for outcome in report.outcomes] == ["own-uid"]


# Nothing is deleted in favour of an object that is not adopted.
async def test_what_may_rest_on_an_adoption_is_left_out_with_it() -> None:
    rig = Rig(plan(phase(CLAIMS, batch(adopt("orphan"))), phase(DELETES, batch(delete("own"), EVENT))))
    rig.state.apply_event(Applied(pod("orphan", owner=None)))
    rig.state.apply_event(Applied(pod("own")))
    rig.service.on_plan = lambda: rig.state.apply_event(Applied(pod("orphan", "9", owner=None, labels={"app": "bar"})))
    assert await rig.reconcile() == Settled(0)
    assert (rig.actuator.calls, rig.executor.refused_plans) == ([], 0)


# A faulty service could make the executor expect creates that it never makes.
async def test_what_was_left_out_is_not_expected() -> None:
    creates = batch(create("foo-bbbbbbbbbb", "n1"), create("foo-cccccccccc", "gone"))
    rig = Rig(plan(phase(CREATES, creates), state=expecting("foo-bbbbbbbbbb", "foo-cccccccccc", nodes=("n1", "gone"))))
    rig.service.on_plan = lambda: rig.state.apply_event(Deleted(node("n3")))
    assert await rig.reconcile() == Settled(0)
    assert rig.service.reported[0].state == expecting("foo-bbbbbbbbbb")


# Only the read shows whether the object is the workload's.
@pytest.mark.parametrize(("error", "http_status"), [(refused(403), 403), (KeyError("a defect"), 0)])
async def test_nothing_is_written_while_what_a_plan_names_cannot_be_read(error: Exception, http_status: int) -> None:
    rig = Rig(plan(phase(DELETES, batch(delete("unseen")))))
    rig.actuator.script("read", "unseen", error)
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert "unseen, which the plan names: " in ending.reason
    assert ending.http_status == http_status
    assert (rig.actuator.calls, rig.executor.refused_plans) == ([("read", "unseen")], 0)


# Each of these objects is read, so a wrong service must not name as many as it likes.
@pytest.mark.parametrize("excess", [0, 1])
async def test_a_plan_names_only_so_many_objects_that_the_caches_do_not_show(excess: int) -> None:
    names = [f"unseen-{index}" for index in range(MAX_UNSEEN + excess)]
    rig = Rig(plan(phase(DELETES, batch(*map(delete, names)))))
    for name in names:
        rig.actuator.script("read", name, refused(404))
    ending = await rig.reconcile()
    reads = [call for call in rig.actuator.calls if call[0] == "read"]
    if not excess:
        assert len(reads) == MAX_UNSEEN
        return
    assert isinstance(ending, Failed)
    assert f"the plan names {len(names)} objects that the caches do not show" in ending.reason
    assert (rig.actuator.calls, rig.executor.refused_plans) == ([], 0)


# Whatever a service says, a workload is reconciled again at once only while it has tokens, and then at most ten times a
# second.
@pytest.mark.parametrize(
    ("planned", "says", "slow"),
    [
        (plan(requeue_after=Duration(nanos=1)), 1e-9, MIN_DELAY),
        (plan(requeue_after=Duration()), None, None),
        (plan(phase(EVENTS, batch(EVENT)), requeue_after=Duration()), 0, MIN_DELAY),
        (plan(phase(EVENTS, batch(EVENT)), requeue_after=Duration(), error="odd"), 0, MIN_DELAY),
        (plan(phase(CLAIMS, batch(adopt("a"))), requeue_after=Duration()), 0, MIN_DELAY),
    ],
)
async def test_a_workload_comes_back_at_once_only_so_often(
    planned: v1.Plan, says: float | None, slow: float | None
) -> None:
    many = 2 * MAX_TOKENS
    rig = Rig(*[planned] * many)

    async def comes_back() -> float | None:
        rig.state.apply_event(Bookmark(Resource.PODS, "1000"))
        ending = await rig.reconcile()
        assert isinstance(ending, Settled | Failed)
        return ending.after

    assert [await comes_back() for _ in range(MAX_TOKENS)] == [says] * MAX_TOKENS
    assert await comes_back() == slow
    rig.clock += MIN_DELAY
    assert [await comes_back(), await comes_back()] == [says, slow]
    rig.clock += 1
    assert [await comes_back() for _ in range(11)] == [says] * 10 + [slow]
    assert rig.service.reported == [], "outcomes that tell nothing are not reported"


async def test_nothing_is_expected_of_a_stale_plan() -> None:
    rig = Rig(plan(verdict=v1.VERDICT_STALE, state=expecting("foo-bbbbbbbbbb")))
    assert isinstance(await rig.reconcile(), Failed)
    assert (rig.actuator.calls, rig.held()) == ([], v1.ReconcileState())


async def test_requeues_and_errors_of_a_plan() -> None:
    after = Duration(seconds=3, nanos=500_000_000)
    rig = Rig(plan(requeue_after=after), plan(requeue_after=after, error="odd"), plan(verdict=v1.VERDICT_STALE))
    assert await rig.reconcile() == Settled(3.5)
    assert await rig.reconcile() == Failed("odd", 3.5)
    assert isinstance(await rig.reconcile(), Failed)
    assert rig.service.reported == []


async def test_an_undelivered_report_rides_on_the_next_plan() -> None:
    rig = Rig(plan(phase(CREATES, batch(create("foo-bbbbbbbbbb"))), requeue_after=Duration(seconds=9)), NOOP, NOOP)
    rig.service.reports = [UnreachableError("away")]
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert ending.after == 9
    assert "rides on the next plan" in ending.reason
    await rig.reconcile()
    await rig.reconcile()
    assert [len(request.undelivered_reports) for request in rig.service.requests] == [0, 1, 0]


# As if the channel of the call was closed.
async def test_a_call_that_was_cancelled_has_no_answer_and_cancels_nobody() -> None:
    rig = Rig(plan(phase(CREATES, batch(create("foo-bbbbbbbbbb")))), NOOP)
    real = rig.service.plan

    async def cancelled(*_: Any) -> Any:
        raise asyncio.CancelledError

    rig.service.plan = cancelled  # type: ignore[assignment, method-assign]
    assert isinstance(await rig.reconcile(), Unreachable)
    rig.service.plan, rig.service.report = real, cancelled  # type: ignore[assignment, method-assign]
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert "rides on the next plan" in ending.reason
    await rig.reconcile()
    assert [len(request.undelivered_reports) for request in rig.service.requests] == [0, 1]


async def test_a_plan_that_comes_after_the_stop_is_not_applied() -> None:
    rig = Rig(plan(phase(CREATES, batch(create("foo-bbbbbbbbbb")))))
    rig.service.on_plan = rig.executor.stop
    for _ in range(2):
        with pytest.raises(StoppedError):
            await rig.reconcile()
    assert len(rig.service.requests) == 1
    assert rig.actuator.calls == []


@pytest.mark.parametrize("stops", ["while it is applied", "while it is reported"])
async def test_a_report_that_hangs_after_the_stop_is_kept(stops: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute.executor, "REPORT_GRACE", 5.0)
    rig = Rig(plan(phase(CREATES, batch(create("foo-bbbbbbbbbb")))))
    telling = asyncio.Event()

    async def hangs(report: v1.ReportRequest) -> v1.ReportResponse:
        rig.service.reported.append(report)
        telling.set()
        await asyncio.Event().wait()
        raise AssertionError

    rig.service.report = hangs  # type: ignore[method-assign]
    if stops == "while it is applied":
        rig.actuator.on_call = lambda *_: rig.executor.stop()
    reconciling = asyncio.create_task(rig.reconcile())
    await asyncio.wait_for(telling.wait(), 20)
    if stops == "while it is reported":
        rig.executor.stop()
    done, _ = await asyncio.wait({reconciling}, timeout=0.05)
    assert not done, "it is waited for, if not for long"
    ending = await asyncio.wait_for(reconciling, 20)
    assert isinstance(ending, Failed)
    assert "rides on the next plan" in ending.reason
    assert list(rig.state.undelivered(KEY, "u1")) == rig.service.reported


async def test_neither_is_one_that_was_there_before() -> None:
    rig = two_in_a_row()
    await rig.reconcile()
    rig.executor.stop()
    with pytest.raises(StoppedError):
        await rig.reconcile()
    assert rig.actuator.calls == [("create", "foo-bbbbbbbbbb")]


async def test_nothing_goes_on_when_a_reconcile_is_cancelled() -> None:
    rig = two_in_a_row()
    began, ended = asyncio.Event(), asyncio.Event()

    async def slow(*_: Any) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            # An orderly close of a connection takes some iterations of the event loop.
            for _iteration in range(3):
                await asyncio.sleep(0)
            ended.set()

    rig.actuator.create = slow  # type: ignore[assignment, method-assign]
    reconciling = asyncio.create_task(rig.reconcile())
    await began.wait()
    reconciling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reconciling
    assert ended.is_set()


async def test_nothing_is_written_without_a_plan() -> None:
    rig = Rig(UnreachableError("away"), RefusedError("wrong"), NOOP)
    rig.state.keep_report(KEY, v1.ReportRequest(workload=v1.WorkloadReference(uid="u1")))
    assert isinstance(await rig.reconcile(), Unreachable)
    assert isinstance(await rig.reconcile(), Failed)
    await rig.reconcile()
    counts = [len(request.undelivered_reports) for request in rig.service.requests]
    assert counts == [1, 1, 0], "a report that may be what was refused is dropped"
    assert rig.actuator.calls == []


# W12: a faulty service can return a state that correct replicas refuse. Used pod names do not come from plans.
async def test_a_state_that_may_be_why_a_request_is_refused_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    backoff = v1.FailedPodBackoff(node_name="n1", delay=Duration(seconds=-1))
    used = [v1.UsedPodName(node_name="n1", pod_name="gone")]
    left = v1.ReconcileState(failed_pod_backoffs=[backoff], used_pod_names=used)
    violation = FieldViolation("snapshot.state.failed_pod_backoffs[0].delay", "is negative")
    wrong = RefusedError("wrong", grpc.StatusCode.INVALID_ARGUMENT, [violation])
    rig = Rig(wrong, plan(state=left), UnreachableError("away"), wrong, wrong, NOOP)
    rig.state.apply_event(Applied(pod("gone")))
    rig.state.apply_event(Deleted(pod("gone")))
    dropped = "ns/foo: the service refused the request; what earlier plans left to remember is dropped"
    told = []
    for ending in (Failed, Settled, Unreachable, Failed, Failed, Settled):
        assert isinstance(await rig.reconcile(), ending)
        told.append(dropped in caplog.text)
        caplog.clear()
    assert told == [False, False, False, True, False, False], "only a request with a state"
    sent = [request.snapshot.state for request in rig.service.requests]
    assert all(state.used_pod_names == used for state in sent)
    assert [list(state.failed_pod_backoffs) for state in sent] == [[], [], [backoff], [backoff], [], []]


# As upstream, back-off outlives a DaemonSet that cannot be planned for.
async def test_what_is_refused_for_another_field_leaves_the_state() -> None:
    backoff = v1.FailedPodBackoff(node_name="n1", delay=Duration(seconds=1))
    violation = FieldViolation("snapshot.workload.daemon_set.object", "spec.selector is missing")
    wrong = RefusedError("wrong", grpc.StatusCode.INVALID_ARGUMENT, [violation])
    rig = Rig(plan(state=v1.ReconcileState(failed_pod_backoffs=[backoff])), wrong, NOOP)
    for ending in (Settled, Failed, Settled):
        assert isinstance(await rig.reconcile(), ending)
    sent = [list(request.snapshot.state.failed_pod_backoffs) for request in rig.service.requests]
    assert sent == [[], [backoff], [backoff]]


# L-44: nothing is rolled out by a service that is too old, and people are told. What is remembered is not the cause.
async def test_a_service_that_is_too_old_is_no_fault_of_the_request() -> None:
    backoff = v1.FailedPodBackoff(node_name="n1", delay=Duration(seconds=1))
    old = RefusedError("it is too old:\nupgrade it", grpc.StatusCode.UNIMPLEMENTED, lacks="RolloutPolicies")
    rig = Rig(plan(state=v1.ReconcileState(failed_pod_backoffs=[backoff])), old, NOOP)
    assert isinstance(await rig.reconcile(), Settled)
    calls = list(rig.actuator.calls)
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert ending.refused, "it is tried again as often as it takes"
    assert rig.actuator.calls == calls, "nothing is written"
    (event,) = rig.actuator.events
    assert (event.type, event.reason, event.message) == ("Warning", "ServiceTooOld", "it is too old:\\nupgrade it")
    assert isinstance(await rig.reconcile(), Settled)
    assert list(rig.service.requests[-1].snapshot.state.failed_pod_backoffs) == [backoff]


# L-2: nothing is rolled out without knowing the policies. The next list says which there are.
async def test_a_workload_waits_while_its_policies_are_unknown() -> None:
    rig = Rig(NOOP)
    rig.state.apply_event(Unknown(Resource.POLICIES, "they are served as v1"))
    ending = await rig.reconcile()
    assert ending == Failed("nothing is rolled out without knowing the rolloutpolicies: they are served as v1")
    assert (rig.service.requests, rig.actuator.calls) == ([], [])
    rig.state.apply_event(Listed(Resource.POLICIES, [], ""))
    assert await rig.reconcile() == Settled()


# Unmet expectations are the executor's own observations. Without them there could be two pods on a node.
@pytest.mark.parametrize("at", [5, NOW - 300, NOW, NOW + 1, -(10**12), 10**12])
async def test_what_is_expected_outlives_a_refusal(at: int) -> None:
    backoff = v1.FailedPodBackoff(node_name="n1", delay=Duration(seconds=-1))
    rig = two_in_a_row(state=expecting("foo-bbbbbbbbbb", at=at, failed_pod_backoffs=[backoff]))
    rig.service.plans[1:] = [RefusedError("wrong"), RefusedError("too large"), NOOP]
    left = expecting("foo-bbbbbbbbbb", at=at, failed_pod_backoffs=[backoff])
    rig.service.reports[0].state.CopyFrom(left)
    assert await rig.reconcile() == Settled(0.0)
    assert rig.held() == left, "the plan was under way when the request for the next was refused"
    assert isinstance(await rig.reconcile(), Failed)
    # Expectations older than five minutes have expired, and the service refuses invalid times.
    is_old = at < NOW - 300
    kept = expecting("foo-bbbbbbbbbb", at=min(at, NOW))
    assert rig.held() == (v1.ReconcileState() if is_old else kept)
    assert await rig.reconcile() == Settled()


# Texts of the service go into logs, Events and results on one line and with a limited length.
async def test_words_of_the_service_are_cut() -> None:
    said, told = "one\ntwo\x1b[2J" + "ä" * 10_000, "one\\ntwo\\u{1b}[2J"
    rig = Rig(plan(error=said), plan(phase(CREATES, batch(create("foo-bbbbbbbbbb")))), plan())
    rig.service.plans[1].plan_id = said
    rig.service.plans[2].workload.name = said
    rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_BACKOFF, message=said)]
    for _ in range(3):
        ending = await rig.reconcile()
        assert isinstance(ending, Failed)
        assert told in ending.reason
        assert ending.reason.endswith("ä…")
        assert len(ending.reason.encode()) < 1_100
    (report,) = rig.service.reported
    assert report.plan_id.startswith(told)
    assert len(report.plan_id) < 1_000
    assert rig.actuator.events[-1].message == ending.reason


async def test_a_refused_report_ends_the_reconcile() -> None:
    manifest = REVISION
    taken = action(create_revision=v1.CreateRevision(name="foo-rrrrrrrrrr", manifest=manifest))
    rig = Rig(plan(phase(REVISIONS, batch(taken))))
    rig.actuator.script("create", "foo-rrrrrrrrrr", refused(409, "AlreadyExists"))
    rig.actuator.script("read", "foo-rrrrrrrrrr", revision("foo-rrrrrrrrrr", owner="u9").object)
    rig.service.reports = [RefusedError("too large")]
    assert isinstance(await rig.reconcile(), Failed)
    assert len(rig.service.requests) == 1


# D-62
async def test_a_revision_whose_name_is_taken_is_planned_with_at_once() -> None:
    taken = plan(
        phase(REVISIONS, batch(action(create_revision=v1.CreateRevision(name="foo-rrrrrrrrrr", manifest=REVISION))))
    )
    rig = Rig(*[taken] * MAX_PLANS)
    served = revision("foo-rrrrrrrrrr", owner="u9").object
    for _ in range(MAX_PLANS):
        rig.actuator.script("create", "foo-rrrrrrrrrr", refused(409, "AlreadyExists"))
        rig.actuator.script("read", "foo-rrrrrrrrrr", served)
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert f"after {MAX_PLANS} plans" in ending.reason
    marked = [[r.read_after_name_collision for r in request.snapshot.revisions] for request in rig.service.requests]
    assert marked[:2] == [[False], [False, True]]
    assert rig.service.requests[1].snapshot.revisions[1].object == served


async def test_what_was_read_live_outlives_a_wait_for_the_caches() -> None:
    manifest = REVISION
    taken = action(create_revision=v1.CreateRevision(name="foo-rrrrrrrrrr", manifest=manifest))
    rig = Rig(
        plan(phase(REVISIONS, batch(taken), batch(create("foo-xxxxxxxxxx"))), phase(CLAIMS, batch(adopt("a")))), NOOP
    )
    rig.actuator.script("create", "foo-rrrrrrrrrr", refused(409, "AlreadyExists"))
    rig.actuator.script("read", "foo-rrrrrrrrrr", revision("foo-rrrrrrrrrr", owner="u9").object)
    assert isinstance(await rig.reconcile(), Waiting), "for the adoption to be seen"
    rig.state.apply_event(Bookmark(Resource.PODS, "200"))
    assert await rig.reconcile() == Settled()
    assert [r.read_after_name_collision for r in rig.service.requests[1].snapshot.revisions] == [False, True]


# D-23
async def test_an_orphan_that_is_gone_is_planned_without_at_once() -> None:
    rig = Rig(plan(phase(CLAIMS, batch(adopt("orphan"))), phase(CREATES, batch(create("foo-xxxxxxxxxx")))), NOOP)
    rig.state.apply_event(Applied(pod("orphan", owner=None)))
    rig.actuator.script("patch", "orphan", refused(404))
    assert await rig.reconcile() == Settled()
    sizes = [len(request.snapshot.pod_buckets[0].data) for request in rig.service.requests]
    assert sizes[0] > 0
    assert sizes[1] == 0
    assert ("create", "foo-xxxxxxxxxx") not in rig.actuator.calls


async def test_revisions_created_by_a_plan_that_was_cut_short_are_read_live() -> None:
    made = action(create_revision=v1.CreateRevision(name="foo-rrrrrrrrrr", manifest=REVISION))
    rig = Rig(plan(phase(REVISIONS, batch(made)), phase(CLAIMS, batch(adopt("orphan")))), NOOP)
    rig.actuator.script("patch", "orphan", refused(404))
    rig.actuator.script("read", "foo-rrrrrrrrrr", revision("foo-rrrrrrrrrr").object)
    assert await rig.reconcile() == Settled()
    assert [len(request.snapshot.revisions) for request in rig.service.requests] == [1, 2]


async def test_a_defect_in_that_read_loses_no_report() -> None:
    made = action(create_revision=v1.CreateRevision(name="foo-rrrrrrrrrr", manifest=REVISION))
    rig = Rig(plan(phase(REVISIONS, batch(made)), phase(CLAIMS, batch(adopt("orphan")))), NOOP)
    rig.actuator.script("patch", "orphan", refused(404))
    rig.actuator.script("read", "foo-rrrrrrrrrr", KeyError("a defect"))
    assert await rig.reconcile() == Settled()
    assert len(rig.service.reported) == 1


async def test_a_sealed_revision_is_marked_while_it_stays_as_it_is() -> None:
    update = action(
        update_revision=v1.UpdateRevision(
            revision=v1.ObjectReference(name="r", uid="x"), patch=b'{"metadata":{"uid":"x"}}'
        )
    )
    rig = Rig(plan(phase(REVISIONS, batch(update))), NOOP, NOOP)
    rig.state.apply_event(Applied(revision("r", "5")))
    rig.actuator.script("patch", "r", refused(422, "Invalid", 'ControllerRevision "r" is invalid: data: immutable'))
    assert await rig.reconcile() == Settled()
    rig.state.apply_event(Applied(revision("r", "6")))
    await rig.reconcile()
    marked = [[r.read_after_name_collision for r in request.snapshot.revisions] for request in rig.service.requests]
    assert marked == [[False, False], [False, True], [False, False]]


# ReconcileState: a failed phase that ends a plan restores the back-off that was sent.
@pytest.mark.parametrize("aborts", [True, False])
async def test_backoffs_are_restored_when_a_plan_ends_early(aborts: bool) -> None:
    backoff = v1.FailedPodBackoff(node_name="n1", observed_generation=1)
    rig = Rig(plan(state=v1.ReconcileState(failed_pod_backoffs=[backoff])))
    await rig.reconcile()
    rig.service.plans = [plan(phase(CLAIMS, batch(delete("x")), aborts=aborts), state=v1.ReconcileState())]
    rig.actuator.script("delete", "x", refused(403))
    await rig.reconcile()
    assert list(rig.held().failed_pod_backoffs) == ([backoff] if aborts else [])


async def test_observing_writes_nothing_and_expects_nothing() -> None:
    rig = Rig(
        plan(
            phase(CREATES, batch(create("foo-bbbbbbbbbb"))),
            state=expecting("foo-bbbbbbbbbb"),
            requeue_after=Duration(seconds=2),
        ),
        writes=False,
    )
    assert await rig.reconcile() == Settled(2)
    assert rig.held() == v1.ReconcileState()
    assert rig.service.reported == []


async def test_a_request_takes_what_is_known_by_then() -> None:
    rig = Rig(NOOP)
    real = rig.service.plan

    async def late(uid: str, build: Any) -> v1.Plan:
        build(Receiver())
        rig.state.apply_event(Applied(daemon_set(version="7", minReadySeconds=3)))
        return await real(uid, build)

    rig.service.plan = late  # type: ignore[method-assign]
    await rig.reconcile()
    served = json.loads(rig.service.requests[0].snapshot.workload.daemon_set.object)
    assert served["metadata"]["resourceVersion"] == "7"
