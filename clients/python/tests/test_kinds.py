"""Tests ReplicaSets and Deployments: which changes queue them, what is cached, and what their snapshots contain."""

import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import convert, snapshot, v1
from nodewise.buckets import Buckets, SharedParts, bucket_of
from nodewise.expectations import ReconcileStates
from nodewise.handlers import (
    Forget,
    ObserveCreate,
    ObserveDeletion,
    Reaction,
    RetireName,
    Rules,
    Urgency,
    Wake,
    react,
)
from nodewise.kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, Kind, Resource, watched
from nodewise.live import LiveObjects
from nodewise.objects import Node, Pod, Workload
from nodewise.queue import Queue, RateLimits
from nodewise.receiver import Receiver
from nodewise.revisions import MAX_BYTES
from nodewise.state import State
from nodewise.store import Applied, Listed, PodChange, Store, Transition, Watched, WorkloadChange

from .objects import DEPLOYMENT_KEY, SET_KEY, deployment, listed, node, replica_set, web_pod, workload

EVERY_KIND = (DAEMON_SET, REPLICA_SET, DEPLOYMENT)


def filled(*objects: Watched, kinds: tuple[Kind, ...] = (DEPLOYMENT, REPLICA_SET)) -> Store:
    store = Store(8, kinds)
    for resource in store.watched:
        store.apply(Listed(resource, [], "1"), lambda _: None)
    for obj in objects:
        store.apply(Applied(obj), lambda _: None)
    return store


def pods(old: Pod | None, new: Pod | None) -> Transition:
    before, after = (None if one is None else one.projection for one in (old, new))
    return PodChange("ns", before, after)


def gone(uid: str = "p-uid") -> list[Reaction]:
    return [*going(uid), RetireName(SET_KEY, "s1", "p", "")]


def going(uid: str = "p-uid") -> list[Reaction]:
    return [ObserveDeletion(SET_KEY, "p", uid), Wake(SET_KEY)]


def test_only_what_plans_need_is_watched() -> None:
    inputs = [Resource.PODS, Resource.NODES, Resource.REVISIONS, Resource.POLICIES]
    assert watched([DAEMON_SET]) == [Resource.DAEMON_SETS, *inputs]
    assert watched([REPLICA_SET]) == [Resource.REPLICA_SETS, Resource.PODS]
    assert watched([DEPLOYMENT]) == [Resource.REPLICA_SETS, Resource.DEPLOYMENTS, Resource.PODS]
    assert watched(EVERY_KIND) == list(Resource)


# Expectations and used names are for no node.
@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        (WorkloadChange(None, replica_set()), [Wake(SET_KEY, Urgency.URGENT)]),
        (WorkloadChange(replica_set(), replica_set(version="2")), [Wake(SET_KEY)]),
        (WorkloadChange(replica_set(), None), [Forget(SET_KEY, "s1"), Wake(SET_KEY)]),
        (WorkloadChange(None, deployment()), []),
        (pods(None, web_pod()), [ObserveCreate(SET_KEY, "p", ""), Wake(SET_KEY)]),
        (pods(None, web_pod(deleting=True)), going()),
        (pods(None, web_pod(owner="else")), []),
        (pods(None, web_pod(kind="DaemonSet")), []),
        (pods(None, web_pod(owner=None)), [Wake(SET_KEY)]),
        (pods(None, web_pod(owner=None, labels={"app": "db"})), []),
        (pods(web_pod(), web_pod()), []),
        (pods(web_pod(), web_pod(ready=True)), [Wake(SET_KEY), Wake(SET_KEY, after=10)]),
        (pods(web_pod(), web_pod(owner=None)), [Wake(SET_KEY), Wake(SET_KEY)]),
        (pods(web_pod(), web_pod(deleting=True)), going()),
        # with other labels, the pod may have had another owner before.
        (pods(web_pod(), web_pod(deleting=True, labels={"app": "db"})), [*going(), *going()]),
        (pods(web_pod(uid="old"), web_pod()), [*gone("old"), ObserveCreate(SET_KEY, "p", ""), Wake(SET_KEY)]),
        (pods(web_pod(), None), gone()),
    ],
)
def test_what_queues_a_replica_set(transition: Transition, expected: list[Reaction]) -> None:
    store = filled(replica_set(minReadySeconds=10))
    assert react(store, transition, Rules(), REPLICA_SET) == expected


