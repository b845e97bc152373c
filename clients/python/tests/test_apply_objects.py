"""Tests the actions on objects of any resource, and the phases that depend on failures."""

import json
from typing import Any

import pytest

from nodewise import v1
from nodewise.actuator import ActuatorError, PatchType
from nodewise.apply import Applied, apply
from nodewise.kinds import DEPLOYMENT, ObjectKey, Resource

from .fakes import FakeActuator, action, batch, refused
from .objects import deployment

SETS = v1.GroupVersionResource(group="apps", version="v1", resource="replicasets")
DEPLOYMENTS = v1.GroupVersionResource(group="apps", version="v1", resource="deployments")
OBJECT = v1.ObjectReference(name="web-1", uid="s1")
SIZE = json.dumps({"metadata": {"uid": "s1"}, "spec": {"replicas": 3}}).encode()
EVENT = v1.EmitEvent(type="Normal", reason="ScalingReplicaSet", message="Scaled up")
FAILURE = v1.EmitEvent(type="Warning", reason="ReplicaSetCreateError", message="Failed")


def new_set(**fields: Any) -> v1.Action:
    manifest = json.dumps({"metadata": {"name": "web-1"}}).encode()
    return action(create_object=v1.CreateObject(resource=SETS, name="web-1", manifest=manifest), **fields)


def size(**fields: Any) -> v1.Action:
    of = {"resource": SETS, "object": OBJECT, "patch": SIZE, "patch_type": v1.PATCH_TYPE_MERGE}
    return action(patch_object=v1.PatchObject(**{**of, **fields}))


def status(message: str = "The plan failed: ") -> v1.Action:
    own = v1.ObjectReference(name="web", uid="d1")
    patch = {"metadata": {"uid": "d1"}, "status": {"conditions": [{"message": message}]}}
    return action(
        patch_object=v1.PatchObject(
            resource=DEPLOYMENTS,
            object=own,
            subresource="status",
            patch=json.dumps(patch).encode(),
            patch_type=v1.PATCH_TYPE_MERGE,
            failure_pointer="/status/conditions/0/message",
        )
    )


def remove(version: str = "") -> v1.Action:
    return action(delete_object=v1.DeleteObject(resource=SETS, object=OBJECT, resource_version=version))


def phase(*actions: v1.Action, **fields: Any) -> v1.Phase:
    return v1.Phase(kind=v1.PHASE_KIND_REPLICA_SETS, batches=[batch(one) for one in actions], **fields)


async def run(actuator: FakeActuator, *phases: v1.Phase) -> Applied:
    of = deployment()
    return await apply(actuator, v1.Plan(workload=of.reference, phases=phases), of.object, kind=DEPLOYMENT)


def results(applied: Applied) -> list[str]:
    return [v1.Result.Name(outcome.result).removeprefix("RESULT_") for outcome in applied.outcomes]


async def test_what_is_written_is_waited_for() -> None:
    actuator = FakeActuator()
    applied = await run(actuator, phase(new_set(success_events=[EVENT]), size(), status(), remove(), remove("7")))
    assert results(applied) == ["SUCCEEDED"] * 5
    assert actuator.calls == [
        ("create", "web-1"),
        ("patch", "web-1"),
        ("patch", "web"),
        ("delete", "web-1"),
        ("delete", "web-1"),
    ]
    assert [body for verb, _, body in actuator.bodies if verb == "delete"] == ["s1", ("s1", "7")]
    assert actuator.bodies[1][2] == (PatchType.MERGE, SIZE)
    sets, deployments = Resource.REPLICA_SETS, Resource.DEPLOYMENTS
    assert [(write.resource, write.created_pod) for write in applied.writes] == [
        (sets, ""),
        (sets, ""),
        (deployments, ""),
    ]
    assert [(event.reason, event.message) for event in actuator.events] == [("ScalingReplicaSet", "Scaled up")]


# P-27: the next plan needs the object that has the name. It is no failure, and no Event tells of it.
async def test_a_taken_name_ends_the_plan() -> None:
    actuator = FakeActuator()
    actuator.script("create", "web-1", refused(409, "AlreadyExists"))
    actuator.script("read", "web-1", {"metadata": {"name": "web-1"}})
    creates = new_set(success_events=[EVENT], failure_event=FAILURE)
    applied = await run(actuator, phase(creates, size()), phase(size(), requires_failure=True))
    assert results(applied) == ["NAME_TAKEN", "SKIPPED", "SKIPPED"]
    assert applied.colliding == [(Resource.REPLICA_SETS, b'{"metadata": {"name": "web-1"}}')]
    assert applied.taken_names == [], "of pods"
    assert (applied.failed, applied.aborted, actuator.events) == (False, True, [])
    actuator.script("create", "web-1", refused(409, "AlreadyExists"))
    applied = await run(actuator, phase(creates, size()))
    assert results(applied) == ["FAILED", "SKIPPED"], "what has the name cannot be read"
    assert (applied.colliding, applied.failed, actuator.events) == ([], True, [])


# P-28.
async def test_a_terminating_namespace_ends_the_plan() -> None:
    actuator = FakeActuator()
    actuator.script("create", "web-1", refused(403, "Forbidden", causes=("NamespaceTerminating",)))
    applied = await run(actuator, phase(new_set(failure_event=FAILURE), size()))
    assert results(applied) == ["NAMESPACE_TERMINATING", "SKIPPED"]
    assert (applied.failed, applied.aborted, actuator.events) == (False, True, [])


