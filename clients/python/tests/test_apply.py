"""Tests the meaning of each refused write, and the order of phases and batches."""

import asyncio
import json
from typing import Any

import pytest

from nodewise import v1
from nodewise.actuator import ActuatorError, WorkloadEvent, Written
from nodewise.apply import Applied, OwnWrite, apply
from nodewise.kinds import ObjectKey, Resource

from .fakes import FakeActuator, action, adopt, batch, create, delete, phase, plan, refused
from .objects import DEEP, compact, deep

SERVED = json.dumps(
    {"metadata": {"name": "foo", "uid": "u1"}, "spec": {"later": 1}, "status": {"numberReady": 7, "conditions": ["c"]}}
).encode()
ALIVE = {"metadata": {"name": "foo", "uid": "u1", "resourceVersion": "9"}, "status": {"collisionCount": 2}}
CLAIMS, EVENTS, CREATES, DELETES, REVISIONS, STATUS = (
    v1.PHASE_KIND_CLAIMS,
    v1.PHASE_KIND_EVENTS,
    v1.PHASE_KIND_CREATES,
    v1.PHASE_KIND_DELETES,
    v1.PHASE_KIND_REVISIONS,
    v1.PHASE_KIND_STATUS,
)


def results(applied: Applied) -> list[str]:
    return [v1.Result.Name(outcome.result).removeprefix("RESULT_") for outcome in applied.outcomes]


async def run(actuator: FakeActuator, *phases: v1.Phase, **fields: Any) -> Applied:
    return await apply(actuator, plan(*phases, **fields), SERVED)


async def one(actuator: FakeActuator, what: v1.Action, kind: v1.PhaseKind.ValueType = CREATES) -> Applied:
    return await run(actuator, phase(kind, batch(what)))


async def test_phases_and_batches_run_in_order() -> None:
    actuator = FakeActuator()
    applied = await run(
        actuator,
        phase(CREATES, batch(create("a")), batch(create("b"), create("c"))),
        phase(DELETES, batch(delete("d"))),
    )
    assert results(applied) == ["SUCCEEDED"] * 4
    assert [name for _, name in actuator.calls] == ["a", "b", "c", "d"]
    assert not applied.failed
    assert [outcome.WhichOneof("subject") for outcome in applied.outcomes] == ["created_pod"] * 3 + ["deleted_pod_uid"]
    created = [body["spec"]["affinity"] for verb, _, body in actuator.bodies if verb == "create"]
    assert [json.dumps(affinity).count('"values": ["n1"]') for affinity in created] == [1] * 3


@pytest.mark.parametrize(("limit", "most"), [({"concurrency": 5}, 5), ({}, 250)], ids=["5", "as many as a burst has"])
async def test_actions_of_a_batch_run_concurrently_within_the_limit(limit: dict[str, Any], most: int) -> None:
    class Slow(FakeActuator):
        running = most = 0
        at_limit = asyncio.Event()

        async def delete(self, key: ObjectKey, uid: str | None, resource_version: str | None = None) -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            if self.running == most:
                self.at_limit.set()
            await asyncio.wait_for(self.at_limit.wait(), 20)
            self.running -= 1

    actuator = Slow()
    deletes = [delete(str(number)) for number in range(most + 10)]
    applied = await apply(actuator, plan(phase(DELETES, batch(*deletes))), SERVED, **limit)
    assert actuator.most == most
    assert [outcome.action_id for outcome in applied.outcomes] == [delete.id for delete in deletes]


# A defect in the middle of a batch, for example of a user's wrapped actuator.
@pytest.mark.parametrize("error", [KeyError("a defect"), asyncio.CancelledError()], ids=["defect", "cancelled"])
async def test_whatever_becomes_of_one_action_the_others_end_and_all_are_told(error: BaseException) -> None:
    class Odd(FakeActuator):
        odd_failed = asyncio.Event()

        async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
            if b'"odd"' in manifest:
                self.odd_failed.set()
                raise error
            if b'"before"' not in manifest:
                await asyncio.wait_for(self.odd_failed.wait(), 20)
            return await super().create(resource, namespace, manifest)

    actuator = Odd()
    batches = [batch(create("before")), batch(create("a"), create("odd"), create("b")), batch(create("after"))]
    applied = await run(actuator, phase(CREATES, *batches))
    assert [name for _, name in actuator.calls] == ["before", "a", "b"]
    assert results(applied) == ["SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED", "SKIPPED"]
    assert type(error).__name__ in applied.outcomes[2].message
    assert applied.failed