# P-5 to P-9.
@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        (WorkloadChange(None, deployment()), [Wake(DEPLOYMENT_KEY, Urgency.URGENT)]),
        (WorkloadChange(deployment(), None), [Forget(DEPLOYMENT_KEY, "d1"), Wake(DEPLOYMENT_KEY)]),
        (WorkloadChange(None, replica_set()), [Wake(DEPLOYMENT_KEY)]),
        (WorkloadChange(None, replica_set(owner="else")), []),
        (WorkloadChange(None, replica_set(owner=None)), [Wake(DEPLOYMENT_KEY)]),
        (WorkloadChange(None, replica_set(owner=None, labels={"app": "db"})), []),
        (WorkloadChange(None, replica_set(owner=None, deleting=True)), []),
        (WorkloadChange(replica_set(), replica_set()), []),
        (WorkloadChange(replica_set(), replica_set(version="2")), [Wake(DEPLOYMENT_KEY)]),
        (WorkloadChange(replica_set(), replica_set(version="2", owner=None)), [Wake(DEPLOYMENT_KEY)] * 2),
        (WorkloadChange(replica_set(owner=None), replica_set(version="2", owner=None)), []),
        (WorkloadChange(replica_set(), None), [Wake(DEPLOYMENT_KEY)]),
        (pods(None, web_pod()), []),
        (pods(web_pod(), web_pod(ready=True)), []),
        (pods(web_pod(), None), []),
    ],
)
def test_what_queues_a_deployment(transition: Transition, expected: list[Reaction]) -> None:
    store = filled(deployment(), replica_set())
    assert react(store, transition, Rules(), DEPLOYMENT) == expected


# P-8: it waits for the last pod of any of its ReplicaSets.
def test_the_last_pod_queues_a_deployment_that_recreates() -> None:
    recreates = deployment(strategy={"type": "Recreate"})
    last, second = pods(web_pod(), None), web_pod("q", owner="s2", owner_name="web-2")
    of_another = replica_set("web-2", "s2")
    assert react(filled(recreates, replica_set()), last, Rules(), DEPLOYMENT) == [Wake(DEPLOYMENT_KEY)]
    store = filled(recreates, replica_set(), of_another, second)
    assert react(store, last, Rules(), DEPLOYMENT) == []
    store = filled(recreates, replica_set(), replica_set("web-2", "s2", labels={"app": "db"}), second)
    assert react(store, last, Rules(), DEPLOYMENT) == [Wake(DEPLOYMENT_KEY)], "it does not select the other one"
    replaced = pods(web_pod(uid="old"), web_pod(deleting=True))
    assert react(filled(recreates, replica_set()), replaced, Rules(), DEPLOYMENT) == [Wake(DEPLOYMENT_KEY)]


def test_an_event_queues_workloads_of_all_kinds() -> None:
    state = State(1, v1.PlanOptions(), EVERY_KIND)
    for resource in Resource:
        state.apply_event(Listed(resource, [], "1"))
    assert state.apply_event(Applied(deployment())) == [Wake(DEPLOYMENT_KEY, Urgency.URGENT)]
    woken = state.apply_event(Applied(replica_set()))
    assert set(woken) == {Wake(DEPLOYMENT_KEY), Wake(SET_KEY, Urgency.URGENT)}
    assert state.apply_event(Applied(node())) == [], "there are no DaemonSets"
    assert state.every_key() == [SET_KEY, DEPLOYMENT_KEY]
    state.apply_event(Applied(web_pod()))
    assert state.apply_event(listed(Resource.PODS, version="2")) == [Wake(SET_KEY)]
    used = state.reconcile_states.get(SET_KEY, "s1").used_pod_names
    assert [(name.node_name, name.pod_name) for name in used] == [("", "p")]


# Another pod does not say which of them it replaces.
def test_names_without_a_node_are_used_until_a_plan_drops_them() -> None:
    states = ReconcileStates()
    for name in "ab":
        states.retire_name(SET_KEY, "s1", "", name)
    states.observe_create(SET_KEY, "c", "")
    sent = states.get(SET_KEY, "s1")
    assert [name.pod_name for name in sent.used_pod_names] == ["a", "b"]
    kept = v1.ReconcileState(used_pod_names=sent.used_pod_names[:1])
    states.replace(SET_KEY, "s1", kept, sent, filled().pod_view(SET_KEY, "s1"))
    assert [name.pod_name for name in states.get(SET_KEY, "s1").used_pod_names] == ["a"]