async def test_a_failure_is_told_in_an_event_and_in_the_status() -> None:
    actuator = FakeActuator()
    actuator.script("create", "web-1", refused(403, "Forbidden", "exceeded quota"))
    tells = phase(status(), requires_failure=True)
    applied = await run(actuator, phase(new_set(failure_event=FAILURE)), tells)
    assert results(applied) == ["FAILED", "SUCCEEDED"]
    assert [event.message for event in actuator.events] == ["Failed: exceeded quota"]
    patched = json.loads(actuator.bodies[-1][2][1])
    assert patched["status"]["conditions"][0]["message"] == "The plan failed: exceeded quota"
    assert not [outcome for outcome in applied.outcomes if outcome.ignored]


async def test_a_phase_that_requires_a_failure_is_skipped_without_one() -> None:
    applied = await run(FakeActuator(), phase(size()), phase(status(), requires_failure=True), phase(status()))
    assert results(applied) == ["SUCCEEDED", "SKIPPED", "SUCCEEDED"]
    assert [outcome.ignored for outcome in applied.outcomes] == [False, True, False]


# Upstream drops the error of a scale-down of an old ReplicaSet.
async def test_an_ignored_failure_does_not_count() -> None:
    actuator = FakeActuator()
    actuator.script("patch", "web-1", refused(409))
    applied = await run(
        actuator,
        phase(size(), size(), ignores_failure=True, aborts_on_failure=True),
        phase(status(), requires_success=True),
        phase(status(), requires_failure=True),
    )
    assert results(applied) == ["FAILED", "SKIPPED", "SUCCEEDED", "SKIPPED"]
    assert [outcome.ignored for outcome in applied.outcomes] == [True, False, False, True]
    assert (applied.failed, applied.aborted, applied.first_failure) == (False, False, None)


@pytest.mark.parametrize(
    ("claim", "error", "expected"),
    [
        (v1.CLAIM_UNSPECIFIED, refused(404), "FAILED"),
        (v1.CLAIM_UNSPECIFIED, refused(409), "FAILED"),
        (v1.CLAIM_ADOPT, refused(404), "NOT_FOUND"),
        (v1.CLAIM_ADOPT, refused(422), "FAILED"),
        (v1.CLAIM_RELEASE, refused(404), "NOT_FOUND"),
        (v1.CLAIM_RELEASE, refused(422), "NOT_FOUND"),
    ],
)
async def test_refused_claims(claim: v1.Claim.ValueType, error: ActuatorError, expected: str) -> None:
    actuator = FakeActuator()
    actuator.script("patch", "web-1", error)
    applied = await run(actuator, phase(size(claim=claim, patch_type=v1.PATCH_TYPE_STRATEGIC_MERGE)))
    assert results(applied) == [expected]
    assert bool(applied.vanished) is (claim == v1.CLAIM_ADOPT and expected == "NOT_FOUND")


async def test_a_set_that_is_too_large_to_be_adopted_is_left_out() -> None:
    for claim, left_out in ((v1.CLAIM_ADOPT, True), (v1.CLAIM_RELEASE, False)):
        actuator = FakeActuator()
        actuator.script("patch", "web-1", refused(413, "", "it is too large"))
        applied = await run(actuator, phase(size(claim=claim, patch_type=v1.PATCH_TYPE_STRATEGIC_MERGE)))
        assert applied.sealed == ([ObjectKey(Resource.REPLICA_SETS, "ns", "web-1")] if left_out else [])
        assert results(applied) == ["NOT_FOUND" if left_out else "FAILED"]
        assert [event.reason for event in actuator.events] == (["ObjectTooLarge"] if left_out else [])


async def test_adoptions_are_confirmed() -> None:
    actuator = FakeActuator()
    actuator.script("read", "web", {"metadata": {"uid": "d1", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    claims = batch(size(claim=v1.CLAIM_ADOPT), size(), confirm=True)
    applied = await run(actuator, v1.Phase(kind=v1.PHASE_KIND_CLAIMS, batches=[claims]))
    assert results(applied) == ["FAILED", "SUCCEEDED"]
    assert "is being deleted" in applied.outcomes[0].message


@pytest.mark.parametrize(
    "live",
    [
        {"metadata": {"uid": "d2"}},
        {"metadata": {"uid": "d1", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        refused(404),
    ],
)
async def test_creates_are_confirmed(live: Any) -> None:
    actuator = FakeActuator()
    actuator.script("read", "web", live)
    creates = batch(new_set(), confirm=True)
    applied = await run(actuator, v1.Phase(kind=v1.PHASE_KIND_CREATES, batches=[creates]), phase(size()))
    assert results(applied) == ["FAILED", "SKIPPED"], "it ends the plan"
    assert actuator.calls == [("read", "web")]
    assert not actuator.events


async def test_a_replica_set_that_is_gone_is_deleted() -> None:
    actuator = FakeActuator()
    actuator.script("delete", "web-1", refused(404), refused(409))
    actuator.script("read", "web-1", {"metadata": {"name": "web-1", "uid": "s1", "resourceVersion": "8"}})
    applied = await run(actuator, phase(remove()))
    assert results(applied) == ["NOT_FOUND"]
    applied = await run(actuator, phase(remove("7")))
    assert results(applied) == ["FAILED"], "it has changed"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (size(resource=v1.GroupVersionResource(version="v1", resource="pods")), "does not write the resource 'pods'"),
        (size(subresource="scale"), "the subresource 'scale'"),
        (size(patch_type=v1.PATCH_TYPE_UNSPECIFIED), "the patch_type 0"),
        (size(failure_pointer="/spec/replicas"), "no string at failure_pointer '/spec/replicas'"),
        (size(failure_pointer="/spec", patch=b"{"), "cannot be read"),
    ],
)
async def test_what_is_not_known_fails(what: v1.Action, message: str) -> None:
    actuator = FakeActuator()
    applied = await run(actuator, phase(what))
    assert results(applied) == ["FAILED"]
    assert message in applied.outcomes[0].message
    assert actuator.calls == []
