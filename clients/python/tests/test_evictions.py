"""Tests evictions and the statuses of RolloutPolicies: the calls, what each answer means, and the back-off."""

import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import times, v1
from nodewise.actuator import ActuatorError, Blocked, ObserveActuator, Refusal, WorkloadEvent
from nodewise.apply import Applied, OwnWrite, apply
from nodewise.blocked import MOST, BlockedEvictions
from nodewise.kinds import ObjectKey, Resource
from nodewise.kube import EventRecorder, KubeActuator, KubeClient

from .fakes import FakeActuator, action, batch, phase, plan, refused
from .polling import eventually
from .test_apply import SERVED, one, results, run
from .test_kube import Apiserver, Handler, answer, apiserver, raw, refuse, status

__all__ = ["apiserver"]

DELETES, POLICIES = v1.PHASE_KIND_DELETES, v1.PHASE_KIND_ROLLOUT_POLICIES
KEY = ObjectKey(Resource.PODS, "demo", "p")
PROTECTED = "Cannot evict pod as it would violate the pod's disruption budget."
NEEDS = "The disruption budget b needs 3 healthy pods and has 3 currently"


def evict(name: str) -> v1.Action:
    return action(
        evict_pod=v1.EvictPod(pod=v1.ObjectReference(name=name, uid=f"{name}-uid"), node_name="n1"),
    )


def protected(seconds: int | None = None, header: str = "") -> Handler:
    """The answer to an eviction that a budget does not allow."""

    async def handle(_: Any) -> Any:
        causes = [{"reason": "DisruptionBudget", "message": NEEDS}]
        said = json.loads(status(429, "TooManyRequests", PROTECTED, causes).body)  # type: ignore[arg-type]
        if seconds is not None:
            said["details"]["retryAfterSeconds"] = seconds
        made = status(429)
        made.text = json.dumps(said)
        if header:
            made.headers["Retry-After"] = header
        return made

    return handle


# L-24: through the Eviction API, with the uid. What a budget forbids is no error, and the message names the budget.
@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (answer({"kind": "Status"}), None),
        (protected(), Blocked(f"{PROTECTED} {NEEDS}")),
        (protected(0), Blocked(f"{PROTECTED} {NEEDS}")),
        (protected(10), Blocked(f"{PROTECTED} {NEEDS}", 10)),
        (protected(10, "7"), Blocked(f"{PROTECTED} {NEEDS}", 10)),
        (protected(None, "12"), Blocked(f"{PROTECTED} {NEEDS}", 12)),
        (protected(None, "Wed, 21 Oct 2026 07:28:00 GMT"), Blocked(f"{PROTECTED} {NEEDS}")),
        (raw(429, b"too many"), Blocked("too many")),
        (refuse(404, "NotFound"), Refusal.NOT_FOUND),
        (refuse(409, "Conflict"), Refusal.CONFLICT),
        (refuse(500), Refusal.OTHER),
    ],
)
async def test_evictions_heed_budgets(
    apiserver: tuple[Apiserver, KubeClient], handler: Handler, expected: Blocked | Refusal | None
) -> None:
    server, client = apiserver
    server.script = {"POST /api/v1/namespaces/demo/pods/p/eviction": [handler]}
    actuator = KubeActuator(client, EventRecorder(client))
    if isinstance(expected, Refusal):
        with pytest.raises(ActuatorError) as error:
            await actuator.evict(KEY, "uid-p")
        assert error.value.refusal is expected
    else:
        assert await actuator.evict(KEY, "uid-p") == expected
    ((_, _, _, body),) = server.requests
    assert json.loads(body) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "demo"},
        "deleteOptions": {"preconditions": {"uid": "uid-p"}},
    }


# L-40
async def test_an_observer_evicts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    reader = FakeActuator()
    assert await ObserveActuator(reader).evict(KEY, "uid-p") is None
    assert reader.calls == []
    assert "would evict pods demo/p, uid uid-p" in caplog.text