def test_the_number_of_buckets_by_name_follows_the_number_of_pods() -> None:
    parts, buckets, counts = SharedParts(), Buckets(1, by_name=True, grows_to=10), []
    stored = [parts.store_pod(v1.Pod(name=f"pod-{index}"), "1", 64) for index in range(1_100)]
    for number, one in enumerate(stored, 1):
        assert buckets.put(one) is None
        assert buckets.put(one) is one
        counts.append((buckets.count, number))
    firsts = dict(reversed(counts))
    assert firsts == {1: 1, 2: 129, 4: 257, 8: 513, 10: 1025}
    for index in range(buckets.count):
        assert all(bucket_of(one.name, buckets.count) == index for one in buckets.members(index))
    for one in stored:
        buckets.take_out(one)
        buckets.take_out(one)
    assert (len(buckets), buckets.count) == (0, 1)


def taken(store: Store, of: Workload, *live: Workload) -> v1.Snapshot:
    found = snapshot.take(
        store, of, v1.ReconcileState(), LiveObjects([], [*live]), now=Timestamp(seconds=7), receiver=Receiver()
    )
    return found.snapshot


def names_of(sent: v1.Snapshot) -> list[str]:
    return [pod.name for bucket in sent.pod_buckets for pod in v1.PodBucket.FromString(bucket.data).pods]


def test_the_snapshot_of_a_replica_set() -> None:
    template = {"metadata": {"labels": {"app": "web", "tier": "a"}}}
    own = replica_set(template=template, replicas=2)
    store = filled(
        own,
        web_pod("mine", labels={"app": "web", "tier": "a", "note": "x"}),
        web_pod("orphan", owner=None),
        web_pod("else", owner="s9"),
        web_pod("unselected", owner=None, labels={"app": "db"}),
        web_pod("of-a-daemon-set", kind="DaemonSet"),
    )
    sent = taken(store, own)
    assert sent.workload.replica_set.object == own.object
    assert (sent.bucket_count, len(sent.pod_buckets), list(sent.node_buckets), list(sent.revisions)) == (1, 1, [], [])
    assert sent.caches_synced
    assert names_of(sent) == ["mine", "orphan"]
    labels = v1.PodBucket.FromString(sent.pod_buckets[0].data).shared_metadata[0].labels
    assert [label.key for label in labels] == ["app", "tier"], "those of the selector and of the template"
    assert names_of(taken(filled(own), own)) == []


def test_the_pods_of_a_large_replica_set_are_in_the_buckets_of_their_names() -> None:
    own = replica_set()
    store = filled(own, *(web_pod(f"p{index}", node=f"n{index % 3}") for index in range(200)))
    store.apply(Applied(web_pod("orphan", owner=None)), lambda _: None)
    sent = taken(store, own)
    assert sent.bucket_count == len(sent.pod_buckets) == 2
    for index, bucket in enumerate(sent.pod_buckets):
        found = v1.PodBucket.FromString(bucket.data).pods
        assert {bucket_of(pod.name, 2) for pod in found} == {index}
    assert len(names_of(sent)) == 201


#
def test_related_pods_are_those_of_all_replica_sets_of_the_deployment() -> None:
    own, other = replica_set(replicas=1), replica_set("web-2", "s2", replicas=0)
    several: list[Watched] = [
        own,
        other,
        replica_set("db", "s3", "1", "else", labels={"app": "db"}, selector={"matchLabels": {"app": "db"}}),
        web_pod("a", node="n1"),
        web_pod("b", node="n2"),
        web_pod("c", owner="s2", owner_name="web-2", node="n2"),
        web_pod("d", owner="s2", owner_name="web-2", node="n2", phase="Failed"),
        web_pod("e", node="n2", deleting=True),
        web_pod("f", owner="s3", owner_name="db", labels={"app": "db"}, node="n1"),
    ]
    store = filled(*several)
    related = taken(store, own).workload.replica_set.related_pods
    assert [(one.node_name, one.pods) for one in related] == [("n1", 1), ("n2", 2)]
    enough = replica_set(replicas=2)
    assert not taken(store, enough).workload.replica_set.related_pods, "no plan deletes pods"
    alone = replica_set(owner=None, replicas=0)
    assert not taken(filled(alone, web_pod()), alone).workload.replica_set.related_pods


