"""Tests the caches, and the bytes that they send."""

import hashlib
import random
from typing import Any

import pytest

from nodewise import v1
from nodewise.buckets import Buckets, Labels, OwnerId, SharedParts, bucket_of, render
from nodewise.kinds import Resource
from nodewise.label_keys import MAX_LABELS, KeySet, reduce_labels
from nodewise.objects import Pod, Workload
from nodewise.store import Applied, Deleted, Listed, PodChange, Store, Transition

from .fakes import REQUIRED
from .objects import KEY, daemon_set, listed, node, pod, revision

KEYS = KeySet(frozenset({"revision"}))


def projection(name: str, version: int, shared: str) -> v1.Pod:
    labels = [v1.Label(key="revision", value=shared)] if shared else []
    return v1.Pod(name=name, uid=f"{name}-{version}", labels=labels, node_name=f"node-{name}")


# A bucket has the same bytes as one that is built from the same members at once.
def test_remembered_digests_are_those_of_the_bytes() -> None:
    chance, parts = random.Random(7), SharedParts()
    sets, members = (Buckets(2), Buckets(2)), ({}, {})  # type: tuple[Buckets, Buckets], tuple[dict[str, Any], dict[str, Any]]
    for _ in range(2000):
        which, name = chance.randrange(2), chance.choice("abcdef")
        if chance.random() < 0.6:
            stored = parts.store_pod(projection(name, chance.randrange(3), chance.choice(["", "x", "y"])), "1", 2)
            sets[which].put(stored)
            members[which][name] = stored
        else:
            sets[which].remove(bucket_of(f"node-{name}", 2), name)
            members[which].pop(name, None)
        fresh = Buckets(2), Buckets(2)
        for kept, copy in zip(members, fresh, strict=True):
            for stored in chance.sample([*kept.values()], len(kept)):
                copy.put(stored)
        known = chance.random() < 0.5
        rendered = render(*sets, KEYS, 2, lambda _, known=known: known)  # type: ignore[misc]
        for bucket, expected in zip(rendered, render(*fresh, KEYS, 2, lambda _: False), strict=True):
            assert bucket.digest == expected.digest == hashlib.sha256(expected.data).digest()
            assert bucket.HasField("data") is not known
            read = v1.PodBucket.FromString(expected.data)
            assert all(0 <= pod.shared_metadata <= len(read.shared_metadata) for pod in read.pods)
    assert [len(kept) for kept in sets] == [len(kept) for kept in members]


# The bytes do not depend on the order of the changes, and each form has its own digest.
def test_nodes_share_labels() -> None:
    chance, labels, keys = random.Random(5), Labels(), KeySet(frozenset("abh"))
    nodes: dict[str, v1.Node] = {}
    kept = Buckets(2)
    counts = {True: 0, False: 0}
    for version in range(400):
        name = f"n{chance.randrange(6)}"
        named = [v1.Label(key=key, value=f"n{chance.randrange(6)}") for key in "abh" if chance.random() < 0.5]
        nodes[name] = v1.Node(name=name, uid=str(version), labels=named)
        kept.put(labels.store_node(nodes[name], str(version), 2))
        fresh = Buckets(2)
        for made in chance.sample([*nodes.values()], len(nodes)):
            fresh.put(labels.store_node(made, "", 2))
        known = chance.random() < 0.5
        rendered = render(kept, None, keys, 2, lambda _, known=known: known, shares_labels=True)  # type: ignore[misc]
        expected = render(fresh, None, keys, 2, lambda _: False, shares_labels=True)
        plain = render(kept, None, keys, 2, lambda _: False)
        for bucket, shared, own in zip(rendered, expected, plain, strict=True):
            shares = shared.HasField("data_with_shared_labels")
            data = shared.data_with_shared_labels if shares else shared.data
            assert bucket.digest == shared.digest == hashlib.sha256(data).digest()
            assert own.digest == hashlib.sha256(own.data).digest()
            assert bucket.HasField("data_with_shared_labels") == (shares and not known)
            counts[shares] += 1
            read = v1.NodeBucket.FromString(data)
            for one in read.nodes:
                for number in one.shared_labels:
                    entry = read.shared_labels[number - 1]
                    one.labels.add(key=entry.key, value=one.name if entry.value_is_node_name else entry.value)
                one.ClearField("shared_labels")
                one.labels.sort(key=lambda label: label.key)
            assert v1.NodeBucket(nodes=read.nodes).SerializeToString(deterministic=True) == own.data
    assert min(counts.values()) > 20, counts


