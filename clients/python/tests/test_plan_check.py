"""Tests which plans are refused: every executor refuses the same ones, with the same messages."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from google.protobuf import json_format

from nodewise import plan_check, v1
from nodewise.kinds import DAEMON_SET, KINDS, REPLICA_SET, Resource
from nodewise.objects import Node, Pod, Revision, Workload
from nodewise.options import DEFAULT_BURST, burst, is_enabled
from nodewise.plan_check import policy_spec
from nodewise.plan_check.values import MAX_WRITTEN, WrongError, parse_written
from nodewise.policies import RolloutPolicy
from nodewise.store import Applied, Deleted, Store, Watched

from .conftest import ROOT, cases, vectors
from .objects import node

FIRST, FIRST_WITH_POLICIES = vectors("plan_checks")[0], vectors("plan_checks_policies")[0]


def checked(case: dict[str, Any], first: dict[str, Any] = FIRST) -> tuple[str | None, list[int]]:
    """The reason why the plan of a vector is refused, or the ids of the actions that are left out. `first` is the first
    vector of the file.
    """
    store, workload = Store(4), Workload.read(DAEMON_SET, json.dumps(case.get("workload", first["workload"])).encode())
    store.apply(Applied(workload), lambda _: None)
    for name in case.get("nodes", first["nodes"]):
        store.apply(Applied(node(name)), lambda _: None)
    for pod in case.get("pods", []):
        store.apply(Applied(Pod.read(pod)), lambda _: None)
    for revision in case.get("revisions", first["revisions"]):
        store.apply(Applied(Revision.read(json.dumps(revision).encode())), lambda _: None)
    as_of = store.last_change
    change(store, workload.key.namespace, case, first)
    asked = plan_check.Asked(
        workload,
        v1.Scope.Value(case["scope"]) if "scope" in case else v1.SCOPE_UNSPECIFIED,
        [Revision.read(json.dumps(revision).encode()) for revision in case.get("read_live", [])],
        as_of,
        json_format.ParseDict(case.get("sent", {}), v1.ReconcileState()),
        case.get("delete_with_uid", True),
        case.get("burst", DEFAULT_BURST),
        case.get("decides_after_cut", True),
        policies=[
            RolloutPolicy.read(json.dumps(policy).encode())
            for policy in case.get("policies", first.get("policies", []))
        ],
    )
    try:
        checked = plan_check.check(json_format.ParseDict(case["plan"], v1.Plan()), asked, store)
        for named in checked.unseen:
            kind = "Pod" if named.resource is Resource.PODS else "ControllerRevision"
            for served in case.get("live", []):
                if (served["kind"], served["metadata"]["name"]) == (kind, named.reference.name):
                    checked.check_live(named, json.dumps(served).encode())
    except plan_check.ViolationError as violation:
        return str(violation), []
    return None, sorted(checked.left_out())


def change(store: Store, namespace: str, case: dict[str, Any], first: dict[str, Any]) -> None:
    """The changes since the snapshot."""
    for found in case.get("pods", []):
        if found["metadata"]["name"] in case.get("changed", {}).get("pods", []):
            store.apply(Applied(Pod.read(newer(found))), lambda _: None)
    for found in case.get("revisions", first["revisions"]):
        if found["metadata"]["name"] in case.get("changed", {}).get("revisions", []):
            store.apply(Applied(Revision.read(json.dumps(newer(found)).encode())), lambda _: None)
    gone = {"metadata": {"namespace": namespace, "name": "gone", "uid": "gone", "resourceVersion": "1"}}
    of: dict[str, Callable[[Any], Watched]] = {"pods": Pod.read, "revisions": Revision.read, "nodes": Node.read}
    for resource in case.get("removed", []):
        store.apply(Applied(of[resource](gone)), lambda _: None)
        store.apply(Deleted(of[resource](gone)), lambda _: None)


def newer(served: dict[str, Any]) -> dict[str, Any]:
    return {**served, "metadata": {**served["metadata"], "resourceVersion": "newer"}}


@cases("plan_checks")
def test_vectors(case: dict[str, Any]) -> None:
    assert checked(case) == (case.get("refused"), case.get("left_out", []))


UNREADABLE = "cannot be read: "


# Why a spec cannot be read is told in the words of the parser, which differ.
@cases("plan_checks_policies")
def test_vectors_of_policies(case: dict[str, Any]) -> None:
    refused, left_out = checked(case, FIRST_WITH_POLICIES)
    expected = case.get("refused")
    if expected is not None and UNREADABLE in expected:
        expected, told = expected.partition(UNREADABLE)[0], (refused or "").partition(UNREADABLE)
        refused = told[0]
        assert told[2]
    assert (refused, left_out) == (expected, case.get("left_out", []))


# Such a plan is too long for a vector.
def test_a_plan_asks_for_a_limited_number_of_measurements() -> None:
    case = copy.deepcopy(next(one for one in vectors("plan_checks_policies") if "by Prometheus" in one["name"]))
    actions = case["plan"]["phases"][0]["batches"][0]["actions"]
    actions[:] = actions[:1] * 101
    refused, _ = checked(case, FIRST_WITH_POLICIES)
    assert refused is not None
    assert refused.endswith("it asks for 101 measurements, and 100 are the most")


# A policy may be large.
def test_each_policy_is_parsed_once_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    case = copy.deepcopy(next(one for one in vectors("plan_checks_policies") if "by Prometheus" in one["name"]))
    actions = case["plan"]["phases"][0]["batches"][0]["actions"]
    first = actions[0]
    actions[:] = [copy.deepcopy(first) for _ in range(100)]
    for number, one in enumerate(actions):
        one["id"], one["measure"]["id"]["number"] = 1 + number, 1 + number
    parsed: list[bytes] = []
    read = policy_spec.read

    def counted(text: bytes) -> policy_spec.RolloutPolicySpec:
        parsed.append(text)
        return read(text)

    monkeypatch.setattr(policy_spec, "read", counted)
    refused, _ = checked(case, FIRST_WITH_POLICIES)
    assert (refused, len(parsed)) == (None, 1)


# A policy that this executor cannot read names nobody whom it may ask.
@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({}, True),
        ({"newer": {"a": 1}}, True),
        ({"partition": "10%", "failureThreshold": 3, "pace": {"nodes": 2, "interval": "1h30m"}}, True),
        ({"windows": [{"days": ["Mon"], "startTime": "09:00", "endTime": "23:59", "timeZone": "UTC"}]}, True),
        ({"targets": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}, "paused": None}, True),
        ({"partition": "101%"}, False),
        ({"partition": "010%"}, False),
        ({"partition": 1.5}, False),
        ({"partition": -1}, False),
        ({"pace": {"nodes": 2, "interval": ""}}, False),
        ({"pace": {"nodes": 2, "interval": "1m1h"}}, False),
        ({"windows": [{"startTime": "24:00"}]}, False),
        ({"windows": [{"startTime": "09:00\n"}]}, False),
        ({"windows": None}, False),
        ({"onFailure": "Explode"}, False),
        ({"stages": [{"replicas": 1}]}, False),
        ({"targets": None}, False),
    ],
)
def test_the_specs_that_can_be_read(change: dict[str, Any], is_right: bool) -> None:
    policy = copy.deepcopy(FIRST_WITH_POLICIES["policies"][0])
    policy["spec"].update(change)
    if is_right:
        policy_spec.read(json.dumps(policy).encode())
    else:
        with pytest.raises(msgspec.MsgspecError):
            policy_spec.read(json.dumps(policy).encode())


def test_what_is_written_is_no_longer_than_an_apiserver_takes() -> None:
    def text(length: int) -> bytes:
        return b'"' + b"x" * (length - 2) + b'"'

    parse_written(text(MAX_WRITTEN), "its patch")
    with pytest.raises(WrongError, match="its patch has 3145729 bytes, and 3145728 are the most"):
        parse_written(text(MAX_WRITTEN + 1), "its patch")


def answered() -> list[str]:
    """The service's vectors whose result is a plan."""
    folder = ROOT / "proto/testdata/plans"
    return [path.name for path in sorted(folder.glob("*.json")) if "response" in json.loads(path.read_text())]


