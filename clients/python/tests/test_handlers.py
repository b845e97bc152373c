"""Tests the reactions to changes of the caches, one row for each."""

import pytest

from nodewise.handlers import (
    Forget,
    ObserveCreate,
    ObserveDeletion,
    Reaction,
    RetireName,
    Rules,
    Urgency,
    Wake,
    WakeAll,
    react,
)
from nodewise.kinds import Key, Resource
from nodewise.overlaps import Overlaps
from nodewise.store import (
    Applied,
    NodeChange,
    PodChange,
    RevisionChange,
    Store,
    Transition,
    WorkloadChange,
)

from .objects import KEY, daemon_set, listed, node, pod, revision

BAR = Key("ns", "bar")
URGENT = Urgency.URGENT


def pods(old: object, new: object) -> Transition:
    return PodChange("ns", *(None if of is None else of.projection for of in (old, new)))  # type: ignore[attr-defined]


def observed(name: str = "p", uid: str = "p-uid") -> list[Reaction]:
    return [ObserveDeletion(KEY, name, uid), Wake(KEY)]


def gone(uid: str = "p-uid", node: str = "n1") -> list[Reaction]:
    return [*observed(uid=uid), RetireName(KEY, "u1", "p", node)]


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        # DaemonSets.
        (WorkloadChange(None, daemon_set()), [Wake(KEY, URGENT)]),
        (WorkloadChange(daemon_set(), daemon_set(version="2")), [Wake(KEY)]),
        (WorkloadChange(daemon_set(), None), [Forget(KEY, "u1"), Wake(KEY)]),
        (WorkloadChange(daemon_set("u0"), daemon_set()), [Forget(KEY, "u0"), Wake(KEY, URGENT)]),
        # New pods.
        (pods(None, pod()), [ObserveCreate(KEY, "p", "n1"), Wake(KEY)]),
        (pods(None, pod(deleting=True)), observed()),
        (pods(None, pod(owner="u9")), []),
        (pods(None, pod(kind="ReplicaSet")), []),
        (pods(None, pod(owner=None)), [Wake(KEY)]),
        (pods(None, pod(owner=None, labels={"app": "bar"})), [Wake(BAR)]),
        (pods(None, pod(owner=None, labels={})), []),
        # Changed pods.
        (pods(pod(), pod()), []),
        (pods(pod(), pod(ready=True)), [Wake(KEY), Wake(KEY, after=11)]),
        (pods(pod(ready=True), pod()), [Wake(KEY)]),
        (pods(pod(), pod(deleting=True)), observed()),
        (pods(pod(), pod(owner=None)), [Wake(KEY), Wake(KEY)]),
        (pods(pod(owner=None), pod()), [Wake(KEY)]),
        (pods(pod(owner=None), pod(owner=None, labels={"app": "bar"})), [Wake(BAR)]),
        (pods(pod(owner=None), pod(owner=None, ready=True)), []),
        (pods(pod(uid="old"), pod()), [*gone("old"), ObserveCreate(KEY, "p", "n1"), Wake(KEY)]),
        # Deleted pods.
        (pods(pod(), None), gone()),
        (pods(pod(deleting=True), None), gone()),
        (pods(pod(node="n2"), None), gone(node="n2")),
        (pods(pod(owner="u9"), None), []),
        (pods(pod(owner=None), None), []),
        # Nodes.
        (NodeChange(None, node().projection), [WakeAll(URGENT)]),
        (NodeChange(node().projection, node(labels={"a": "b"}).projection), [WakeAll(URGENT)]),
        (NodeChange(node().projection, node(taints=[{"key": "k"}]).projection), [WakeAll(URGENT)]),
        (NodeChange(node().projection, node().projection), []),
        (NodeChange(node().projection, None), [WakeAll(Urgency.NORMAL)]),
        # Revisions.
        (RevisionChange(None, revision()), []),
        (RevisionChange(None, revision(deleting=True)), [Wake(KEY)]),
        (RevisionChange(None, revision(owner=None)), [Wake(KEY)]),
        (RevisionChange(revision(), revision(version="2")), [Wake(KEY)]),
        (RevisionChange(revision(), revision(owner=None)), [Wake(KEY), Wake(KEY)]),
        (RevisionChange(revision(owner=None), revision(owner=None, labels={"app": "bar"})), [Wake(BAR)]),
        (RevisionChange(revision(owner=None), revision(owner=None, version="2")), []),
        (RevisionChange(revision(owner="u9"), revision(owner="u9", version="2")), []),
        (RevisionChange(revision(), None), [Wake(KEY)]),
        (RevisionChange(revision(owner=None), None), []),
    ],
)
def test_who_is_woken(transition: Transition, expected: list[Reaction]) -> None:
    assert react(store(), transition, Rules()) == expected


def store() -> Store:
    store = Store(1)
    two = [daemon_set(minReadySeconds=10), daemon_set("u2", name="bar")]
    store.apply(listed(Resource.DAEMON_SETS, *two), lambda _: None)
    return store


def test_rules_follow_the_profile() -> None:
    strict = Rules(clear_replaced_own_writes=False, wake_on_node_delete=False, count_repeated_deletions=True)
    going = pod(deleting=True)
    for transition, expected in (
        (WorkloadChange(daemon_set("u0"), daemon_set()), [Forget(KEY, "u1"), Wake(KEY, URGENT)]),
        (NodeChange(node().projection, None), []),
        (pods(going, going), observed()),
    ):
        assert react(store(), transition, strict) == expected


def test_overlapping_selectors_wake_all_that_match(caplog: pytest.LogCaptureFixture) -> None:
    several = store()
    third = daemon_set("u3", name="baz", selector={"matchLabels": {"app": "foo"}})
    several.apply(Applied(third), lambda _: None)
    assert react(several, pods(None, pod(owner=None)), Rules()) == [Wake(Key("ns", "baz")), Wake(KEY)]
    assert "overlap: baz, foo" in caplog.text


# Anyone who may label pods can make labels match and not match many times a second.
def test_overlapping_selectors_are_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    when = {100: "ab", 130: "ab", 131: "abc", 159: "ab", 160: "ab", 190: "abc", 191: "abc"}
    times, told = iter(when), []
    overlaps = Overlaps(lambda: next(times))
    for names in when.values():
        overlaps.log([Key("ns", name) for name in names])
        told.append(len(caplog.records))
    assert told == [1, 1, 2, 2, 3, 3, 4]
