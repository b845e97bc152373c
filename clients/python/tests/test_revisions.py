"""Tests revisions that are cached only partly, and read live when they have to be sent."""

import json
import logging
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import plan_check, snapshot, v1
from nodewise.execute import MAX_READS, Executor, Failed, Settled
from nodewise.kinds import Resource
from nodewise.live import LiveObjects
from nodewise.log_limit import LogLimit
from nodewise.objects import MAX_LABELS_KEPT, Revision
from nodewise.receiver import Receiver
from nodewise.revisions import MAX_BYTES
from nodewise.state import State
from nodewise.store import Applied, Deleted, RevisionChange, RevisionPage, Store, Transition

from .fakes import OWNER, FakeActuator, FakeService, action, adopt, batch, phase, plan, refused
from .objects import KEY, daemon_set, filled, listed, owners, revision

MEBIBYTE = 1 << 20


def quietly(_: Transition) -> None:
    """Ignores a change."""


def with_workload() -> Store:
    store = Store(1)
    store.apply(Applied(daemon_set()), quietly)
    return store


def kept_bytes(store: Store) -> int:
    kept = [*(namespace.revisions for namespace in store._namespaces.values()), *store._pages.values()]
    sizes = [revision.kept_bytes for revisions in kept for revision in revisions.by_name.values()]
    assert sum(sizes) == sum(revisions._bytes for revisions in kept)
    return sum(sizes)


def show(store: Store, *revisions: Revision, in_pages: bool = False) -> None:
    """Applies revisions in pages and a list, or one by one."""
    for index, one in enumerate(revisions):
        store.apply(RevisionPage([one], index == 0) if in_pages else Applied(one), quietly)
        assert kept_bytes(store) <= MAX_BYTES, "also while a list is not complete"
    if in_pages:
        store.apply(listed(Resource.REVISIONS), quietly)


def many_labels(**more: str) -> dict[str, str]:
    return {**{f"label-{number}": "x" for number in range(MAX_LABELS_KEPT)}, **more}


@pytest.mark.parametrize("in_pages", [False, True])
@pytest.mark.parametrize(
    ("app", "owner", "is_whole"),
    [("foo", None, True), ("bar", None, False), ("bar", "u1", True), ("foo", "u2", False)],
)
def test_the_object_is_kept_of_what_a_daemon_set_needs(
    app: str, owner: str | None, is_whole: bool, in_pages: bool
) -> None:
    store, given = with_workload(), revision(owner=owner, labels={"app": app}, size=1000)
    show(store, given, in_pages=in_pages)
    assert store.count(Resource.REVISIONS) == 1
    assert kept_bytes(store) == (1000 if is_whole else 0)
    kept = store.revision("ns", "r")
    assert kept is not None
    assert (kept.size, kept.labels, kept.controller) == (given.size, given.labels, given.controller)


# Pages of an incomplete list are void.
def test_a_list_that_was_given_up_leaves_nothing() -> None:
    store = with_workload()
    store.apply(RevisionPage([revision("a", size=1000)], True), quietly)
    store.apply(RevisionPage([revision("foreign", kind="StatefulSet"), revision("b", size=1000)], True), quietly)
    assert store.revisions(daemon_set()) == [], "nobody is shown half a list"
    changes: list[Transition] = []
    store.apply(listed(Resource.REVISIONS), changes.append)
    assert [change.new.name for change in changes if isinstance(change, RevisionChange) and change.new] == ["b"]
    assert [kept.name for kept in store.revisions(daemon_set())] == ["b"]
    assert kept_bytes(store) == 1000
    store.apply(RevisionPage([revision("c")], True), quietly)
    store.apply(listed(Resource.REVISIONS), quietly)
    assert [kept.name for kept in store.revisions(daemon_set())] == ["c"], "what a list does not have is gone"


def test_what_is_needed_no_more_is_dropped() -> None:
    store = with_workload()
    show(store, revision(owner=None, size=1000))
    assert kept_bytes(store) == 1000
    show(store, revision(owner=None, version="2", labels={"app": "bar"}, size=1000))
    assert kept_bytes(store) == 0
    show(store, revision(owner=None, version="3", size=1000))
    store.apply(Deleted(revision(owner=None)), quietly)
    assert (store.count(Resource.REVISIONS), kept_bytes(store)) == (0, 0)


