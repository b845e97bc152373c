"""Tests which RolloutPolicies a DaemonSet has, and what they queue and send."""

import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import snapshot, snapshot_of, v1
from nodewise.convert import ConversionError
from nodewise.handlers import Wake
from nodewise.kinds import Key, Resource
from nodewise.live import LiveObjects
from nodewise.objects import Node, Pod
from nodewise.policies import RolloutPolicy
from nodewise.receiver import Receiver
from nodewise.state import State
from nodewise.store import Applied, Deleted, Event, Store, policies

from .objects import KEY, daemon_set, filled, listed, policy

BAR = Key("ns", "bar")


def sent(store: Store) -> list[str]:
    return [policy.name for policy in store.policies(daemon_set())]


def with_policies(*of: RolloutPolicy) -> State:
    """A state with the DaemonSets foo and bar, and these policies."""
    events: list[Event] = [Applied(daemon_set("u2", name="bar", labels={"tier": "b"})), listed(Resource.POLICIES, *of)]
    return filled(State(1, v1.PlanOptions()), *events)


# L-2: where the targets cannot be told, every workload of the namespace may be meant.
@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ({"names": ["foo"]}, [True, False]),
        ({"names": ["x", "bar"]}, [False, True]),
        ({"selector": {"matchLabels": {"tier": "b"}}}, [False, True]),
        ({"selector": {}}, [True, True]),
        ({"names": ["foo"], "selector": {}}, [True, True]),
        ({"selector": {"matchExpressions": [{"key": "tier", "operator": "Like"}]}}, [True, True]),
        ({"names": "foo"}, [True, True]),
        ({"names": ["foo", 7]}, [True, True]),
        ({"names": ["foo"], "newer": 1}, [True, True]),
        ({"names": ["foo"], "newer": None}, [True, True]),
        ({"selector": {"matchLabels": {"tier": "b"}}, "newer": ["foo"]}, [True, True]),
        ({"names": ["foo"], "selector": None}, [True, False]),
        ({"names": [], "selector": None}, [True, True]),
        ({}, [True, True]),
        (7, [True, True]),
    ],
)
def test_a_policy_targets_what_it_names_or_selects(targets: Any, expected: list[bool]) -> None:
    workloads = [daemon_set(), daemon_set(name="bar", labels={"tier": "b"})]
    assert [policy(targets=targets).may_target(workload) for workload in workloads] == expected
    assert not policy(targets=targets).may_target(daemon_set(namespace="elsewhere"))


def test_a_policy_is_kept_as_served() -> None:
    served = b'{"metadata":{"name":"a","uid":"u","managedFields":[{}]},"spec":{"targets":{"names":["x"]},"newer":1.0}}'
    found = RolloutPolicy.read(served)
    assert json.loads(found.object) == {
        "apiVersion": "nodewise.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"targets": {"names": ["x"]}, "newer": 1.0},
    }
    with pytest.raises(ConversionError, match=r"metadata.uid: is missing"):
        RolloutPolicy.read(b'{"metadata":{"name":"a"}}')
    for spec in (b"7", b"[" * 5_000 + b"]" * 5_000):
        odd = RolloutPolicy.read(b'{"metadata":{"name":"a","uid":"u"},"spec":' + spec + b"}")
        assert odd.targets.are_unknown


def test_the_oldest_policies_of_a_workload_are_sent() -> None:
    of = [
        policy("late", created=9),
        policy("b", created=3),
        policy("a", created=3),
        policy("of-another", targets={"names": ["bar"]}, created=1),
        policy("odd", targets=7, created=1),
    ]
    store = with_policies(*of).store
    assert sent(store) == ["a", "b", "late", "odd"]
    assert store.count(Resource.POLICIES) == 5
    many = [policy(f"p{number:03}") for number in range(150)]
    assert sent(with_policies(*many).store) == [f"p{number:03}" for number in range(100)]


def test_policies_of_a_snapshot_have_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    of = [policy("a"), policy("b"), policy("c")]
    size = len(of[0].object)
    for most, expected in ((1, ["a"]), (2 * size - 1, ["a"]), (2 * size, ["a", "b"]), (3 * size, ["a", "b", "c"])):
        monkeypatch.setattr(policies, "MOST_BYTES", most)
        assert sent(with_policies(*of).store) == expected, most


