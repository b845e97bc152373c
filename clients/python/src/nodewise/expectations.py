"""What the service told the executor to hold for each workload: creates and deletes that no watch has shown yet,
failed-pod back-off, pod name collisions and how far the slow start has come. Besides these it keeps the names of pods
that are gone, which no new pod gets for now.

The service decides what an outstanding expectation means; this only shrinks expectations as watches show what was
expected. Everything lives in memory and starts empty (M-15).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from . import times, v1
from .actions import actions_of
from .kinds import Key
from .pod_names import UsedPodNames


class Sighted(Protocol):
    """How the pods of a workload look now, for expectations that are met already when they are set."""

    def exists(self, pod_name: str) -> bool:
        """Whether the caches show a pod of this name that the workload controls."""

    def deleting(self) -> dict[str, bool]:
        """By uid whether it is being deleted, for each pod of the workload and each orphan of its namespace."""


@dataclass(slots=True)
class Expectations:
    """Creates and deletes of one plan that have not been observed."""

    set_at: Timestamp | None = None
    named: dict[str, str] = field(default_factory=dict)
    """Node names by pod name."""
    unnamed: Counter[str] = field(default_factory=Counter)
    """How many pods whose names the apiserver chooses, by node name."""
    deletes: set[str] = field(default_factory=set)
    """Uids of pods."""

    @classmethod
    def of(cls, state: v1.ReconcileState) -> "Expectations":
        """Those of a state on the wire."""
        wire = state.expectations
        return cls(
            set_at=wire.set_at if wire.HasField("set_at") else None,
            named={create.pod_name: create.node_name for create in wire.creates if create.pod_name},
            unnamed=Counter(create.node_name for create in wire.creates if not create.pod_name),
            deletes=set(wire.delete_uids),
        )

    def wire(self) -> v1.Expectations | None:
        """As they are sent. A plan that expects nothing sets no time, and expectations without one are refused."""
        if self.set_at is None:
            return None
        named = [v1.ExpectedCreate(pod_name=pod, node_name=node) for pod, node in sorted(self.named.items())]
        unnamed = [v1.ExpectedCreate(node_name=node) for node in sorted(self.unnamed.elements())]
        return v1.Expectations(set_at=self.set_at, creates=named + unnamed, delete_uids=sorted(self.deletes))

    def observe_create(self, pod_name: str, node_name: str) -> None:
        """A watch showed this new pod for this node (D-73)."""
        if self.named.pop(pod_name, None) is None:
            self.lower(node_name, 1)

    def observe_deletion(self, pod_name: str, pod_uid: str, *, counted: bool) -> None:
        """A watch showed that this pod is gone or being deleted (D-73). Nobody needs to await its creation any more."""
        self.named.pop(pod_name, None)
        if pod_uid in self.deletes:
            self.deletes.remove(pod_uid)
        elif counted and self.deletes:
            self.deletes.remove(min(self.deletes))

    def retain(self, other: "Expectations") -> None:
        """Removes what `other` does not have. Never adds."""
        self.named = {pod: node for pod, node in self.named.items() if pod in other.named}
        self.deletes &= other.deletes
        self.unnamed &= other.unnamed

    def settle(self, sent: "Expectations", held: "Expectations") -> None:
        """Removes what `sent` had and `held` has no more: it was observed while the plan was under way."""
        for pod in sent.named.keys() - held.named.keys():
            self.named.pop(pod, None)
        self.deletes -= sent.deletes - held.deletes
        for node, count in (sent.unnamed - held.unnamed).items():
            self.lower(node, count)

    def lower(self, node_name: str, by: int) -> None:
        """So many pods whose names the apiserver chooses are expected no more on this node."""
        self.unnamed[node_name] -= by
        self.unnamed = +self.unnamed


def leave_out_foreign(held: v1.ReconcileState, plan: v1.Plan, sent: v1.ReconcileState) -> None:
    """Leaves out of what a plan lets the executor expect whatever neither the plan does nor was expected before: nobody
    would ever see it.
    """
    if not held.HasField("expectations"):
        return
    creates = Counter(map(_create, sent.expectations.creates))
    deletes = set(sent.expectations.delete_uids)
    for action in actions_of(plan):
        match action.WhichOneof("kind"):
            case "create_pod":
                creates[_create(action.create_pod)] += 1
            case "delete_pod":
                deletes.add(action.delete_pod.pod.uid)
    kept = Counter(map(_create, held.expectations.creates)) & creates
    expected = v1.Expectations(
        creates=[v1.ExpectedCreate(pod_name=pod, node_name=node) for pod, node in kept.elements()],
        delete_uids=[uid for uid in held.expectations.delete_uids if uid in deletes],
    )
    if held.expectations.HasField("set_at"):
        expected.set_at.CopyFrom(held.expectations.set_at)
    held.expectations.CopyFrom(expected)


def _create(create: v1.CreatePod | v1.ExpectedCreate) -> tuple[str, str]:
    return create.pod_name, create.node_name


@dataclass(slots=True)
class _Held:
    uid: str
    expectations: Expectations
    rest: v1.ReconcileState
    """What is replaced as a whole: back-off, collisions, slow start."""


_LIFETIME = 300
"""How long a plan waits for what is expected, in seconds."""


class Holdings:
    """What is held for every workload.

    Deletions are observed by uid, or, as upstream does, any deletion of a pod of the workload counts, and each of its
    events again (without the deviation DELETIONS_BY_UID, Q-5).
    """

    def __init__(self, *, count_deletions: bool = False) -> None:
        self._used_names = UsedPodNames()
        self._held: dict[Key, _Held] = {}
        self._counted = count_deletions

    def get(self, key: Key, uid: str) -> v1.ReconcileState:
        """What to send with the next snapshot of a workload. What was held for another uid of its name is dropped: a
        re-created workload starts afresh.
        """
        held = self._of(key, uid)
        state = v1.ReconcileState(used_pod_names=self._used_names.wire(key, uid))
        if held is None:
            self._held.pop(key, None)
            return state
        state.MergeFrom(held.rest)
        expectations = held.expectations.wire()
        if expectations is not None:
            state.expectations.CopyFrom(expectations)
        return state

    def replace(
        self, key: Key, uid: str, planned: v1.ReconcileState, sent: v1.ReconcileState, sighted: Sighted
    ) -> None:
        """Holds what a plan says, from before its first write on.

        Watches went on while the plan was under way: what was `sent` and is not held any more was observed meanwhile,
        and what the caches show already has not to be waited for. Of the used names of pods the plan drops those that
        were sent and that it leaves out.
        """
        expectations, before = Expectations.of(planned), Expectations.of(sent)
        held = self._of(key, uid)
        expectations.settle(before, held.expectations if held else Expectations())
        expectations.named = {pod: node for pod, node in expectations.named.items() if not sighted.exists(pod)}
        # What was awaited before ends with its own event.
        new = expectations.deletes - before.deletes
        if new:
            deleting = sighted.deleting()
            # Upstream waits for an event even if the pod was being deleted before.
            awaited = {pod for pod in new if pod in deleting and (self._counted or not deleting[pod])}
            expectations.deletes = (expectations.deletes - new) | awaited
        self._held[key] = _Held(uid, expectations, _rest(planned))
        self._used_names.drop(key, uid, sent.used_pod_names, planned.used_pod_names)

    def restore_backoffs(self, key: Key, uid: str, sent: v1.ReconcileState) -> None:
        """Takes back the back-off that a plan brought along, since the plan ended before it came to failed pods."""
        held = self._of(key, uid)
        if held is not None:
            del held.rest.failed_pod_backoffs[:]
            held.rest.failed_pod_backoffs.extend(sent.failed_pod_backoffs)

    def settle(self, key: Key, uid: str, settled: v1.ReconcileState) -> None:
        """Takes over the answer to a report: expectations that are missing there are settled, none is added. Used names
        of pods stay as they are.
        """
        held = self._of(key, uid)
        if held is not None:
            held.expectations.retain(Expectations.of(settled))
            held.rest = _rest(settled)

    def observe_create(self, key: Key, pod_name: str, node_name: str) -> None:
        """A watch showed a new pod of the workload."""
        if key in self._held:
            self._held[key].expectations.observe_create(pod_name, node_name)
        self._used_names.replaced(key, node_name)

    def retire_name(self, key: Key, uid: str, node_name: str, pod_name: str) -> None:
        """A pod of the workload of this uid is gone from the caches: no new pod gets its name before another pod of the
        workload is seen on its node.
        """
        self._used_names.retire(key, uid, node_name, pod_name)

    def observe_deletion(self, key: Key, pod_name: str, pod_uid: str) -> None:
        """A watch showed that a pod of the workload is gone or being deleted."""
        if key in self._held:
            self._held[key].expectations.observe_deletion(pod_name, pod_uid, counted=self._counted)

    def lower(self, key: Key, uid: str, outcomes: Iterable[v1.Outcome]) -> None:
        """Takes out what is expected of actions that were certainly not done. What the apiserver did not answer may be
        done all the same.
        """
        held = self._of(key, uid)
        if held is None:
            return
        for outcome in filter(_is_undone, outcomes):
            match outcome.WhichOneof("subject"):
                case "created_pod":
                    create = outcome.created_pod
                    if create.pod_name:
                        held.expectations.named.pop(create.pod_name, None)
                    else:
                        held.expectations.lower(create.node_name, 1)
                case "deleted_pod_uid":
                    held.expectations.deletes.discard(outcome.deleted_pod_uid)

    def drop_planned(self, key: Key, uid: str, now: Timestamp) -> bool:
        """Drops what plans have left to remember of a workload, and answers whether there was anything. Used names of
        pods stay, and what was written and is not seen yet, as of `now` if it says no moment before: that is the
        executor's own knowledge. What is older than any plan waits for is dropped, too.
        """
        held = self._of(key, uid)
        if held is None:
            return False
        set_at = held.expectations.set_at
        is_old = set_at is not None and now.seconds - set_at.seconds > _LIFETIME
        is_odd = set_at is not None and not times.is_before(set_at, now)
        if is_old:
            held.expectations = Expectations()
        elif is_odd:
            held.expectations.set_at = now
        dropped = is_old or is_odd or held.rest != v1.ReconcileState()
        held.rest = v1.ReconcileState()
        return dropped

    def forget(self, key: Key) -> None:
        """Drops what is held for a workload."""
        self._held.pop(key, None)
        self._used_names.forget(key)

    def outstanding(self, key: Key) -> tuple[int, int]:
        """Creates and deletes outstanding for a workload."""
        held = self._held.get(key)
        if held is None:
            return 0, 0
        expectations = held.expectations
        return len(expectations.named) + expectations.unnamed.total(), len(expectations.deletes)

    def _of(self, key: Key, uid: str) -> _Held | None:
        held = self._held.get(key)
        return held if held is not None and held.uid == uid else None


def _is_undone(outcome: v1.Outcome) -> bool:
    """Whether an action was left out, not tried, or refused by the apiserver."""
    match outcome.result:
        case v1.RESULT_SKIPPED | v1.RESULT_NAME_TAKEN:
            return True
        case v1.RESULT_FAILED:
            return 400 <= outcome.http_status < 500
        case _:
            return False


def _rest(state: v1.ReconcileState) -> v1.ReconcileState:
    rest = v1.ReconcileState()
    rest.CopyFrom(state)
    rest.ClearField("expectations")
    rest.ClearField("used_pod_names")
    return rest