# With any number of large matching revisions, the cache keeps no more than is sent: the newest ones, in any order of
# arrival.
@pytest.mark.parametrize("in_pages", [False, True])
def test_no_more_is_kept_than_is_sent(in_pages: bool) -> None:
    store, made = with_workload(), [revision(f"r{n:02}", owner=None, number=n, size=MEBIBYTE) for n in range(40)]
    show(store, *made, in_pages=in_pages)
    assert kept_bytes(store) == MAX_BYTES
    unread = snapshot.unread(store, daemon_set(), [])
    assert [one.name for one in unread] == [f"r{n}" for n in range(24, 40)]
    for one in made[24:]:
        store.keep_whole(one)
    assert snapshot.unread(store, daemon_set(), []) == []
    assert kept_bytes(store) == MAX_BYTES
    taken = snapshot.take(store, daemon_set(), v1.ReconcileState(), LiveObjects(), now=Timestamp(), receiver=Receiver())
    assert ([len(sent.object) for sent in taken.snapshot.revisions], taken.left_out) == ([MEBIBYTE] * 16, 24)


# A revision that was read live replaces the cached one only if the version is the same.
def test_another_version_is_not_kept() -> None:
    store = Store(1)
    show(store, revision("r", owner=None))
    store.apply(Applied(daemon_set()), quietly)
    for other in (revision("r", "2", owner=None), revision("s", owner=None)):
        store.keep_whole(other)
        assert len(snapshot.unread(store, daemon_set(), [])) == 1
    store.keep_whole(revision("r", owner=None))
    assert snapshot.unread(store, daemon_set(), []) == []


# A megabyte of labels, or of an owner's name, is not cached for each revision.
def test_of_very_many_labels_those_are_kept_that_a_selector_names() -> None:
    store = with_workload()
    given = revision(owner=None, labels=many_labels(app="bar", tier="x", **{"controller-revision-hash": "h"}))
    show(store, given)
    kept = store.revision("ns", "r")
    assert kept is not None
    assert (kept.labels, kept.object) == ({"app": "bar", "controller-revision-hash": "h"}, None)
    assert snapshot.unread(store, daemon_set(), []) == []
    few = revision("few", owner=None, labels={f"label-{number}": "x" for number in range(MAX_LABELS_KEPT)})
    show(store, few)
    assert store.revision("ns", "few") == few.without_object()
    long = Revision.read(
        {"metadata": {"namespace": "ns", "name": "long", "ownerReferences": owners("u" * 1000, name="n" * 1000)}}
    )
    show(store, long)
    kept = store.revision("ns", "long")
    assert kept is not None
    assert kept.controller == ("DaemonSet", "n" * 254, "u" * 254)


# A DaemonSet that selects by a label that was not cached causes a read. The revision is cached only if it is selected.
@pytest.mark.parametrize(("tier", "is_selected"), [("x", True), ("y", False)])
def test_labels_that_were_not_kept_are_read(tier: str, is_selected: bool) -> None:
    store, given = with_workload(), revision(owner=None, labels=many_labels(app="foo", tier=tier), size=100_000)
    show(store, given)
    assert kept_bytes(store) == 100_000
    other = daemon_set("u2", name="bar", selector={"matchLabels": {"tier": "x"}})
    show(store, revision(owner=None, version="2", labels=many_labels(app="bar", tier=tier), size=100_000))
    store.apply(Applied(other), quietly)
    assert [one.name for one in snapshot.unread(store, other, [])] == ["r"]
    store.keep_whole(revision(owner=None, version="2", labels=many_labels(app="bar", tier=tier), size=100_000))
    assert snapshot.unread(store, other, []) == []
    assert [one.name for one in store.revisions(other)] == (["r"] if is_selected else [])
    assert kept_bytes(store) == (100_000 if is_selected else 0)


class Rig:
    """An executor whose DaemonSet is created after this number of orphans that it selects."""

    def __init__(self, count: int) -> None:
        self.state = filled(State(1, v1.PlanOptions()), Deleted(daemon_set()))
        self.orphans = [revision(f"r{number:02}", owner=None, number=number) for number in range(count)]
        for orphan in self.orphans:
            self.state.apply_event(Applied(orphan))
        self.state.apply_event(Applied(daemon_set()))
        self.actuator, self.service = FakeActuator(), FakeService([plan(verdict=v1.VERDICT_NOOP)] * 2)
        self.executor = Executor(self.state, self.actuator, self.service, v1.PlanOptions())

    def sent(self) -> list[str]:
        revisions = self.service.requests[-1].snapshot.revisions
        return [json.loads(revision.object)["metadata"]["name"] for revision in revisions]


