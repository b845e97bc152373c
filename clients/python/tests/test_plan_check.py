"""Which plans are refused: every executor refuses the same ones, with the same words."""

import json
from typing import Any

from google.protobuf import json_format

from nodewise import plan_check, v1
from nodewise.kinds import Resource
from nodewise.objects import DaemonSet, Pod, Revision
from nodewise.store import Applied, Store

from .conftest import ROOT, cases

FIRST = json.loads((ROOT / "proto/testdata/plan_checks.json").read_text())[0]


def refused(case: dict[str, Any]) -> str | None:
    """Why the plan of a vector is refused."""
    store = Store(4)
    for pod in case.get("pods", []):
        store.apply(Applied(Pod.read(pod)), lambda _: None)
    for revision in case.get("revisions", []):
        store.apply(Applied(Revision.read(json.dumps(revision).encode())), lambda _: None)
    asked = plan_check.Asked(
        DaemonSet.read(json.dumps(case.get("workload", FIRST["workload"])).encode()),
        v1.Scope.Value(case["scope"]) if "scope" in case else v1.SCOPE_UNSPECIFIED,
        [Revision.read(json.dumps(revision).encode()) for revision in case.get("read_live", [])],
    )
    try:
        for named in plan_check.check(json_format.ParseDict(case["plan"], v1.Plan()), asked, store):
            kind = "Pod" if named.resource is Resource.PODS else "ControllerRevision"
            for served in case.get("live", []):
                if (served["kind"], served["metadata"]["name"]) == (kind, named.reference.name):
                    named.check_live(asked, json.dumps(served).encode())
    except plan_check.ViolationError as violation:
        return str(violation)
    return None


@cases("plan_checks")
def test_vectors(case: dict[str, Any]) -> None:
    assert refused(case) == case.get("refused")
