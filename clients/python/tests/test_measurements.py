"""Tests the bookkeeping of measurements, and reconciles of a workload with RolloutPolicies."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import KubeClient, Reconciler, subjects, v1
from nodewise.actuator import Blocked
from nodewise.execute import Executor, Failed, Settled, Waiting
from nodewise.expectations import ReconcileStates
from nodewise.kinds import DAEMON_SET, Key, Resource, watched
from nodewise.measurements import MOST, MOST_BYTES, MOST_VALUE_BYTES, Measurements, Result, Subject
from nodewise.store import Applied, Bookmark, Deleted
from nodewise.subjects import Subjects

from .fakes import FakeService, action, batch, create, phase, plan, refused
from .objects import KEY, daemon_set, listed, pod, policy
from .polling import eventually
from .test_discovery import INSTALLED
from .test_evictions import DELETES, POLICIES, evict, policy_status
from .test_execute import NOOP, NOW, Rig, expecting
from .test_kube import Apiserver, Handler, apiserver, lines, page, refuse

__all__ = ["apiserver"]

ANALYSIS = v1.PHASE_KIND_ANALYSIS


class Scripted:
    """Hands out the futures of its measurements."""

    hosts: Sequence[str] = ("prometheus:9090",)

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[Result]] = []
        self.subjects: list[Subject] = []

    async def measure(self, subject: Subject, request: v1.Measure) -> Result:
        self.subjects.append(subject)
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        return await answer


def subject(uid: str = "u1") -> Subject:
    return Subject(v1.WorkloadReference(kind="DaemonSet", namespace="ns", name="foo", uid=uid))


def request(number: int = 0) -> v1.Measure:
    return v1.Measure(id=v1.MeasurementId(policy_uid="p1", number=number))


def numbers(measurements: Measurements, uid: str = "u1") -> list[int]:
    return [result.id.number for result in measurements.results(KEY, uid)]


async def asked(measurer: Scripted, count: int) -> None:
    await eventually(lambda: len(measurer.asked) == count, f"{count} calls")


async def test_a_result_stays_until_it_is_counted() -> None:
    ended: list[Key] = []
    measurer = Scripted()
    measurements = Measurements(measurer, ended.append)
    for number in (0, 1, 0):
        measurements.start(subject(), request(number))
    await asked(measurer, 2)
    first, second = measurer.asked
    assert numbers(measurements) == []
    second.set_result("2")
    await eventually(lambda: ended == [KEY], "the end")
    (result,) = measurements.results(KEY, "u1")
    assert (result.id.number, result.value, result.time.seconds > 0) == (1, "2", True)
    assert numbers(measurements, "u2") == [], "another workload of the name has none"
    measurements.start(subject(), request(1))
    measurements.counted(KEY, [request(0).id, request(1).id])
    assert numbers(measurements) == []
    first.set_result(v1.MeasuredVerdict(verdict=v1.ANALYSIS_VERDICT_FAIL, message="no"))
    await eventually(lambda: ended == [KEY, KEY], "the one that was under way stays")
    (result,) = measurements.results(KEY, "u1")
    assert (result.id.number, result.verdict.verdict, len(measurer.asked)) == (0, v1.ANALYSIS_VERDICT_FAIL, 2)
    await measurements.close()


INTERVALS = [
    {
        "name": "canary",
        "analysis": [{"name": "errors", "interval": "5s"}, {"name": "others"}, {"name": "odd", "interval": "x"}],
    },
    7,
    {
        "name": "zones",
        "groupBy": "zone",
        "analysis": [{"name": "errors", "interval": "1h1m7s"}, {"name": "none", "interval": ""}],
    },
]


# The name of a wave begins with that of its stage. Without an interval it is a minute.
@pytest.mark.parametrize(
    ("stage", "check", "expected"),
    [
        ("canary", "errors", 5),
        ("zones/a", "errors", 3667),
        ("canary", "others", 60),
        ("canaryx", "errors", 60),
        ("canary", "odd", 60),
        ("zones/a", "none", 60),
    ],
)
def test_the_interval_is_that_of_the_check(stage: str, check: str, expected: float) -> None:
    of = v1.Measure(id=v1.MeasurementId(policy_uid="p-uid", stage=stage, check=check))
    assert Subjects(plan(), [policy(stages=INTERVALS)]).of(of).interval == expected
    for without in ([], [policy(stages=7)]):
        assert Subjects(plan(), without).of(of).interval == 60


# A wrong service asks and never counts. The error counts as one of the check, so that the rollout waits.
async def test_the_results_of_a_workload_have_a_limited_size() -> None:
    scripted, size = Scripted(), 64 << 10
    measurements = Measurements(scripted)
    for number in range(100):
        measurements.start(subject(), request(number))
        await eventually(lambda number=number: len(scripted.asked) > number, "a call")  # type: ignore[misc]
        scripted.asked[-1].set_result("x" * size)
        await eventually(lambda number=number: len(measurements.results(KEY, "u1")) > number, "a result")  # type: ignore[misc]
    results = measurements.results(KEY, "u1")
    assert sum(result.ByteSize() for result in results) < MOST_BYTES + 100 * 300
    assert sum(result.HasField("value") for result in results) == MOST_BYTES // size - 1
    assert "at most 4194304 are held" in results[99].error
    measurements.counted(KEY, [result.id for result in results])
    measurements.start(subject(), request())
    await eventually(lambda: len(scripted.asked) == 101, "a call")
    scripted.asked[-1].set_result("1")
    await eventually(lambda: [result.value for result in measurements.results(KEY, "u1")] == ["1"], "a result")


async def test_what_was_measured_for_other_policies_is_forgotten() -> None:
    scripted = Scripted()
    measurements = Measurements(scripted)
    for number in range(3):
        of = request(number)
        of.id.policy_uid = "p2" if number == 2 else "p1"
        measurements.start(subject(), of)
    await eventually(lambda: len(scripted.asked) == 3, "the calls")
    scripted.asked[0].set_result("1")
    await eventually(lambda: numbers(measurements) == [0], "a result")
    measurements.retain(KEY, {"p2"})
    assert numbers(measurements) == []
    await eventually(scripted.asked[1].cancelled, "the end of the call")
    scripted.asked[2].set_result("1")
    await eventually(lambda: numbers(measurements) == [2], "the result of the other policy")
    measurements.retain(KEY, set())
    assert numbers(measurements) == []


async def test_nobody_waits_for_a_workload_that_is_gone() -> None:
    measurer = Scripted()
    measurements = Measurements(measurer)
    measurements.start(subject(), request())
    await asked(measurer, 1)
    measurements.forget(KEY)
    await eventually(measurer.asked[0].cancelled, "the end")
    measurements.start(subject(), request())
    await asked(measurer, 2)
    measurements.start(subject("u2"), request())
    await eventually(measurer.asked[1].cancelled, "the end of that of the workload before")
    await asked(measurer, 3)
    await measurements.close()
    assert measurer.asked[2].cancelled()
    measurements.start(subject("u2"), request(1))
    await asyncio.sleep(0)
    assert len(measurer.asked) == 3, "it is over"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ValueError("no\nroute"), "no\\nroute"),
        (KeyError(), "KeyError"),
        ("x" * (MOST_VALUE_BYTES + 1), f"the value has {MOST_VALUE_BYTES + 1} bytes, and 65536 are allowed"),
        ("\ud800", None),
    ],
    ids=["an error", "without words", "too long", "no UTF-8"],
)
async def test_a_measurement_that_cannot_be_made_has_an_error(answer: Any, expected: str | None) -> None:
    measurer = Scripted()
    measurements = Measurements(measurer)
    measurements.start(subject(), request())
    await asked(measurer, 1)
    if isinstance(answer, Exception):
        measurer.asked[0].set_exception(answer)
    else:
        measurer.asked[0].set_result(answer)
    await eventually(lambda: numbers(measurements) == [0], "the result")
    (result,) = measurements.results(KEY, "u1")
    assert result.WhichOneof("result") == "error"
    assert expected in (None, result.error)


async def test_without_a_measurer_no_measurement_can_be_made() -> None:
    measurements = Measurements()
    measurements.start(subject(), request())
    await eventually(lambda: numbers(measurements) == [0], "the result")
    assert measurements.results(KEY, "u1")[0].error == "this executor makes no measurements"
    assert measurements.hosts == []


async def test_the_number_of_measurements_of_a_workload_is_limited() -> None:
    measurer = Scripted()
    measurements = Measurements(measurer)
    for number in range(MOST + 1):
        measurements.start(subject(), request(number))
    await asked(measurer, MOST)
    await measurements.close()

    class Generous(Scripted):
        hosts = ["h"] * 101

    with pytest.raises(ValueError, match="may call 100 hosts at most"):
        Measurements(Generous())


FOO = {"name": "foo", "uid": "u1"}


# Webhooks and VerdictServices get the status with what the plan has just written, and not that of a workload that is
# gone.
@pytest.mark.parametrize(
    ("present", "patch", "expected"),
    [
        (None, None, {}),
        (
            {"targets": [{"name": "foo", "uid": "u0"}, {**FOO, "state": "x"}]},
            None,
            {**FOO, "state": "x"},
        ),
        ({"targets": [FOO]}, {"targets": [{**FOO, "updated": 1}]}, {**FOO, "updated": 1}),
        ({"targets": [FOO], "summary": {"stage": "a"}}, {"summary": {"stage": None}}, FOO),
        ({"targets": [FOO]}, {"targets": None}, {}),
        ({"targets": [7, {"name": "bar", "uid": "u1"}, {"name": "foo"}]}, None, {}),
        (7, None, {}),
    ],
)
def test_the_status_that_is_sent(present: Any, patch: Any, expected: dict[str, Any]) -> None:
    of = policy()
    served = {**json.loads(of.object), "status": present}
    object.__setattr__(of, "object", json.dumps(served).encode())
    measure = v1.Measure(id=v1.MeasurementId(policy_uid="p-uid"))
    patched = policy_status()
    patched.patch_object.patch = json.dumps({} if patch is None else {"status": patch}).encode()
    planned = plan(phase(POLICIES, batch(policy_status(name="q")), batch(patched)))
    assert json.loads(Subjects(planned, [policy("q"), of]).of(measure).status) == expected
    assert json.loads(Subjects(planned, []).of(v1.Measure()).status) == {}


# A plan may have many measurements of one policy, which may be large.
def test_each_policy_is_parsed_once_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def parse(text: bytes) -> dict[str, Any]:
        parsed.append(text)
        return {}

    monkeypatch.setattr(subjects, "_object", parse)
    of = Subjects(plan(phase(POLICIES, batch(policy_status()))), [policy()])
    for number in range(10):
        of.of(v1.Measure(id=v1.MeasurementId(policy_uid="p-uid", number=number)))
    assert len(parsed) == 2, "the policy and its patch"


class PolicyRig(Rig):
    """An executor with a DaemonSet and its policy in the caches."""

    def __init__(self, *plans: v1.Plan, **policy_fields: Any) -> None:
        super().__init__(*plans)
        self.measurer = Scripted()
        self.ended: list[Key] = []
        self.measurements = Measurements(self.measurer, self.ended.append)
        options = v1.PlanOptions()
        self.executor = Executor(
            self.state,
            self.actuator,
            self.service,
            options,
            measurements=self.measurements,
            now=lambda: Timestamp(seconds=NOW),
            clock=lambda: self.clock,
        )
        self.state.apply_event(Applied(policy("p", "10", **policy_fields)))

    def sent(self, number: int) -> v1.DaemonSet:
        return self.service.requests[number].snapshot.workload.daemon_set


def heeding(of: v1.Plan) -> v1.Plan:
    heeds = v1.Plan()
    heeds.CopyFrom(of)
    heeds.rollout_policy_uids.append("p-uid")
    return heeds


def evicting() -> v1.Plan:
    state = v1.ReconcileState(
        expectations=v1.Expectations(set_at=Timestamp(seconds=NOW), delete_uids=["p1-uid"]),
    )
    return heeding(plan(phase(DELETES, batch(evict("p1"))), state=state))


def writing(version: str = "10") -> v1.Plan:
    return heeding(plan(phase(POLICIES, batch(policy_status(version)), aborts=True)))


# A service that does not know policies rolls out nothing for a workload that has one.
async def test_a_plan_that_does_not_heed_the_policies_is_refused() -> None:
    rig = PolicyRig(plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb")))))
    ending = await rig.reconcile()
    assert isinstance(ending, Failed)
    assert ending.refused
    assert "does not confirm each RolloutPolicy that was sent (p)" in ending.reason
    assert (rig.actuator.calls, rig.executor.refused_plans) == ([], 1)
    assert len(rig.sent(0).rollout_policies) == 1


# L-24: the expectation of a blocked eviction is lowered, and the eviction is asked for again after the back-off.
async def test_a_blocked_eviction_is_held_and_tried_again() -> None:
    over = heeding(plan(verdict=v1.VERDICT_NOOP, state=v1.ReconcileState()))
    rig = PolicyRig(evicting(), evicting(), over)
    rig.state.apply_event(Applied(pod("p1")))
    rig.actuator.script("evict", "p1", Blocked("budget b"), Blocked("budget b", 90))
    for attempts, wait in ((1, 10), (2, 90)):
        assert await rig.reconcile() == Settled(wait)
        assert not rig.executor.waits_for_watches(KEY)
        (blocked,) = rig.held().blocked_evictions
        assert (blocked.pod_uid, blocked.message, blocked.attempts) == ("p1-uid", "budget b", attempts)
        assert blocked.retry_time.seconds == NOW + wait
        report = rig.service.reported.pop()
        assert [outcome.result for outcome in report.outcomes] == [v1.RESULT_BLOCKED]
        assert len(report.state.blocked_evictions) == 1
    assert len(rig.service.requests[1].snapshot.state.blocked_evictions) == 1
    assert await rig.reconcile() == Settled()
    assert not rig.held().blocked_evictions, "the plan left it out"


# The service may ask for an earlier time, and cannot ask for none.
async def test_the_service_does_not_delay_a_blocked_eviction() -> None:
    for after, expected in ((Duration(seconds=3), 3), (Duration(seconds=30), 10)):
        rig = PolicyRig(evicting())
        rig.state.apply_event(Applied(pod("p1")))
        rig.actuator.script("evict", "p1", Blocked("budget b"))
        rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_AFTER, requeue_after=after)]
        assert await rig.reconcile() == Settled(expected)


# D-73: an eviction is expected like a delete.
async def test_an_eviction_is_expected() -> None:
    rig = PolicyRig(evicting())
    rig.state.apply_event(Applied(pod("p1")))
    assert await rig.reconcile() == Settled()
    assert rig.executor.waits_for_watches(KEY)
    rig.state.apply_event(Deleted(pod("p1", "2")))
    assert not rig.executor.waits_for_watches(KEY)


# L-24: the entry stays until a plan leaves it out, the pod is gone, or the service may have refused the state for it.
def test_blocked_evictions_are_kept() -> None:
    class Nothing:
        def exists(self, pod_name: str) -> bool:
            return False

        def deleting(self) -> dict[str, bool]:
            return {"u1": False, "u2": False}

    def blocked() -> ReconcileStates:
        states = ReconcileStates()
        states.replace(KEY, "d1", expecting(deletes=("u1", "u2")), v1.ReconcileState(), Nothing())
        states.lower(KEY, "d1", [v1.Outcome(result=v1.RESULT_BLOCKED, deleted_pod_uid="u1")])
        states.block(KEY, "d1", {"u1": Blocked("budget b")}, v1.ReconcileState(), Timestamp(seconds=200))
        return states

    def count(states: ReconcileStates) -> int:
        return len(states.get(KEY, "d1").blocked_evictions)

    states = blocked()
    assert (states.outstanding(KEY), count(states)) == ((0, 1), 1)
    states.settle(KEY, "d1", v1.ReconcileState())
    assert count(states) == 1, "a report leaves it"
    sent = states.get(KEY, "d1")
    states.replace(KEY, "d1", sent, sent, Nothing())
    assert count(states) == 1, "a plan keeps it"
    forged = v1.ReconcileState(blocked_evictions=[v1.BlockedEviction()] * 3)
    states.replace(KEY, "d1", forged, sent, Nothing())
    assert count(states) == 0, "a plan leaves it out, and adds none"
    states = blocked()
    states.observe_deletion(KEY, "p", "u1")
    assert count(states) == 0, "the pod is gone"
    states = blocked()
    assert states.drop_planned(KEY, "d1", Timestamp(seconds=200))
    assert count(states) == 0, "it may be the cause"
    states = blocked()
    assert not states.get(KEY, "d2").blocked_evictions, "another workload of the name"


# D-109: no plan is made from a policy whose own status is not seen yet.
async def test_the_status_of_a_policy_is_waited_for() -> None:
    rig = PolicyRig(writing(), heeding(NOOP))
    assert await rig.reconcile() == Settled()
    ending = await rig.reconcile()
    assert isinstance(ending, Waiting)
    assert "rolloutpolicies" in str(ending.behind)
    rig.state.apply_event(Applied(policy("p", "200")))
    assert await rig.reconcile() == Settled()
    # A resource that is removed has no versions to wait for.
    rig = PolicyRig(writing(), NOOP)
    await rig.reconcile()
    rig.state.apply_event(listed(Resource.POLICIES, version=""))
    assert await rig.reconcile() == Settled()
    assert len(rig.service.requests) == 2


# Somebody else may write to a policy at any time. The next plan has the newer policy.
async def test_a_policy_that_has_changed_is_no_failure_of_the_workload() -> None:
    for code, is_conflict in ((409, True), (403, False)):
        rig = PolicyRig(writing())
        rig.actuator.script("patch", "p", refused(code))
        rig.service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_BACKOFF)]
        ending = await rig.reconcile()
        assert isinstance(ending, Failed)
        assert (ending.conflict, ending.http_status) == (is_conflict, code)


STAGES = [{"name": "s", "analysis": [{"name": "c", "interval": "90s", "webhook": {"url": "https://checks"}}]}]


def measuring() -> v1.Plan:
    of = v1.MeasurementId(policy_uid="p-uid", revision_hash="h", stage="s", check="c")
    measure = v1.Measure(id=of, policy_name="p", webhook=v1.WebhookCall(url="https://checks"))
    return heeding(plan(phase(ANALYSIS, batch(action(measure=measure)))))


# L-31: a result is in the snapshots until a plan that had it was carried out.
async def test_a_measurement_is_sent_until_it_is_counted() -> None:
    rig = PolicyRig(measuring(), writing(), writing(), heeding(NOOP), stages=STAGES)
    assert await rig.reconcile() == Settled()
    await asked(rig.measurer, 1)
    (about,) = rig.measurer.subjects
    assert (about.key, about.interval) == (KEY, 90)
    rig.measurer.asked[0].set_result("1")
    await eventually(lambda: rig.ended == [KEY], "the end")
    rig.actuator.script("patch", "p", refused(409))
    await rig.reconcile()
    await rig.reconcile()
    rig.state.apply_event(Bookmark(Resource.POLICIES, "200"))
    assert await rig.reconcile() == Settled()
    sent = [(len(rig.sent(number).measurements), list(rig.sent(number).analysis_hosts)) for number in range(4)]
    assert sent == [(count, ["prometheus:9090"]) for count in (0, 1, 1, 0)]


# A policy of another name or uid never counts it.
async def test_a_measurement_ends_with_its_policy() -> None:
    rig = PolicyRig(measuring(), plan(verdict=v1.VERDICT_NOOP, rollout_policy_uids=["q-uid"]), stages=STAGES)
    assert await rig.reconcile() == Settled()
    await asked(rig.measurer, 1)
    rig.state.apply_event(Deleted(policy("p", "11")))
    rig.state.apply_event(Applied(policy("q", "12", stages=STAGES)))
    assert await rig.reconcile() == Settled()
    await eventually(rig.measurer.asked[0].cancelled, "the end of the measurement")


# Without a write that counts it, a plan without actions has seen the result.
async def test_a_plan_without_actions_counts_a_measurement() -> None:
    rig = PolicyRig(measuring(), heeding(NOOP), stages=STAGES)
    await rig.reconcile()
    await asked(rig.measurer, 1)
    rig.measurer.asked[0].set_result("1")
    await eventually(lambda: rig.ended == [KEY], "the end")
    await rig.reconcile()
    assert numbers(rig.measurements) == []


async def test_without_policies_nothing_is_added_to_a_snapshot() -> None:
    rig = PolicyRig(NOOP)
    rig.state.apply_event(Deleted(policy("p", "11")))
    rig.measurements.start(subject(), request())
    await asked(rig.measurer, 1)
    assert await rig.reconcile() == Settled()
    assert (len(rig.sent(0).measurements), list(rig.sent(0).analysis_hosts)) == (0, [])
    await eventually(rig.measurer.asked[0].cancelled, "nobody waits for it")


def paths(**objects: list[bytes]) -> dict[str, list[Handler]]:
    """An apiserver with these objects, by their resources, which may be watched."""
    script: dict[str, list[Handler]] = {f"GET {Resource.POLICIES.api}": [INSTALLED]}
    for resource in watched([DAEMON_SET]):
        items = [json.loads(served) for served in objects.get(resource.value, [])]
        script[f"GET {resource.collection(None)}"] = [page(items), lines()]
    return script


async def test_the_end_of_a_measurement_queues_the_workload(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    server.script = paths(daemonsets=[daemon_set().object], rolloutpolicies=[policy("p", "10", stages=STAGES).object])
    service, measurer = FakeService([measuring(), *[heeding(NOOP)] * 9]), Scripted()
    async with Reconciler(kube, service, measurer=measurer):
        await asked(measurer, 1)
        before = len(service.requests)
        measurer.asked[0].set_result("1")
        await eventually(lambda: len(service.requests) > before, "the next plan")
        (sent,) = service.requests[before].snapshot.workload.daemon_set.measurements
        assert sent.value == "1"


# It is logged for people, and is no warning.
async def test_a_conflict_is_retried(apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    server, kube = apiserver
    server.script = paths(daemonsets=[daemon_set().object], rolloutpolicies=[policy("p", "10").object])
    server.script[f"PATCH {Resource.POLICIES.collection('ns')}/p/status"] = [refuse(409, "Conflict", "it has changed")]
    service = FakeService([writing(), *[heeding(NOOP)] * 9], [v1.ReportResponse(requeue=v1.REQUEUE_BACKOFF)])
    async with Reconciler(kube, service):
        await eventually(lambda: len(service.requests) == 2, "the next plan")
    (record,) = [record for record in caplog.records if "it has changed" in record.message]
    assert record.levelname == "INFO"