async def test_what_is_not_kept_is_read_before_a_plan_is_asked_for() -> None:
    rig = Rig(MAX_READS)
    for orphan in rig.orphans:
        rig.actuator.script("read", orphan.name, orphan.object)
    for _ in range(2):
        assert await rig.executor.reconcile(KEY) == Settled()
        assert rig.sent() == [orphan.name for orphan in rig.orphans]
    assert len(rig.actuator.calls) == MAX_READS, "once"


async def test_many_are_read_by_one_list() -> None:
    rig = Rig(MAX_READS + 1)
    rig.actuator.script("read_all", "ns", [*(one.object for one in rig.orphans), b"{", revision("more").object])
    assert await rig.executor.reconcile(KEY) == Settled()
    assert rig.sent() == [orphan.name for orphan in rig.orphans]
    assert rig.actuator.calls == [("read_all", "ns")]


# The plan would differ without these revisions.
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (revision("r00", "2", owner=None).object, "ControllerRevision r00 has changed since it was read"),
        (refused(404, message="gone"), "reading revisions of ns: gone"),
        (b"{", "ControllerRevision r00 has changed since it was read"),
    ],
    ids=["changed", "gone", "odd"],
)
async def test_nothing_is_done_without_what_cannot_be_read(answer: Any, reason: str) -> None:
    rig = Rig(1)
    rig.service.plans = [plan(phase(v1.PHASE_KIND_CLAIMS, batch(adopt("p"))))]
    rig.actuator.script("read", "r00", answer)
    ending = await rig.executor.reconcile(KEY)
    assert isinstance(ending, Failed)
    assert ending.reason == reason
    assert rig.actuator.calls == [("read", "r00")]


async def test_that_revisions_are_left_out_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    large = [revision(name, number=number, size=9 * MEBIBYTE) for number, name in enumerate("abc")]
    state, service = filled(State(1, v1.PlanOptions()), *map(Applied, large)), FakeService([])
    actuator = FakeActuator()
    actuator.script("read", "c", large[2].object)
    executor = Executor(state, actuator, service, v1.PlanOptions())
    executor._plans._too_many_revisions = LogLimit(lambda: now)
    service.plans = [plan(verdict=v1.VERDICT_NOOP) for _ in range(4)]
    for later, times in ((0.0, 1), (1.0, 0), (58.0, 0), (1.0, 1)):
        now += later
        with caplog.at_level(logging.WARNING):
            assert await executor.reconcile(KEY) == Settled()
        said = [record.getMessage() for record in caplog.records if "revisions take more" in record.getMessage()]
        assert (
            said
            == ["ns/foo: the revisions take more than 16777216 bytes together; 2 that rank last are not sent"] * times
        )
        caplog.clear()


def test_two_daemon_sets_keep_what_each_is_sent() -> None:
    store = with_workload()
    store.apply(Applied(daemon_set("u2", name="bar")), quietly)
    for owner in ("u1", "u2"):
        for number in range(2):
            store.apply(Applied(revision(f"{owner}-{number}", owner=owner, size=8 * MEBIBYTE)), quietly)
    assert kept_bytes(store) == 2 * MAX_BYTES
    for workload in (daemon_set(), daemon_set("u2", name="bar")):
        assert snapshot.unread(store, workload, []) == []


# What the caches cannot tell is read before the plan is checked.
def test_a_revision_of_which_too_few_labels_are_kept_is_read_to_check_a_plan() -> None:
    store, workload = Store(1), daemon_set()
    metadata = {"namespace": "ns", "name": "r", "uid": "r-uid", "labels": many_labels(app="foo")}
    show(store, Revision.read({"metadata": metadata}))
    patch = json.dumps({"metadata": {"ownerReferences": [OWNER], "uid": "r-uid"}}).encode()
    reference = v1.ObjectReference(name="r", uid="r-uid")
    adopting = plan(
        phase(v1.PHASE_KIND_CLAIMS, batch(action(adopt_revision=v1.AdoptRevision(revision=reference, patch=patch))))
    )
    (unseen,) = plan_check.check(adopting, plan_check.Asked(workload), store).unseen
    assert unseen.reference.name == "r"