# An unchanged workload costs only a comparison of digests.
def test_what_did_not_change_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, owned = SharedParts(), Buckets(4)
    for name in "abcdefgh":
        owned.put(parts.store_pod(projection(name, 1, "x"), "1", 4))
    known = {bucket.digest for bucket in render(owned, None, KEYS, 4, lambda _: False)}
    hashed = 0
    real = hashlib.sha256

    def counting(*of: Any) -> Any:
        nonlocal hashed
        hashed += 1
        return real(*of)

    monkeypatch.setattr(hashlib, "sha256", counting)
    render(owned, None, KEYS, 4, known.__contains__)
    owned.put(parts.store_pod(projection("a", 1, "x"), "2", 4))
    render(owned, None, KEYS, 4, known.__contains__)
    assert hashed == 0, "nor for a new version of the same"
    owned.put(parts.store_pod(projection("a", 2, "x"), "3", 4))
    assert sum(bucket.HasField("data") for bucket in render(owned, None, KEYS, 4, known.__contains__)) == 1
    assert hashed == 1


class Caches(Store):
    def __init__(self) -> None:
        super().__init__(4)
        self.changes: list[Transition] = []

    def take(self, event: Any) -> list[Transition]:
        self.changes = []
        self.apply(event, self.changes.append)
        return self.changes


def shown(store: Store) -> set[str]:
    """The pods in a snapshot of the workload."""
    return {pod.name for pod in sent_pods(store, daemon_set())}


def sent_pods(store: Store, workload: Workload) -> list[v1.Pod]:
    buckets = store.pod_buckets(workload, lambda _: False)
    return [pod for bucket in buckets for pod in v1.PodBucket.FromString(bucket.data).pods]


def sent_nodes(store: Store, workload: Workload) -> dict[str, list[str]]:
    """The label keys of each node in a snapshot of the workload."""
    buckets = store.node_buckets(workload, lambda _: False)
    nodes = (node for bucket in buckets for node in v1.NodeBucket.FromString(bucket.data).nodes)
    return {node.name: [label.key for label in node.labels] for node in nodes}


# D-3: the workload's own pods and the orphans of its namespace, but no pods of others.
def test_who_is_kept_and_sent() -> None:
    store = Caches()
    others = [pod("other", owner="u2"), pod("foreign", kind="ReplicaSet"), pod("far", owner=None, namespace="far")]
    store.take(listed(Resource.PODS, pod("mine"), pod("orphan", owner=None), *others))
    assert shown(store) == {"mine", "orphan"}
    assert store.count(Resource.PODS) == 4, "a pod of another kind's is not even kept"


def test_a_pod_changes_hands() -> None:
    store = Caches()
    store.take(Applied(pod("p", "1", owner=None)))
    (change,) = store.take(Applied(pod("p", "2", node="n2")))
    assert isinstance(change, PodChange)
    assert change.old is not None
    assert not change.old.HasField("controller")
    assert shown(store) == {"p"}
    assert store.pod_view(KEY, "u1").exists("p")
    store.take(Applied(pod("p", "3", owner="u2")))
    assert shown(store) == set()
    assert len(store.take(Applied(pod("p", "4", kind="ReplicaSet")))) == 1
    assert store.count(Resource.PODS) == 0
    assert store.take(Applied(pod("p", "5", kind="ReplicaSet"))) == []
    assert len(store._parts) == 0, "and nothing of it"


def test_what_is_no_news() -> None:
    store = Caches()
    store.take(listed(Resource.PODS, pod("p", "1")))
    store.take(listed(Resource.NODES, node("n", "1")))
    for event in (
        listed(Resource.PODS, pod("p", "1")),
        Applied(pod("p", "2")),
        Applied(node("n", "2")),
    ):
        assert store.take(event) == []
    store.take(Applied(pod("p", "3", deleting=True)))
    assert len(store.take(Applied(pod("p", "4", deleting=True)))) == 1, "each event of one that goes counts (Q-5)"