def test_the_snapshot_has_the_policies() -> None:
    state = with_policies(policy())

    def taken(name: str, uid: str) -> v1.DaemonSet:
        workload = daemon_set(uid, name=name)
        of = (state.store, workload, v1.ReconcileState(), LiveObjects())
        return snapshot.take(*of, now=Timestamp(), receiver=Receiver()).snapshot.workload.daemon_set

    (one,) = taken("foo", "u1").rollout_policies
    assert json.loads(one.object)["spec"] == {"targets": {"names": ["foo"]}}
    assert not taken("bar", "u2").rollout_policies


@pytest.mark.parametrize(
    ("spec", "targets", "former"),
    [
        (["foo"], [("foo", "u1"), ("foo", "before"), ("gone", "u9")], ["before", "u9"]),
        (["foo"], [("gone", str(number)) for number in range(1_001)], [str(number) for number in range(1_000)]),
        (["foo"], None, []),
        (["foo"], [("foo", "u1"), ("bar", "u2")], ["u2"]),
        (7, [("foo", "u1"), ("bar", "u2"), ("gone", "u9")], ["u9"]),
    ],
)
def test_entries_of_a_status_that_is_no_target_any_more_are_told(
    spec: Any, targets: list[tuple[str, str]] | None, former: list[str]
) -> None:
    entries = None if targets is None else [7, *({"name": name, "uid": uid} for name, uid in targets)]
    metadata = {"namespace": "ns", "name": "p", "uid": "p-uid"}
    served = {"metadata": metadata, "spec": {"targets": {"names": spec}}, "status": {"targets": entries}}
    state = with_policies(RolloutPolicy.read(served))
    of = (state.store, daemon_set(), v1.ReconcileState(), LiveObjects())
    taken = snapshot.take(*of, now=Timestamp(), receiver=Receiver()).snapshot
    (one,) = taken.workload.daemon_set.rollout_policies
    assert list(one.former_target_uids) == former


# For programs without caches.
def test_a_snapshot_without_caches_has_the_policies() -> None:
    of = {"nodes": [NODE], "pods": [], "revisions": []}
    served = [
        policy("late", created=2, stages=STAGES),
        policy("a", created=1),
        policy("else", targets={"names": ["x"]}),
    ]
    found = snapshot_of(daemon_set().object, **of, policies=[one.object for one in served])  # type: ignore[arg-type]
    names = [json.loads(one.object)["metadata"]["name"] for one in found.workload.daemon_set.rollout_policies]
    assert names == ["a", "late"]
    assert labels_of(found.node_buckets[0]) == ["gpu", "pool", "rack", "zone"]
    assert not snapshot_of(daemon_set().object, **of).workload.daemon_set.rollout_policies  # type: ignore[arg-type]


NODE = {"metadata": {"name": "n1", "labels": {"pool": "canary", "zone": "a", "rack": "r", "gpu": "", "other": "x"}}}


# The caller has many objects, and has to find the one that is wrong.
@pytest.mark.parametrize(
    ("argument", "objects", "message"),
    [
        ("nodes", [NODE, {"metadata": {"name": ""}}], "nodes[1].metadata.name: is missing"),
        (
            "pods",
            [{"metadata": {"name": "p", "uid": "u"}}, "- yaml"],
            "pods[1]: is no JSON object: Expecting value: line 1 column 1 (char 0)",
        ),
        ("revisions", [{}], "revisions[0].metadata.name: is missing"),
        ("policies", ["kind: RolloutPolicy"], "policies[0]: is no JSON object: it is not within {}"),
        ("pods", '{"items": []}', "pods: is no list of objects; of a served list, pass convert.items(text)"),
        ("nodes", {"items": []}, "nodes: is no list of objects; of a served list, pass convert.items(text)"),
    ],
)
def test_an_object_of_another_shape_is_named(argument: str, objects: Any, message: str) -> None:
    of: dict[str, Any] = {"nodes": [], "pods": [], "revisions": [], argument: objects}
    with pytest.raises(ConversionError) as raised:
        snapshot_of(daemon_set().object, **of)
    assert str(raised.value) == message


STAGES = [
    {"name": "canary", "nodeSelector": {"matchLabels": {"pool": "canary"}}, "spreadBy": "zone"},
    {"groupBy": "rack", "nodeSelector": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}},
    7,
]


def labels_of(bucket: v1.Bucket) -> list[str]:
    (node,) = v1.NodeBucket.FromString(bucket.data).nodes
    return [label.key for label in node.labels]


