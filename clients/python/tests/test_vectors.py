"""Runs the vectors of proto/testdata, which are equal in every language."""

import base64
import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from nodewise import convert, node_buckets, pod_buckets, v1
from nodewise.buckets import bucket_of
from nodewise.expectations import ReconcileStates
from nodewise.gate import compare
from nodewise.kinds import DAEMON_SET, Key
from nodewise.label_keys import KeySet, LabelKeys, reduce_labels
from nodewise.manifest import PodManifest
from nodewise.objects import Node, Pod, Workload
from nodewise.snapshot import is_sent
from nodewise.store import Applied, Store

from .conftest import ROOT, cases

KEY = Key("ns", "agent")


def many(case: dict[str, Any]) -> list[str]:
    """The labels and taints that the member `many` stands for."""
    return [f"many-{index:04}" for index in range(case.get("many", 0))]


def with_many(case: dict[str, Any], of: str) -> dict[str, Any]:
    """The object of a vector, with all of its labels and taints."""
    obj: dict[str, Any] = copy.deepcopy(case[of])
    for key in many(case):
        obj["metadata"]["labels"][key] = ""
        if of == "node":
            obj["spec"]["taints"].insert(0, {"key": key, "effect": "NoSchedule"})
    return obj


def reads(case: dict[str, Any]) -> list[LabelKeys]:
    """The label keys of the DaemonSets of a vector, and of one more that names all of its many labels."""
    names_many = LabelKeys(node_labels=frozenset(many(case)), pod_labels=frozenset(many(case)))
    return [*(Workload.read(DAEMON_SET, one).label_keys for one in case["daemon_sets"]), names_many]


def count_many(entries: Any) -> int:
    """Removes and counts the labels and taints that the member `many` stands for."""
    kept = [entry for entry in entries if not entry.key.startswith("many-")]
    taken = len(entries) - len(kept)
    del entries[:]
    entries.extend(kept)
    return taken


@cases("projections")
def test_projections(case: dict[str, Any]) -> None:
    of, project, kind = ("node", convert.node, v1.Node) if "node" in case else ("pod", convert.pod, v1.Pod)
    obj = with_many(case, of)
    if "error" in case:
        with pytest.raises(convert.ConversionError) as error:
            project(obj)
        assert error.value.path == case["error"]["path"]
        return
    expected = json_format.ParseDict(case["projection"], kind())
    for given in (obj, json.dumps(obj).encode()):
        projection = project(given)
        if "daemon_sets" in case:
            keys = KeySet.of_nodes(reads(case)) if "node" in case else KeySet.of_pods(reads(case))
            assert reduce_labels(projection, keys) == case.get("cut", 0)
        if "many" in case:
            taints = count_many(projection.taints) if isinstance(projection, v1.Node) else 0
            assert {"labels": count_many(projection.labels), "taints": taints} == case["many_sent"]
        assert projection == expected


@cases("buckets")
def test_buckets(case: dict[str, Any]) -> None:
    assert bucket_of(case["node_name"], case["bucket_count"]) == case["bucket"]


def known(_: bytes) -> bool:
    return False


@cases("bucket_bytes")
def test_bucket_bytes(case: dict[str, Any]) -> None:
    workload = Workload.read(DAEMON_SET, case["daemon_set"])
    store = Store(1)
    store.apply(Applied(workload), lambda _: None)
    nodes = [json_format.ParseDict(node, v1.Node()) for node in case.get("nodes", ())]
    pods = [json_format.ParseDict(pod, v1.Pod()) for pod in case.get("pods", ())]
    for version, node in enumerate(nodes):
        store.apply(Applied(Node(str(version), node)), lambda _: None)
    for version, pod in enumerate(pods):
        store.apply(Applied(Pod("ns", str(version), pod)), lambda _: None)
    if "nodes" in case:
        cached = store.node_buckets(workload, known, shares_labels=case.get("shares_labels", False))
    else:
        cached = store.pod_buckets(workload, known)
    if case["with_shared_labels"]:
        # Only caches write them.
        (bucket,) = cached
        assert not bucket.HasField("data")
        assert bucket.data_with_shared_labels == base64.b64decode(case["data"])
        assert bucket.digest.hex() == case["digest"]
        return
    # The same without caches.
    for node in nodes:
        reduce_labels(node, KeySet.of_nodes([workload.label_keys]))
    sent = [pod for pod in pods if is_sent(workload, pod)]
    for pod in sent:
        reduce_labels(pod, KeySet.of_pods([workload.label_keys]))
    made = node_buckets(nodes) if "nodes" in case else pod_buckets(sent)
    for (bucket,) in (cached, made):
        assert bucket.data == base64.b64decode(case["data"])
        assert bucket.digest.hex() == case["digest"]
        assert bucket.digest == hashlib.sha256(bucket.data).digest()


