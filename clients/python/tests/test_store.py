"""The caches, and the bytes that they send."""

import hashlib
import random
from typing import Any

import pytest

from nodewise import v1
from nodewise.buckets import Buckets, Parts, bucket_of, render
from nodewise.kinds import Resource
from nodewise.objects import Pod
from nodewise.store import Applied, Deleted, Listed, PodChange, Store, Transition

from .objects import KEY, daemon_set, listed, node, pod, revision


def projection(name: str, version: int, shared: str) -> v1.Pod:
    labels = [v1.Label(key="revision", value=shared)] if shared else []
    return v1.Pod(name=name, uid=f"{name}-{version}", labels=labels, node_name=f"node-{name}")


# However it came to be, a bucket is what the same members give from scratch.
def test_remembered_digests_are_those_of_the_bytes() -> None:
    chance, parts = random.Random(7), Parts()
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
        rendered = render(*sets, 2, lambda _, known=known: known)  # type: ignore[misc]
        for bucket, expected in zip(rendered, render(*fresh, 2, lambda _: False), strict=True):
            assert bucket.digest == expected.digest == hashlib.sha256(expected.data).digest()
            assert bucket.HasField("data") is not known
            read = v1.PodBucket.FromString(expected.data)
            assert all(0 <= pod.shared_metadata <= len(read.shared_metadata) for pod in read.pods)
    assert [len(kept) for kept in sets] == [len(kept) for kept in members]


# A workload of which nothing changed costs a look at each digest.
def test_what_did_not_change_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, owned = Parts(), Buckets(4)
    for name in "abcdefgh":
        owned.put(parts.store_pod(projection(name, 1, "x"), "1", 4))
    known = {bucket.digest for bucket in render(owned, None, 4, lambda _: False)}
    hashed = 0
    real = hashlib.sha256

    def counting(*of: Any) -> Any:
        nonlocal hashed
        hashed += 1
        return real(*of)

    monkeypatch.setattr(hashlib, "sha256", counting)
    render(owned, None, 4, known.__contains__)
    owned.put(parts.store_pod(projection("a", 1, "x"), "2", 4))
    render(owned, None, 4, known.__contains__)
    assert hashed == 0, "nor for a new version of the same"
    owned.put(parts.store_pod(projection("a", 2, "x"), "3", 4))
    assert sum(bucket.HasField("data") for bucket in render(owned, None, 4, known.__contains__)) == 1
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
    """The pods that a snapshot of the workload has."""
    return {stored.name for buckets in store.pods("ns", "u1") for stored in buckets or ()}


# D-3: the workload's own and the orphans of its namespace; never what belongs to others.
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
    assert store.sighted("ns", "u1").exists("p")
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
    assert [kept.name for kept in store.revisions("ns", "u1")] == ["r-mine"]


def test_synced_after_every_first_list() -> None:
    store = Caches()
    for resource in Resource:
        assert resource in store.unsynced()
        store.take(Listed(resource, [], "1"))
    assert store.unsynced() == []
    assert store.daemon_set(KEY) is None


def test_the_projection_is_what_it_was_made_of() -> None:
    store = Caches()
    given: Pod = pod("é", "7", ready=True, labels={"a": "b"})
    store.take(Applied(given))
    (stored,) = [stored for buckets in store.pods("ns", "u1") for stored in buckets or ()]
    assert (stored.name, stored.version, stored.owner) == ("é", "7", "u1")
    assert stored.pod() == given.projection