async def test_a_defect_in_the_confirmation_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    actuator = FakeActuator()
    actuator.script("read", "foo", KeyError("a defect"))
    applied = await run(actuator, phase(CLAIMS, batch(delete("a")), batch(adopt("b"), confirm=True)))
    assert results(applied) == ["SUCCEEDED", "FAILED"]
    assert "a defect" in caplog.text


async def test_nothing_goes_on_when_it_is_cancelled() -> None:
    class Slow(FakeActuator):
        running = 0
        all_run, b_ended = asyncio.Event(), asyncio.Event()

        async def delete(self, key: ObjectKey, uid: str | None, resource_version: str | None = None) -> None:
            self.running += 1
            if self.running == 2:
                self.all_run.set()
            try:
                await asyncio.Event().wait()
            finally:
                # The first call ends after the second one.
                if key.name == "a":
                    await asyncio.wait_for(self.b_ended.wait(), 20)
                self.b_ended.set()
                self.running -= 1

    actuator = Slow()
    applying = asyncio.create_task(run(actuator, phase(DELETES, batch(delete("a"), delete("b")))))
    await actuator.all_run.wait()
    applying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await applying
    assert actuator.running == 0


# W8: whatever it was that ended the call.
async def test_after_a_defect_in_a_delete_the_pod_is_looked_at() -> None:
    actuator = FakeActuator()
    actuator.script("delete", "a", RuntimeError("a defect"))
    actuator.script(
        "read", "a", {"metadata": {"name": "a", "uid": "a-uid", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )
    assert results(await one(actuator, delete("a"), DELETES)) == ["SUCCEEDED"]


async def test_an_event_that_cannot_be_emitted_changes_no_outcome() -> None:
    class Mute(FakeActuator):
        def emit(self, event: WorkloadEvent) -> None:
            raise RuntimeError("a defect")

    event = action(emit_event=v1.EmitEvent(type="Warning", reason="R", message="m"))
    applied = await run(Mute(), phase(EVENTS, batch(event)), phase(DELETES, batch(delete("a"))))
    assert results(applied) == ["SUCCEEDED", "SUCCEEDED"]


async def test_a_batch_with_a_failure_ends_its_phase() -> None:
    actuator = FakeActuator()
    actuator.script("create", "b", refused(403))
    applied = await run(
        actuator,
        phase(CREATES, batch(create("a")), batch(create("b"), create("c")), batch(create("d"))),
        phase(DELETES, batch(delete("e"))),
        phase(v1.PHASE_KIND_CLEANUP, batch(delete("f")), requires=True),
        phase(STATUS, batch(delete("g"))),
    )
    assert results(applied) == ["SUCCEEDED", "FAILED", "SUCCEEDED", "SKIPPED", "SUCCEEDED", "SKIPPED", "SUCCEEDED"]
    assert applied.failed
    assert not applied.aborted


async def test_a_failure_may_end_the_plan() -> None:
    actuator = FakeActuator()
    actuator.script("delete", "a", refused(403))
    applied = await run(actuator, phase(CLAIMS, batch(delete("a")), aborts=True), phase(CREATES, batch(create("b"))))
    assert results(applied) == ["FAILED", "SKIPPED"]
    assert applied.aborted


async def test_events_never_count() -> None:
    actuator = FakeActuator()
    applied = await run(
        actuator,
        phase(EVENTS, batch(action()), aborts=True),
        phase(EVENTS, batch(action(emit_event=v1.EmitEvent(type="Warning", reason="R", message="m")))),
        phase(CREATES, batch(create("b")), requires=True),
    )
    assert results(applied) == ["FAILED", "SUCCEEDED", "SUCCEEDED"]
    assert not applied.failed
    assert not applied.aborted
    assert [(event.type, event.reason, event.message) for event in actuator.events[:1]] == [("Warning", "R", "m")]


# The table of docs/protocol.md, creates.
@pytest.mark.parametrize(
    ("error", "live", "expected", "event"),
    [
        (None, None, "SUCCEEDED", "SuccessfulCreate"),
        (refused(409, "AlreadyExists"), ("u1", "h1", "n1"), "ALREADY_EXISTS", None),
        (refused(409, "AlreadyExists"), ("u2", "h1", "n1"), "NAME_TAKEN", None),
        (refused(409, "AlreadyExists"), ("u1", "h2", "n1"), "NAME_TAKEN", None),
        (refused(409, "AlreadyExists"), ("u1", "h1", "n2"), "NAME_TAKEN", None),
        # The existing pod may be the workload's, but it cannot be read.
        (refused(409, "AlreadyExists"), None, "FAILED", "FailedCreate"),
        (refused(409, "AlreadyExists"), refused(500), "FAILED", "FailedCreate"),
        (refused(409, "AlreadyExists"), b"?", "FAILED", "FailedCreate"),
        (refused(409, "AlreadyExists"), {"metadata": {"name": "p"}}, "FAILED", "FailedCreate"),
        (refused(403, "Forbidden", causes=("NamespaceTerminating",)), None, "NAMESPACE_TERMINATING", None),
        (refused(403), None, "FAILED", "FailedCreate"),
        (ActuatorError("no answer"), None, "FAILED", "FailedCreate"),
    ],
)
async def test_creates(error: Any, live: Any, expected: str, event: str | None) -> None:
    actuator = FakeActuator()
    actuator.script("create", "p", error)
    if not isinstance(live, tuple):
        actuator.script("read", "p", live)
    else:
        uid, revision, node = live
        metadata = {
            "name": "p",
            "uid": "x",
            "labels": {"controller-revision-hash": revision},
            "ownerReferences": [{"kind": "DaemonSet", "name": "foo", "uid": uid, "controller": True}],
        }
        actuator.script("read", "p", {"metadata": metadata, "spec": {"nodeName": node}})
    applied = await one(actuator, create("p"))
    assert results(applied) == [expected]
    assert [said.reason for said in actuator.events] == ([event] if event else [])
    assert applied.outcomes[0].http_status == (error.http_status if error else 0)
    assert applied.writes == ([OwnWrite(Resource.PODS, "101", "p")] if error is None else [])
    assert applied.failed is (expected == "FAILED")
    assert applied.taken_names == (["p"] if expected == "NAME_TAKEN" else [])


# Anyone who may create a pod may nest its managedFields too deep to be parsed.
@pytest.mark.parametrize(("uid", "expected"), [("u1", "ALREADY_EXISTS"), ("u2", "NAME_TAKEN")])
async def test_what_has_the_name_is_read_whatever_its_managed_fields(uid: str, expected: str) -> None:
    actuator = FakeActuator()
    actuator.script("create", "p", refused(409, "AlreadyExists"))
    owner = {"kind": "DaemonSet", "name": "foo", "uid": uid, "controller": True}
    labels = {"controller-revision-hash": "h1"}
    metadata = {"name": "p", "uid": "x", "labels": labels, "ownerReferences": [owner]}
    actuator.script("read", "p", deep({"metadata": metadata, "spec": {"nodeName": "n1"}}))
    assert results(await one(actuator, create("p"))) == [expected]


# Anyone who may create a pod can name the uid of a workload.
@pytest.mark.parametrize(("kind", "name"), [("ReplicaSet", "foo"), ("DaemonSet", "other")])
async def test_a_pod_whose_controller_has_only_the_uid_is_another_one(kind: str, name: str) -> None:
    actuator = FakeActuator()
    actuator.script("create", "p", refused(409, "AlreadyExists"))
    owner = {"kind": kind, "name": name, "uid": "u1", "controller": True}
    labels = {"controller-revision-hash": "h1"}
    metadata = {"name": "p", "uid": "x", "labels": labels, "ownerReferences": [owner]}
    actuator.script("read", "p", {"metadata": metadata, "spec": {"nodeName": "n1"}})
    assert results(await one(actuator, create("p"))) == ["NAME_TAKEN"]


async def test_a_taken_name_stops_nothing() -> None:
    actuator = FakeActuator()
    actuator.script("create", "p", refused(409, "AlreadyExists"))
    actuator.script("read", "p", {"metadata": {"name": "p", "uid": "x"}})
    applied = await run(
        actuator,
        phase(CREATES, batch(create("p"), create("q")), batch(create("", "n2")), aborts=True),
        phase(DELETES, batch(delete("d")), requires=True),
    )
    assert results(applied) == ["NAME_TAKEN", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]
    assert not applied.failed
    assert not applied.aborted
    assert applied.failures == []
    assert applied.taken_names == ["p"]
    assert [write.created_pod for write in applied.writes] == ["q", ""]
    assert "FailedCreate" not in [event.reason for event in actuator.events]


async def test_a_generated_name_that_is_taken_is_a_plain_failure() -> None:
    actuator = FakeActuator()
    applied = await one(actuator, create(""))
    assert "name" not in actuator.bodies[0][2]["metadata"]
    assert applied.writes == [OwnWrite(Resource.PODS, "101")]
    assert actuator.events[0].message == "Created pod: foo-xyz"
    actuator.script("create", "foo-xyz", refused(409, "AlreadyExists"))
    assert results(await one(actuator, create(""))) == ["FAILED"]


# docs/protocol.md, deletes: a delete that happened must not be reported as failed.
@pytest.mark.parametrize(
    ("error", "live", "expected"),
    [
        (None, None, "SUCCEEDED"),
        (refused(404), None, "NOT_FOUND"),
        (refused(409), {"uid": "other"}, "NOT_FOUND"),
        (refused(409), {"uid": "p-uid"}, "FAILED"),
        (refused(500), {"uid": "p-uid", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "SUCCEEDED"),
        (ActuatorError("no answer"), {"uid": "p-uid"}, "FAILED"),
        (ActuatorError("no answer"), refused(404), "NOT_FOUND"),
        (ActuatorError("no answer"), refused(500), "FAILED"),
        (refused(403), None, "FAILED"),
    ],
)
async def test_deletes(error: Any, live: Any, expected: str) -> None:
    actuator = FakeActuator()
    actuator.script("delete", "p", error)
    actuator.script("read", "p", live if isinstance(live, Exception) else {"metadata": live})
    applied = await one(actuator, delete("p"), DELETES)
    assert results(applied) == [expected]
    reasons = {"SUCCEEDED": ["SuccessfulDelete"], "FAILED": ["FailedDelete"]}
    assert [event.reason for event in actuator.events] == reasons.get(expected, [])
    assert actuator.bodies[0][2] == "p-uid"
    assert applied.writes == [], "D-113: expectations guard deletes"


# After an unclear delete the metadata is enough. The rest may be nested too deep to be parsed.
async def test_what_is_being_deleted_is_seen_whatever_else_it_has() -> None:
    metadata = {"name": "p", "uid": "p-uid", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    for served in (deep({"metadata": metadata}), compact({"metadata": metadata})[:-1] + b',"data":' + DEEP + b"}"):
        actuator = FakeActuator()
        actuator.script("delete", "p", refused(500))
        actuator.script("read", "p", served)
        assert results(await one(actuator, delete("p"), DELETES)) == ["SUCCEEDED"]


async def test_deletes_without_precondition() -> None:
    actuator = FakeActuator()
    await one(actuator, delete("p", uid_precondition=False), DELETES)
    assert actuator.bodies[0][2] is None


# D-27
@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (ALIVE, ["SUCCEEDED", "SUCCEEDED"]),
        ({"metadata": {"uid": "u2"}}, ["FAILED", "SUCCEEDED"]),
        ({"metadata": {"uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, ["FAILED", "SUCCEEDED"]),
        (refused(404), ["FAILED", "SUCCEEDED"]),
    ],
)
async def test_adoptions_are_confirmed(live: Any, expected: list[str]) -> None:
    actuator = FakeActuator()
    actuator.script("read", "foo", live)
    release = action(release_pod=v1.ReleasePod(pod=v1.ObjectReference(name="b"), patch=b"{}"))
    applied = await run(actuator, phase(CLAIMS, batch(adopt("a"), release, confirm=True), aborts=True))
    assert results(applied) == expected
    assert (("patch", "a") in actuator.calls) is (expected[0] == "SUCCEEDED")
    assert applied.writes == ([OwnWrite(Resource.PODS, "101")] if expected[0] == "SUCCEEDED" else [])


# D-23
async def test_an_orphan_that_is_gone_ends_the_plan_without_failure() -> None:
    actuator = FakeActuator()
    actuator.script("patch", "a", refused(404))
    applied = await run(
        actuator,
        phase(CLAIMS, batch(adopt("a"), adopt("b")), batch(adopt("c"))),
        phase(CREATES, batch(create("d"))),
    )
    assert results(applied) == ["NOT_FOUND", "SUCCEEDED", "SKIPPED", "SKIPPED"]
    assert applied.vanished == [ObjectKey(Resource.PODS, "ns", "a")]
    assert (applied.failed, applied.aborted, applied.is_outdated) == (False, True, True)


@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        ("release_pod", 404, "NOT_FOUND"),
        ("release_pod", 422, "NOT_FOUND"),
        ("release_revision", 422, "NOT_FOUND"),
        ("adopt_pod", 422, "FAILED"),
        ("relabel_pod", 404, "FAILED"),
        ("update_revision", 404, "FAILED"),
    ],
)
async def test_refused_patches(kind: str, code: int, expected: str) -> None:
    actuator = FakeActuator()
    actuator.script("patch", "x", refused(code))
    reference = {"revision" if kind.endswith("revision") else "pod": v1.ObjectReference(name="x", uid="x")}
    message = type(getattr(v1.Action(), kind))(patch=b"{}", **reference)
    applied = await one(actuator, action(**{kind: message}), REVISIONS)
    assert results(applied) == [expected]
    assert not applied.vanished


@pytest.mark.parametrize(
    ("message", "sealed"),
    [
        ('ControllerRevision "r" is invalid: data: Invalid value: field is immutable', True),
        ('ControllerRevision "r" is invalid: [data: Invalid value: x, revision: y]', True),
        ('ControllerRevision "r" is invalid: revision: Invalid value: data: x', False),
        ("data: x", False),
    ],
)
async def test_a_revision_that_cannot_be_changed_is_left_alone(message: str, sealed: bool) -> None:
    actuator = FakeActuator()
    actuator.script("patch", "r", refused(422, "Invalid", message))
    update = v1.UpdateRevision(revision=v1.ObjectReference(name="r", uid="x"), patch=b"{}")
    applied = await run(
        actuator, phase(REVISIONS, batch(action(update_revision=update))), phase(CREATES, batch(create("p")))
    )
    assert results(applied) == (["NOT_FOUND", "SKIPPED"] if sealed else ["FAILED", "SUCCEEDED"])
    assert applied.sealed == ([ObjectKey(Resource.REVISIONS, "ns", "r")] if sealed else [])
    assert [event.reason for event in actuator.events[:1]] == (["SealedRevision"] if sealed else ["SuccessfulCreate"])


# Anyone who may create pods and revisions may make them so large that they cannot be patched. There is a plan without
# patching them.
@pytest.mark.parametrize(
    ("code", "message", "too_large"),
    [
        (413, "Request entity too large: limit is 3145728", True),
        (500, "etcdserver: request is too large", True),
        (500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2 vs. 1)", True),
        (422, 'Pod "r" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes', True),
        (422, 'Pod "r" is invalid: metadata.uid: Invalid value: "u": field is immutable', False),
        (500, "etcdserver: leader changed", False),
    ],
)
async def test_what_is_too_large_to_be_changed_is_spared(code: int, message: str, too_large: bool) -> None:
    reference = v1.ObjectReference(name="r", uid="x")
    for patch, resource in [
        (action(adopt_revision=v1.AdoptRevision(revision=reference, patch=b"{}")), Resource.REVISIONS),
        (action(adopt_pod=v1.AdoptPod(pod=reference, patch=b"{}")), Resource.PODS),
        # The workload controls the pod: the pod keeps its label, and the plan continues.
        (action(relabel_pod=v1.RelabelPod(pod=reference, patch=b"{}")), None),
    ]:
        actuator = FakeActuator()
        actuator.script("patch", "r", refused(code, "Invalid" if code == 422 else "", message))
        applied = await run(actuator, phase(CLAIMS, batch(patch)), phase(CREATES, batch(create("p"))))
        left_out = resource if too_large else None
        if too_large:
            assert results(applied) == ["NOT_FOUND", "SUCCEEDED" if left_out is None else "SKIPPED"]
        else:
            assert results(applied)[0] == "FAILED"
        assert applied.sealed == ([] if left_out is None else [ObjectKey(left_out, "ns", "r")])
        told = [event for event in actuator.events if event.reason == "ObjectTooLarge"]
        assert len(told) == too_large
        assert all("/r " in event.message and message in event.message for event in told)


async def test_a_revision_whose_name_is_taken_is_read() -> None:
    actuator = FakeActuator()
    actuator.script("create", "r", refused(409, "AlreadyExists"))
    actuator.script("read", "r", b'{"metadata":{"name":"r"}}')
    manifest = json.dumps({"metadata": {"name": "r"}}).encode()
    applied = await one(actuator, action(create_revision=v1.CreateRevision(name="r", manifest=manifest)), REVISIONS)
    assert results(applied) == ["FAILED"]
    assert applied.colliding == [(Resource.REVISIONS, b'{"metadata":{"name":"r"}}')]


async def test_a_sealed_revision_that_is_to_be_released_is_not_taken_for_gone() -> None:
    actuator = FakeActuator()
    actuator.script(
        "patch",
        "r",
        refused(422, "Invalid", 'ControllerRevision "r" is invalid: data: Invalid value: field is immutable'),
    )
    release = v1.ReleaseRevision(revision=v1.ObjectReference(name="r", uid="x"), patch=b"{}")
    applied = await one(actuator, action(release_revision=release), CLAIMS)
    assert results(applied) == ["NOT_FOUND"]
    assert applied.sealed == [ObjectKey(Resource.REVISIONS, "ns", "r")]
    assert [event.reason for event in actuator.events] == ["SealedRevision"]


# D-56, D-63
async def test_a_revision_that_is_gone_already_fails_the_plan() -> None:
    actuator = FakeActuator()
    actuator.script("delete", "r", refused(404))
    reference = v1.ObjectReference(name="r", uid="x")
    applied = await one(actuator, action(delete_revision=v1.DeleteRevision(revision=reference)), REVISIONS)
    assert results(applied) == ["FAILED"]
    assert actuator.bodies[0][2] == "x"


def update(**fields: Any) -> v1.Action:
    return action(update_status=v1.UpdateStatus(**fields))


# D-91
async def test_a_status_replaces_what_it_names() -> None:
    actuator = FakeActuator()
    status = v1.DaemonSetStatus(number_ready=3, observed_generation=2)
    applied = await one(actuator, update(status=status), STATUS)
    written = actuator.bodies[0][2]
    assert written["status"]["numberReady"] == 3
    assert written["status"]["observedGeneration"] == 2
    assert written["status"]["conditions"] == ["c"]
    assert written["spec"] == {"later": 1}
    assert applied.writes == [OwnWrite(Resource.DAEMON_SETS, "101")]


async def test_a_status_is_tried_once_more_on_the_live_object() -> None:
    actuator = FakeActuator()
    actuator.script("status", "foo", refused(409), None)
    actuator.script("read", "foo", deep(ALIVE))
    applied = await one(actuator, update(status=v1.DaemonSetStatus(number_ready=3), uid_precondition=True), STATUS)
    assert results(applied) == ["SUCCEEDED"]
    assert actuator.calls == [("status", "foo"), ("read", "foo"), ("status", "foo")]
    assert actuator.bodies[2][2]["metadata"]["resourceVersion"] == "9"
    assert actuator.bodies[2][2]["status"]["collisionCount"] == 2


@pytest.mark.parametrize("uid_precondition", [True, False])
@pytest.mark.parametrize("fields", [{"status": v1.DaemonSetStatus()}, {"collision_count": 1}])
async def test_a_status_is_not_written_to_a_successor(fields: dict[str, Any], uid_precondition: bool) -> None:
    actuator = FakeActuator()
    actuator.script("status", "foo", refused(409), None)
    actuator.script("read", "foo", {"metadata": {"uid": "u2"}})
    applied = await one(actuator, update(**fields, uid_precondition=uid_precondition), STATUS)
    assert results(applied) == ["FAILED"]
    assert "another object" in applied.outcomes[0].message
    assert actuator.calls[-1] == ("read", "foo")


@pytest.mark.parametrize(("expected_count", "result"), [(2, "SUCCEEDED"), (1, "FAILED"), (None, "FAILED")])
async def test_a_collision_count_is_raised_once(expected_count: int | None, result: str) -> None:
    actuator = FakeActuator()
    actuator.script("read", "foo", ALIVE)
    applied = await one(actuator, update(collision_count=3, expected_collision_count=expected_count), STATUS)
    assert results(applied) == [result]
    assert applied.writes == [], "D-109"
    if result == "SUCCEEDED":
        assert actuator.bodies[-1][2]["status"]["collisionCount"] == 3


async def test_what_is_not_known_fails() -> None:
    actuator = FakeActuator()
    assert results(await one(actuator, action())) == ["FAILED"]
    other = plan(phase(STATUS, batch(update(status=v1.DaemonSetStatus()))))
    other.workload.kind = "Deployment"
    assert results(await apply(actuator, other, SERVED)) == ["FAILED"]
    wrong = plan(phase(CREATES, batch(create("p"))))
    wrong.node_name_pointers[:] = ["/spec/nowhere/0"]
    assert results(await apply(actuator, wrong, SERVED)) == ["FAILED"]
    assert actuator.calls == []