PLANS = sorted((ROOT / "proto" / "testdata" / "plans").glob("*.json"))
REPORTS = sorted((ROOT / "proto" / "testdata" / "reports").glob("*.json"))


MESSAGES: dict[str, dict[str, Any]] = {
    "plans": {"request": v1.PlanRequest, "response": v1.PlanResponse},
    "reports": {"request": v1.ReportRequest, "response": v1.ReportResponse},
}


def test_there_are_plans_and_reports() -> None:
    assert PLANS
    assert REPORTS


@pytest.mark.parametrize("path", PLANS + REPORTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_messages_are_read_without_loss(path: Path) -> None:
    case = json.loads(path.read_text())
    messages = MESSAGES[path.parent.name]
    for member in messages.keys() & case.keys():
        message = json_format.ParseDict(case[member], messages[member]())
        again = messages[member].FromString(message.SerializeToString())
        assert again == message
        assert _leaves(json_format.MessageToDict(again)) == _leaves(case[member])


def _leaves(value: Any) -> int:
    """The number of values in it, except those that equal an absent one, so that a lost value would show."""
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    if isinstance(value, list):
        return sum(map(_leaves, value))
    return int(value not in ("", 0, False, None, "0"))


@cases("manifests")
def test_manifests(case: dict[str, Any]) -> None:
    manifest = PodManifest(json_format.ParseDict(case["plan"], v1.Plan()))
    create = json_format.ParseDict(case["create"], v1.CreatePod())
    other = v1.CreatePod(pod_name="another", node_name="another")
    for _ in range(2):
        manifest.render(other)
        assert json.loads(manifest.render(create)) == case["pod"]


@cases("resource_versions")
def test_resource_versions(case: dict[str, Any]) -> None:
    assert compare(case["a"], case["b"]) == case["order"]


class Present:
    """The caches of a vector."""

    def __init__(self, pods: list[Any]) -> None:
        self._pods = [pod if isinstance(pod, dict) else {"name": pod} for pod in pods]

    def exists(self, pod_name: str) -> bool:
        return any(pod["name"] == pod_name for pod in self._pods)

    def deleting(self) -> dict[str, bool]:
        return {pod["uid"]: pod["deleting"] for pod in self._pods if "uid" in pod}


@cases("expectations")
def test_expectations(case: dict[str, Any]) -> None:
    reconcile_states = ReconcileStates()
    key = KEY._replace(kind=case.get("kind", KEY.kind))
    for step in case["steps"]:
        ((kind, told),) = step.items()
        match kind:
            case "hold":
                planned, sent = (
                    json_format.ParseDict(told[state], v1.ReconcileState()) for state in ("planned", "sent")
                )
                reconcile_states.replace(key, "u", planned, sent, Present(told["present_pods"]))
            case "created":
                reconcile_states.observe_create(key, told["pod_name"], told["node_name"])
            case "deleted":
                reconcile_states.observe_deletion(key, told["pod_name"], told["pod_uid"])
            case "applied":
                outcomes = [json_format.ParseDict(outcome, v1.Outcome()) for outcome in told]
                reconcile_states.lower(key, "u", outcomes)
            case "settle":
                reconcile_states.settle(key, "u", json_format.ParseDict(told, v1.ReconcileState()))
            case "gone":
                reconcile_states.retire_name(key, "u", told["node_name"], told["pod_name"])
            case _:
                pytest.fail(f"unknown step {kind}")
    assert reconcile_states.get(key, "u") == json_format.ParseDict(case["state"], v1.ReconcileState())