# Stages select nodes by labels that no workload may name.
def test_labels_that_a_policy_names_are_sent() -> None:
    state = with_policies()
    state.apply_event(Applied(Node.read(NODE)))
    of = [state.store.node_buckets(daemon_set(), lambda _: False)]
    state.apply_event(Applied(policy(targets={"names": ["else"]}, stages=STAGES)))
    of.append(state.store.node_buckets(daemon_set(), lambda _: False))
    assert [labels_of(buckets[0]) for buckets in of] == [[], ["gpu", "pool", "rack", "zone"]]


def wakes(*names: str) -> list[Wake]:
    return [Wake(Key("ns", name)) for name in names]


def test_a_policy_queues_its_old_and_its_new_targets() -> None:
    state = with_policies()
    for version, targets, expected in (
        ("1", {"names": ["foo"]}, ["foo"]),
        ("1", {"names": ["foo"]}, []),
        ("2", {"names": ["foo"]}, ["foo"]),
        ("3", {"names": ["bar"]}, ["bar", "foo"]),
        ("4", {"selector": {"matchLabels": {"none": "has"}}}, ["bar"]),
        ("5", 7, ["bar", "foo"]),  # L-2
        ("6", {"names": ["gone"]}, ["bar", "foo"]),
        ("7", {"names": ["bar"]}, ["bar"]),
    ):
        assert state.apply_event(Applied(policy("p", version, targets))) == wakes(*expected), version
    # L-3
    assert state.apply_event(Deleted(policy("p", "8", {"names": ["bar"]}))) == wakes("bar")
    state.apply_event(Applied(policy("q")))
    assert state.apply_event(listed(Resource.POLICIES, version="")) == wakes("foo")
    assert (sent(state.store), state.store.unsynced()) == ([], [])


def node_at(status: str, since: int, *, cordoned: bool = False, maintenance: str = "False", beat: int = 0) -> Event:
    since_time, beat_time = f"2026-01-01T00:00:{since:02}Z", f"2026-01-02T00:00:{beat:02}Z"
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since_time, "lastHeartbeatTime": beat_time}
    conditions = [ready, {"type": "MaintenanceInProgress", "status": maintenance}]
    spec, metadata = {"unschedulable": cordoned}, {"name": "n1", "uid": "n", "resourceVersion": str(beat)}
    return Applied(Node.read({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}}))


# L-20 to L-23. Without a policy, the readiness of a node queues nobody.
@pytest.mark.parametrize("has_policy", [False, True])
def test_the_state_of_a_node_queues_only_what_has_a_policy(has_policy: bool) -> None:
    state = with_policies(*([policy()] if has_policy else []))
    woken = wakes("foo") if has_policy else []
    state.apply_event(node_at("True", 0))
    for event, expected in (
        (node_at("True", 0, beat=1), []),
        (node_at("False", 1), woken),
        (node_at("False", 2), woken),
        (node_at("False", 2, cordoned=True), woken),
        (node_at("False", 2, cordoned=True, maintenance="True"), woken),
        (node_at("False", 2, cordoned=True, maintenance="Unknown"), woken),
    ):
        assert state.apply_event(event) == expected, event


# L-25: a pod that restarts too often has failed.
def test_a_restart_queues_only_what_has_a_policy() -> None:
    def pod(version: int, owner: str, uid: str, restarts: int, ready: str = "False") -> Event:
        owners = [{"kind": "DaemonSet", "name": owner, "uid": uid, "controller": True}]
        metadata = {"namespace": "ns", "name": owner, "uid": owner, "resourceVersion": str(version)}
        conditions = [{"type": "Ready", "status": ready}]
        status = {"containerStatuses": [{"name": "c", "restartCount": restarts}], "conditions": conditions}
        metadata_with_owner: dict[str, Any] = {**metadata, "ownerReferences": owners}
        return Applied(Pod.read({"metadata": metadata_with_owner, "spec": {"nodeName": "n1"}, "status": status}))

    state = with_policies(policy())
    state.apply_event(pod(1, "bar", "u2", 0))
    assert state.apply_event(pod(2, "bar", "u2", 1)) == []
    assert state.apply_event(pod(3, "bar", "u2", 2, "True")) == [Wake(BAR)], "it has become ready, too"
    state.apply_event(pod(1, "foo", "u1", 0))
    assert state.apply_event(pod(2, "foo", "u1", 1)) == [Wake(KEY)]