@pytest.mark.parametrize(
    ("resource", "one", "other"),
    [
        (Resource.PODS, pod("a"), pod("b")),
        (Resource.NODES, node("a"), node("b")),
        (Resource.REVISIONS, revision("a"), revision("b")),
        (Resource.DAEMON_SETS, daemon_set(name="a"), daemon_set(name="b")),
    ],
)
def test_what_a_list_does_not_have_is_gone(resource: Resource, one: Any, other: Any) -> None:
    store = Caches()
    store.take(Listed(resource, [one, other], "5"))
    change = store.take(Listed(resource, [one], "6"))[0]
    assert change.new is None
    assert change.old is not None
    assert store.count(resource) == 1
    assert store.reached(resource) == "6"
    (change,) = store.take(Deleted(one))
    assert change.new is None
    assert store.count(resource) == 0


def test_orphans_are_forgotten_and_nothing_else() -> None:
    store = Caches()
    store.take(listed(Resource.PODS, pod("mine"), pod("orphan", owner=None)))
    store.take(listed(Resource.REVISIONS, revision("r-mine"), revision("r-orphan", owner=None)))
    for resource, name in (
        (Resource.PODS, "mine"),
        (Resource.PODS, "orphan"),
        (Resource.PODS, "nothing"),
        (Resource.REVISIONS, "r-mine"),
        (Resource.REVISIONS, "r-orphan"),
        (Resource.NODES, "orphan"),
    ):
        store.forget_orphan(resource, "ns", name)
        store.forget_orphan(resource, "nowhere", name)
    assert shown(store) == {"mine"}
    assert [kept.name for kept in store.revisions(daemon_set())] == ["r-mine"]


def test_synced_after_every_first_list() -> None:
    store = Caches()
    for resource in store.watched:
        assert resource in store.unsynced()
        store.take(Listed(resource, [], "1"))
    assert store.unsynced() == []
    assert store.workload(KEY) is None


OWNER = OwnerId("DaemonSet", "u1")


def test_the_projection_is_what_it_was_made_of() -> None:
    store = Caches()
    given: Pod = pod("é", "7", ready=True, labels={"a": "b"})
    store.take(Applied(given))
    (stored,) = store._namespaces["ns"].owned[OWNER]
    assert (stored.name, stored.version, stored.owner) == ("é", "7", OWNER)
    assert stored.pod() == given.projection


def on_nodes(name: str, *labels: str) -> Workload:
    """A DaemonSet whose pods are for nodes with these labels."""
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in labels]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return daemon_set(uid=name, name=name, template={"spec": {"affinity": {"nodeAffinity": required}}})


# A label is sent as soon as a DaemonSet names it, in any order of the DaemonSet and the node.
def test_labels_are_sent_that_a_daemon_set_names() -> None:
    store = Caches()
    a, b = on_nodes("a", "a"), on_nodes("b", "b")
    store.take(Applied(a))
    store.take(Applied(node("n", labels={"a": "1", "b": "1", "c": "1"})))
    assert sent_nodes(store, a) == {"n": ["a"]}
    store.take(Applied(b))
    assert sent_nodes(store, a) == {"n": ["a", "b"]}, "all are sent the same buckets"
    store.take(Deleted(b))
    assert sent_nodes(store, a) == {"n": ["a", "b"]}, "one that is gone makes no bucket another one"
    store.take(Applied(on_nodes("a", "c")))
    assert sent_nodes(store, on_nodes("a", "c")) == {"n": ["c"]}
    assert sent_nodes(store, on_nodes("not-cached", "a")) == {"n": ["a", "c"]}


# A change that no plan depends on causes no event and no new bucket.
def test_a_label_that_nothing_names_is_no_news() -> None:
    store = Caches()
    store.take(Applied(on_nodes("a", "a")))
    store.take(Applied(node("n", "1", labels={"a": "1", "x": "1"})))
    before = {bucket.digest for bucket in store.node_buckets(on_nodes("a", "a"), lambda _: False)}
    assert store.take(Applied(node("n", "2", labels={"a": "1", "x": "2", "y": ""}))) == []
    after = store.node_buckets(on_nodes("a", "a"), before.__contains__)
    assert not any(bucket.HasField("data") for bucket in after)
    (change,) = store.take(Applied(node("n", "3", labels={"a": "2", "x": "2"})))
    assert change.new is not None
    assert [label.key for label in change.new.labels] == ["a"]  # type: ignore[union-attr]
    store.take(Applied(pod("p", "1", labels={"app": "a"})))
    assert store.take(Applied(pod("p", "2", labels={"app": "a", "x": "1"}))) == [], "nor of a pod"