# Of too many ReplicaSets with one controller the selectors are not compared, and only the pods that they control count.
def test_the_selectors_of_many_replica_sets_are_not_compared() -> None:
    own = replica_set(replicas=1)
    sets = [replica_set(f"other-{number}", f"u{number}") for number in range(100)]
    pods = [web_pod("a"), web_pod("b"), web_pod("c", owner="u0", owner_name="other-0"), web_pod("selected", owner=None)]
    for others, count in ((sets[:99], 4), (sets, 3)):
        related = taken(filled(own, *others, *pods), own).workload.replica_set.related_pods
        assert [one.pods for one in related] == [count]


def test_the_snapshot_of_a_deployment() -> None:
    own = deployment(strategy={"type": "Recreate"})
    store = filled(
        own,
        replica_set(),
        replica_set("web-2", "s2"),
        replica_set("orphan", "s3", owner=None),
        replica_set("unselected", "s4", owner=None, labels={"app": "db"}),
        replica_set("else", "s5", owner="d9"),
        web_pod("a"),
        web_pod("b", phase="Succeeded"),
        web_pod("c", deleting=True),
        web_pod("d", owner_name="else"),
    )
    live = replica_set("web-2", "s6", "9", "d9")
    sent = taken(store, own, live)
    assert (sent.bucket_count, list(sent.pod_buckets), list(sent.node_buckets)) == (0, [], [])
    found = sent.workload.deployment
    assert found.object == own.object
    sets = [(name(one.object), one.unfinished_pods, one.read_after_name_collision) for one in found.replica_sets]
    assert sets == [("web-1", 2, False), ("orphan", 0, False), ("web-2", 0, True)]
    assert found.replica_sets[-1].object == live.object
    rolling = taken(store, deployment()).workload.deployment
    assert {one.unfinished_pods for one in rolling.replica_sets} == {0}, "only Recreate waits for pods"


def name(served: bytes) -> str:
    found: str = json.loads(served)["metadata"]["name"]
    return found