# Plans of the service are not refused.
@pytest.mark.parametrize("name", answered())
def test_plans_of_the_service(name: str) -> None:
    case = json.loads((ROOT / "proto/testdata/plans" / name).read_text())
    request = json_format.ParseDict(case["request"], v1.PlanRequest())
    plan = json_format.ParseDict(case["response"], v1.PlanResponse()).plan
    workload = workload_of(request.snapshot.workload)
    store = Store(4, [workload.kind])
    for found in objects_of(workload, request.snapshot):
        store.apply(Applied(found), lambda _: None)
    asked = plan_check.Asked(
        workload,
        as_of=store.last_change,
        sent=request.snapshot.state,
        deletes_with_uid=is_enabled(request.options, v1.DEVIATION_DELETE_WITH_UID),
        burst=burst(request.options, workload.kind),
        decides_after_cut=is_enabled(request.options, v1.DEVIATION_DECIDE_AFTER_CUT),
    )
    checked = plan_check.check(plan, asked, store)
    assert (checked.unseen, checked.left_out()) == ([], {})


def workload_of(sent: v1.Workload) -> Workload:
    name = sent.WhichOneof("kind")
    assert name is not None
    kind = next(kind for kind in KINDS.values() if kind.name.lower() == name.replace("_", ""))
    return Workload.read(kind, getattr(sent, name).object)


def objects_of(workload: Workload, snapshot: v1.Snapshot) -> Iterator[Watched]:
    """The objects that the caches of an executor hold when it sends the snapshot."""
    yield workload
    for replica_set in snapshot.workload.deployment.replica_sets:
        yield Workload.read(REPLICA_SET, replica_set.object)
    for bucket in snapshot.node_buckets:
        for projection in v1.NodeBucket.FromString(bucket.data).nodes:
            yield Node("1", projection)
    for bucket in snapshot.pod_buckets:
        pods = v1.PodBucket.FromString(bucket.data)
        for pod in pods.pods:
            if pod.shared_metadata:
                shared = pods.shared_metadata[pod.shared_metadata - 1]
                pod.labels.extend(shared.labels)
                if shared.HasField("controller"):
                    pod.controller.CopyFrom(shared.controller)
            yield Pod(workload.key.namespace, "1", pod)
    for revision in snapshot.revisions:
        yield Revision.read(revision.object)
