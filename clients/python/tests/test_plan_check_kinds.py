"""Tests which plans for ReplicaSets and Deployments are refused, with the vectors of every executor."""

import json
from typing import Any

import pytest
from google.protobuf import json_format

from nodewise import plan_check, v1
from nodewise.kinds import KINDS, OBJECT_KINDS, REPLICA_SET
from nodewise.objects import Pod, Workload
from nodewise.store import Applied, Deleted, Store, Watched

from .conftest import cases, vectors
from .test_plan_check import newer

FIRST = {
    kind: next(case for case in vectors("plan_checks_kinds") if case["kind"] == kind)
    for kind in KINDS
    if kind != "DaemonSet"
}
"""The first vector of each kind has the members that the other ones leave out."""


def read(member: str, served: dict[str, Any]) -> Watched:
    return Pod.read(served) if member == "pods" else Workload.read(REPLICA_SET, json.dumps(served).encode())


def checked(case: dict[str, Any]) -> tuple[str | None, list[int]]:
    """The reason why the plan of a vector is refused, or the ids of the actions that are left out."""
    kind, first = KINDS[case["kind"]], FIRST[case["kind"]]
    workload = Workload.read(kind, json.dumps(case.get("workload", first["workload"])).encode())
    store = Store(4, [kind])
    members = {member: case.get(member, first.get(member, [])) for member in ("pods", "replica_sets")}
    if workload.kind is REPLICA_SET:
        members["replica_sets"] = [json.loads(workload.object)]

    def show(event: Applied | Deleted) -> None:
        store.apply(event, lambda _: None)

    for member, objects in members.items():
        for served in objects:
            show(Applied(read(member, served)))
    if workload.kind is not REPLICA_SET:
        show(Applied(workload))
    as_of = store.last_change
    for member, objects in members.items():
        for served in objects:
            if served["metadata"]["name"] in case.get("changed", {}).get(member, []):
                show(Applied(read(member, newer(served))))
    for member in case.get("removed", []):
        gone = read(member, {"metadata": {"namespace": "ns", "name": "gone", "uid": "gone", "resourceVersion": "1"}})
        show(Applied(gone))
        show(Deleted(gone))
    asked = plan_check.Asked(
        workload, as_of=as_of, burst=case.get("burst", kind.burst), unseen_creates=case.get("unseen_creates", ())
    )
    try:
        found = plan_check.check(json_format.ParseDict(case["plan"], v1.Plan()), asked, store)
        for named in found.unseen:
            for served in case.get("live", []):
                if (served["kind"], served["metadata"]["name"]) == (
                    OBJECT_KINDS[named.resource],
                    named.reference.name,
                ):
                    found.check_live(named, json.dumps(served).encode())
    except plan_check.ViolationError as violation:
        return str(violation), []
    return None, sorted(found.left_out())


@cases("plan_checks_kinds")
def test_vectors(case: dict[str, Any]) -> None:
    assert checked(case) == (case.get("refused"), case.get("left_out", []))


def test_an_unknown_claim_is_refused() -> None:
    case = next(case for case in vectors("plan_checks_kinds") if case["name"] == "a release of a ReplicaSet")
    text = json.dumps(case["plan"])
    assert text.count('"CLAIM_RELEASE"') == 1
    refused, _ = checked({**case, "plan": json.loads(text.replace('"CLAIM_RELEASE"', "99"))})
    assert refused is not None
    assert refused.endswith("its claim 99 is unknown")


# Policies are for DaemonSets.
@pytest.mark.parametrize("kind", sorted(FIRST))
def test_plans_for_other_kinds_have_nothing_about_policies(kind: str) -> None:
    of_policies = {
        case["name"]: case["plan"]["phases"] for case in vectors("plan_checks_policies") if "phases" in case["plan"]
    }
    empty = [{"kind": "PHASE_KIND_ANALYSIS", "batches": []}]
    for phases, expected in (
        (of_policies["an eviction of the workload's pod"], "has no such action"),
        (of_policies["the status of a policy"], 'it writes "rolloutpolicies" of nodewise.dev/v1alpha1'),
        (of_policies["a measurement by Prometheus"], "has no such action"),
        (empty, "has no phase ANALYSIS"),
    ):
        plan = {**FIRST[kind]["plan"], "verdict": "VERDICT_APPLY", "phases": phases}
        refused, _ = checked({**FIRST[kind], "plan": plan})
        assert refused is not None
        assert expected in refused