def test_labels_of_nodes_go_with_the_last_node_that_has_them() -> None:
    store = Caches()
    store.take(Applied(node("n", labels={"a": "1", "b": "1"})))
    store.take(Applied(node("m", labels={"a": "1", "b": "2"})))
    assert len(store._labels) == 3
    store.take(Applied(node("m", "2", labels={"a": "1"})))
    assert len(store._labels) == 2
    store.take(listed(Resource.NODES))
    assert len(store._labels) == 0


# A workload never gets orphans that it does not select, in any order of events.
def test_orphans_are_sent_that_the_workload_selects() -> None:
    store = Caches()

    def orphan(name: str, version: str, app: str, on: str = "n1", owner: str | None = None) -> Applied:
        return Applied(pod(name, version, owner, labels={"app": app, "x": name}, node=on))

    def names(app: str) -> list[str]:
        workload = daemon_set(selector={"matchLabels": {"app": app}})
        return sorted(pod.name for pod in sent_pods(store, workload))

    for name, app in (("p", "a"), ("q", "b"), ("r", "a")):
        store.take(orphan(name, "1", app))
    assert names("a") == ["p", "r"]
    store.take(orphan("p", "2", "b"))
    store.take(orphan("q", "2", "a", "n2"))
    store.take(orphan("r", "2", "a", "n3"))
    store.take(orphan("s", "2", "a", "n4"))
    assert names("a") == ["q", "r", "s"]
    store.take(Deleted(pod("r", "3", None)))
    store.take(orphan("q", "3", "a", "n2", "u2"))
    assert names("a") == ["s"]
    assert names("b") == ["p"], "for another selector"
    assert names("c") == []


def test_revisions_are_sent_that_the_workload_selects() -> None:
    store = Caches()
    store.take(
        listed(Resource.REVISIONS, revision("mine"), revision("orphan", owner=None), revision("other", owner="u2"))
    )
    assert [kept.name for kept in store.revisions(daemon_set())] == ["mine", "orphan"]
    other = daemon_set(selector={"matchLabels": {"app": "bar"}})
    assert [kept.name for kept in store.revisions(other)] == ["mine"], "one that it controls it may have to release"


# One object with too many labels blocks nothing: labels that do not fit are left out, and logged.
def test_what_does_not_fit_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    store, keys = Caches(), [f"k{index:04}" for index in range(MAX_LABELS + 6)]
    store.take(Applied(node("n", labels=dict.fromkeys(keys, ""))))
    assert store.cut == 0, "as long as nothing names them"
    store.take(Applied(on_nodes("many", *keys)))
    assert sent_nodes(store, on_nodes("many", *keys)) == {"n": keys[:MAX_LABELS]}
    assert store.cut == 1, "once for each change"
    assert ["6 labels" in record.getMessage() for record in caplog.records] == [True]


# A pod that has finished, is being deleted, or is released because the selector does not match, does not count as live.
def test_which_pods_live_on_a_node() -> None:
    store, workload = Caches(), daemon_set()
    pods = [
        pod("runs", phase="Running"),
        pod("meant-for-it", spec={"affinity": {"nodeAffinity": REQUIRED}}, phase="Pending"),
        pod("failed", phase="Failed"),
        pod("succeeded", phase="Succeeded"),
        pod("goes", deleting=True),
        pod("n1-by-name", node="n10"),
        pod("orphan", owner=None),
        pod("of-another", owner="u2"),
        pod("elsewhere", namespace="other"),
        pod("relabelled", labels={"app": "bar"}),
        pod("of-another-name", owner_name="bar"),
    ]
    for name in ("n1", "n10", "n2"):
        store.take(Applied(node(name)))
    for one in pods:
        store.take(Applied(one))
    every = ["n1", "n10", "n2", "n3"]

    def counted(of: Workload, nodes: list[str]) -> dict[str, int]:
        return {name: live.number for name, live in store.live_pods(of, nodes).items()}

    assert counted(workload, every) == {"n1": 2, "n10": 1, "n2": 0}
    assert counted(workload, ["n2"]) == {"n2": 0}
    assert counted(daemon_set(name="bar", namespace="none"), every) == {"n1": 0, "n10": 0, "n2": 0}
    store.take(Deleted(pod("runs")))
    store.take(Deleted(node("n10")))
    assert counted(workload, every) == {"n1": 1, "n2": 0}