# Anyone who may create ReplicaSets in the namespace may create orphans that the selector matches.
def test_replica_sets_that_do_not_fit_into_a_request_are_left_out() -> None:
    large = {"template": {"metadata": {"annotations": {"a": "x" * (MAX_BYTES // 3)}}}}

    def of(number: int, replicas: int, owner: str | None = "d1") -> Workload:
        created = f"2026-01-0{number}T00:00:00Z"
        return replica_set(f"r{number}", f"s{number}", "1", owner, created=created, replicas=replicas, **large)

    store = filled(deployment(), of(1, 1), of(2, 0), of(3, 0), of(4, 5, owner=None))
    found = snapshot.take(store, deployment(), v1.ReconcileState(), LiveObjects(), now=Timestamp(), receiver=Receiver())
    sets = [name(one.object) for one in found.snapshot.workload.deployment.replica_sets]
    assert (sets, found.left_out) == (["r1", "r3"], 2)


@pytest.mark.parametrize(
    ("owner", "expected"),
    [("ReplicaSet", ("5", 7, 3)), (None, ("5", 7, 3)), ("DaemonSet", ("", 7, 0)), ("Job", ("", 0, 0))],
    ids=["of a ReplicaSet", "an orphan", "of a DaemonSet", "of another kind"],
)
def test_what_decides_which_pod_is_deleted_first(owner: str | None, expected: tuple[str, int, int]) -> None:
    owners = [] if owner is None else [{"kind": owner, "name": "o", "uid": "o", "controller": True}]
    statuses = [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 7}, {"name": "c"}]
    initial = [{"name": "once", "restartCount": 9}, {"name": "side", "restartCount": 3}]
    served: dict[str, Any] = {
        "metadata": {
            "name": "p",
            "uid": "u",
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": "5"},
            "ownerReferences": owners,
        },
        "spec": {"initContainers": [{"name": "once"}, {"name": "side", "restartPolicy": "Always"}]},
        "status": {"containerStatuses": statuses, "initContainerStatuses": initial},
    }
    found = convert.pod(served)
    assert (found.deletion_cost, found.restarts, found.sidecar_restarts) == expected
    served["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "5" * 65}
    assert convert.pod(served).deletion_cost == ""


# P-63.
def test_a_key_is_retried_so_many_times_in_a_row() -> None:
    queue = Queue[str](RateLimits(), 0.0, 0.0, max_retries=2)
    assert [queue.add_rate_limited("a", 0) is not None for _ in range(4)] == [True, True, False, True]
    queue.forget("a")
    assert [queue.add_rate_limited("a", 0) is not None for _ in range(3)] == [True, True, False]
    refusals = [queue.add_rate_limited("b", 0, refused=True) for _ in range(4)]
    assert None not in refusals, "the service may be mended"
    assert queue.add_rate_limited("b", 0) is not None, "refusals are no failures of the key"


def test_workloads_are_found_by_their_controller() -> None:
    store = filled(deployment(), replica_set(), replica_set("web-2", "s2"))
    assert [one.key.name for one in store.controlled(REPLICA_SET, deployment())] == ["web-1", "web-2"]
    store.apply(Applied(replica_set(version="2", owner=None)), lambda _: None)
    assert [one.key.name for one in store.controlled(REPLICA_SET, deployment())] == ["web-2"]
    assert [one.key.name for one in store.orphans(REPLICA_SET, deployment())] == ["web-1"]
    store.apply(listed(Resource.REPLICA_SETS, version="3"), lambda _: None)
    assert store.controlled(REPLICA_SET, deployment()) == []
    assert store.count(Resource.REPLICA_SETS) == 0
    assert store.count(Resource.DEPLOYMENTS) == 1


def test_an_orphan_that_is_gone_or_cannot_be_changed_is_left_out() -> None:
    """An orphan that could not be changed counts as new when it has changed."""
    seen: list[WorkloadChange] = []

    def visit(change: Transition) -> None:
        assert isinstance(change, WorkloadChange)
        seen.append(change)

    def put(version: str) -> tuple[bool, int]:
        """Whether it counts as new, and the number of orphans."""
        store.apply(Applied(replica_set(version=version, owner=None)), visit)
        return seen[-1].old is None, len(store.orphans(REPLICA_SET, deployment()))

    store = filled(deployment())
    assert put("1") == (True, 1)
    store.seal(Resource.REPLICA_SETS, "ns", "web-1")
    store.seal(Resource.REPLICA_SETS, "ns", "unknown")
    assert [put("1"), put("2"), put("3")] == [(False, 0), (True, 1), (False, 1)]
    store.seal(Resource.REPLICA_SETS, "ns", "web-1")
    store.restart_versions()
    assert put("3") == (False, 1)
    store.forget_orphan(Resource.REPLICA_SETS, "ns", "web-1")
    assert store.orphans(REPLICA_SET, deployment()) == []
    assert put("3") == (True, 1)
    store.apply(Applied(replica_set(version="4")), visit)
    store.forget_orphan(Resource.REPLICA_SETS, "ns", "web-1")
    assert len(store.controlled(REPLICA_SET, deployment())) == 1, "it is no orphan"


def test_changes_of_workloads_are_numbered() -> None:
    store = filled(replica_set())
    first = store.changed(Resource.REPLICA_SETS, "ns", "web-1")
    store.apply(Applied(replica_set()), lambda _: None)
    assert store.changed(Resource.REPLICA_SETS, "ns", "web-1") == first, "it is the same version"
    store.apply(Applied(replica_set(version="2")), lambda _: None)
    assert store.changed(Resource.REPLICA_SETS, "ns", "web-1") > first
    assert store.changed(Resource.REPLICA_SETS, "ns", "nothing") == 0
    store.apply(listed(Resource.REPLICA_SETS, version="3"), lambda _: None)
    assert store.changed(Resource.REPLICA_SETS, "ns", "nothing") == store.last_change


# The names of a DaemonSet and of a ReplicaSet may be equal, and so may the uids that anyone writes into an owner
# reference.
def test_workloads_of_two_kinds_do_not_mix() -> None:
    one = workload(DAEMON_SET, "web-1", "s1")
    store = filled(one, replica_set(), web_pod("of-set"), web_pod("of-daemon", kind="DaemonSet"), kinds=EVERY_KIND)
    store.apply(Applied(Node("1", v1.Node(name="n1"))), lambda _: None)
    assert names_of(taken(store, one)) == ["of-daemon"]
    assert names_of(taken(store, replica_set())) == ["of-set"]