LIVE = {"metadata": {"name": "p", "uid": "p-uid"}}
DELETING = {"metadata": {"name": "p", "uid": "p-uid", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
EVICTED = [("SuccessfulDelete", "Evicted pod: p")]


# L-24, D-81: as deletes, but for the words of the Events.
@pytest.mark.parametrize(
    ("failure", "live", "result", "events"),
    [
        (None, LIVE, "SUCCEEDED", EVICTED),
        (refused(404), LIVE, "NOT_FOUND", []),
        (refused(409), {"metadata": {"name": "p", "uid": "another"}}, "NOT_FOUND", []),
        (refused(409), LIVE, "FAILED", [("FailedDelete", "Error evicting: refused")]),
        (refused(0), DELETING, "SUCCEEDED", EVICTED),
        (refused(500), LIVE, "FAILED", [("FailedDelete", "Error evicting: refused")]),
        (refused(403), DELETING, "FAILED", [("FailedDelete", "Error evicting: refused")]),
    ],
)
async def test_what_an_eviction_comes_to(failure: Any, live: Any, result: str, events: list[tuple[str, str]]) -> None:
    actuator = FakeActuator()
    actuator.script("evict", "p", failure)
    actuator.script("read", "p", live)
    applied = await one(actuator, evict("p"), DELETES)
    assert (results(applied), applied.failed, applied.blocked) == ([result], result == "FAILED", {})
    assert [(event.reason, event.message) for event in actuator.events] == events
    assert actuator.bodies[0] == ("evict", "p", "p-uid")
    assert applied.outcomes[0].deleted_pod_uid == "p-uid"


# L-24: a pod that a budget protects stays. That is no failure, and later batches still run.
async def test_a_blocked_eviction_is_no_failure() -> None:
    actuator, blocked = FakeActuator(), Blocked("budget b", 7)
    actuator.script("evict", "p", blocked)
    applied = await run(actuator, phase(DELETES, batch(evict("p")), batch(evict("q")), aborts=True))
    assert results(applied) == ["BLOCKED", "SUCCEEDED"]
    assert not applied.failed
    assert not applied.aborted
    assert (applied.outcomes[0].message, applied.outcomes[0].http_status) == ("budget b", 429)
    assert applied.blocked == {"p-uid": blocked}
    assert [event.message for event in actuator.events] == ["Evicted pod: q"]


def policy_status(version: str = "10", name: str = "p") -> v1.Action:
    group, api_version, resource = Resource.POLICIES.identity
    patch = {"metadata": {"uid": f"{name}-uid", "resourceVersion": version}, "status": {}}
    return action(
        patch_object=v1.PatchObject(
            resource=v1.GroupVersionResource(group=group, version=api_version, resource=resource),
            object=v1.ObjectReference(name=name, uid=f"{name}-uid"),
            subresource="status",
            patch_type=v1.PATCH_TYPE_MERGE,
            patch=json.dumps(patch).encode(),
        ),
        success_events=[v1.EmitEvent(type="Normal", reason="StageComplete", message="Stage canary is complete")],
    )


async def recorded(actuator: FakeActuator) -> Applied:
    """Writes the status of a policy and then evicts a pod."""
    statuses = phase(POLICIES, batch(policy_status()), aborts=True)
    return await run(actuator, statuses, phase(DELETES, batch(evict("p"))))


# L-37: the Events are about the workload and about the policy. D-109: the gate waits for the write.
async def test_the_status_of_a_policy_is_written() -> None:
    actuator = FakeActuator()
    applied = await recorded(actuator)
    assert results(applied) == ["SUCCEEDED", "SUCCEEDED"]
    assert actuator.calls == [("patch", "p"), ("evict", "p")]
    about = [(event.workload.kind, event.workload.name, event.reason) for event in actuator.events]
    expected = [("DaemonSet", "foo", "StageComplete"), ("RolloutPolicy", "p", "StageComplete")]
    assert about == [*expected, ("DaemonSet", "foo", "SuccessfulDelete")]
    assert applied.writes == [OwnWrite(Resource.POLICIES, "101")]


# What a rollout does to pods is recorded before it is done.
async def test_nothing_is_evicted_if_the_status_is_not_written() -> None:
    actuator = FakeActuator()
    actuator.script("patch", "p", refused(409, "Conflict"))
    applied = await recorded(actuator)
    assert results(applied) == ["FAILED", "SKIPPED"]
    assert applied.aborted
    assert (actuator.events, len(actuator.calls)) == ([], 1)


# A plan does not wait for the end of a measurement. L-40: an observer asks nobody.
@pytest.mark.parametrize("writes", [True, False])
async def test_measurements_are_started(writes: bool) -> None:
    started: list[v1.Measure] = []
    measure = v1.Measure(id=v1.MeasurementId(check="c"))
    measuring = plan(phase(v1.PHASE_KIND_ANALYSIS, batch(action(measure=measure))))
    applied = await apply(FakeActuator(writes=writes), measuring, SERVED, start=started.append)
    assert results(applied) == ["SUCCEEDED"]
    assert started == ([measure] if writes else [])


async def test_events_about_a_policy(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    server.script["POST /api/v1/namespaces/ns/events"] = [answer({})]
    policy = v1.WorkloadReference(kind="RolloutPolicy", namespace="ns", name="p", uid="p-uid")
    async with EventRecorder(client) as recorder:
        recorder.record(WorkloadEvent(policy, "Normal", "StageComplete", "Stage canary is complete"))
        await eventually(lambda: len(server.requests) == 1, "the event")
    event = json.loads(server.requests[0][3])
    about = event["involvedObject"]
    assert (about["apiVersion"], about["kind"]) == ("nodewise.dev/v1alpha1", "RolloutPolicy")
    assert event["source"] == {"component": "daemonset-controller"}


def entries(evictions: BlockedEvictions) -> list[tuple[str, int, int]]:
    """The uid, the attempts and the retry time of each entry."""
    return [(entry.pod_uid, entry.attempts, entry.retry_time.seconds) for entry in evictions.wire()]


def record(evictions: BlockedEvictions, uid: str, after: float | None = None, at: int = 0, sent: Any = ()) -> None:
    evictions.record(uid, Blocked("budget b", after), sent, Timestamp(seconds=at))


# L-24: after Retry-After, with back-off.
def test_the_wait_doubles_up_to_five_minutes() -> None:
    evictions = BlockedEvictions()
    waits = [(None, 10), (5, 20), (90, 90), (None, 80), (None, 160), (None, 300), (600, 600), (None, 300)]
    for attempts, (retry_after, expected) in enumerate(waits, 1):
        record(evictions, "u1", retry_after)
        assert entries(evictions) == [("u1", attempts, expected)]


# A plan may leave out the entry of a pod that it evicts again.
def test_an_entry_that_was_sent_counts_as_before() -> None:
    evictions = BlockedEvictions()
    record(evictions, "u1")
    sent = evictions.wire()
    evictions.drop_unneeded(sent, [])
    assert not evictions
    record(evictions, "u1", at=100, sent=sent)
    assert entries(evictions) == [("u1", 2, 120)]


def test_entries_vanish_when_a_plan_leaves_them_out() -> None:
    evictions = BlockedEvictions()
    for uid in ("u2", "u1"):
        record(evictions, uid)
    sent = evictions.wire()
    record(evictions, "u3")
    evictions.drop_unneeded(sent, sent[1:])
    assert [uid for uid, *_ in entries(evictions)] == ["u2", "u3"]
    evictions.remove("u2")
    assert [uid for uid, *_ in entries(evictions)] == ["u3"]


def test_the_number_of_entries_is_limited() -> None:
    evictions = BlockedEvictions()
    for number in range(MOST + 1):
        record(evictions, str(number))
    assert len(evictions.wire()) == MOST


def test_no_wait_ends_after_the_last_valid_time() -> None:
    last = Timestamp(seconds=times.LAST_SECOND)
    assert times.later(last, 10) == last
    assert times.later(Timestamp(nanos=600_000_000), 0.5) == Timestamp(seconds=1, nanos=100_000_000)