# In any order of labels and DaemonSets, a bucket has the bytes of the reduced projections.
def test_buckets_are_those_of_the_reduced_projections() -> None:
    chance, store, live = random.Random(3), Caches(), {}
    for _ in range(400):
        if chance.random() < 0.3:
            workload = on_nodes(chance.choice("xyz"), chance.choice("abcd"))
            store.take(Applied(workload) if chance.random() < 0.6 else Deleted(workload))
        name = chance.choice(["n1", "n2", "n3", "n4", "n5"])
        labels = {key: chance.choice("01") for key in chance.sample("abcd", 3)}
        given = node(name, labels=labels, taints=[{"key": "t", "effect": "NoSchedule"}])
        live[name] = v1.Node.FromString(given.projection.SerializeToString())
        store.take(Applied(given))
        asked, known = on_nodes("x", chance.choice("abcd")), chance.random() < 0.5
        rendered = store.node_buckets(asked, lambda _, known=known: known)  # type: ignore[misc]
        keys = store._keys.of_nodes()
        assert asked.label_keys.node_labels <= keys.labels
        for index, bucket in enumerate(rendered):
            members = [v1.Node.FromString(live[name].SerializeToString()) for name in sorted(live)]
            members = [member for member in members if bucket_of(member.name, 4) == index]
            for member in members:
                reduce_labels(member, keys)
            expected = v1.NodeBucket(nodes=members).SerializeToString(deterministic=True)
            assert bucket.digest == hashlib.sha256(expected).digest()


# An orphan that cannot be adopted is not sent until it changes, whether it was selected before or is looked up later.
# The change may be of a field that is not sent.
def test_an_orphan_that_is_sealed_is_left_out() -> None:
    store = Caches()

    def put(version: str) -> list[bool]:
        changes = store.take(Applied(pod("a", owner=None, version=version)))
        return [change.old is not None for change in changes if isinstance(change, PodChange)]

    assert put("11") == [False]
    store.take(Applied(pod("owned")))
    assert shown(store) == {"a", "owned"}
    store.seal(Resource.PODS, "ns", "a")
    store.seal(Resource.PODS, "ns", "owned")
    assert shown(store) == {"owned"}
    assert not sent_pods(store, daemon_set(uid="u2")), "nor where it is looked for later"
    assert put("11") == [], "a list may show it again as it is"
    assert shown(store) == {"owned"}
    assert put("12") == [False], "it is as if it came just now"
    assert shown(store) == {"a", "owned"}
    assert put("13") == [], "it changed in nothing that is sent"
    store.seal(Resource.PODS, "ns", "a")
    store.take(Deleted(pod("a", owner=None, version="14")))
    assert put("15") == [False]
    assert shown(store) == {"a", "owned"}
    # After versions restarted, a version says nothing about earlier objects.
    store.seal(Resource.PODS, "ns", "a")
    store.restart_versions()
    store.take(listed(Resource.PODS, pod("a", owner=None, version="15"), pod("owned")))
    assert shown(store) == {"a", "owned"}


# A sealed orphaned revision that changes queues the DaemonSets that select it.
def test_a_sealed_orphan_comes_anew_when_it_has_changed() -> None:
    store = Caches()

    def is_known(version: str) -> bool:
        (change,) = store.take(Applied(revision("r", owner=None, version=version)))
        return change.old is not None

    assert [is_known("1"), is_known("2")] == [False, True]
    store.seal(Resource.REVISIONS, "ns", "r")
    assert [is_known("3"), is_known("4")] == [False, True]
