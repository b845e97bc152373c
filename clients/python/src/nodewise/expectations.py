"""The reconcile state of each workload, which the service returns and the executor sends with the next request:
expectations (creates and deletes that no watch has shown yet), back-off of failed pods, pod name collisions and slow
start. It also has the names of pods that are gone, which no new pod gets for now, and the evictions that a
PodDisruptionBudget did not allow.

The service decides what an unmet expectation means. This module only removes expectations that a watch shows to be met.
All state is in memory and starts empty.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from . import times, v1
from .actions import actions_of, removed_pod
from .actuator import Blocked
from .blocked import BlockedEvictions
from .kinds import KINDS, Key
from .pod_names import UsedPodNames


class PodView(Protocol):
    """The current pods of a workload, for expectations that are already met when they are set."""

    def exists(self, pod_name: str) -> bool:
        """Whether the caches have a pod of this name that the workload controls."""

    def deleting(self) -> dict[str, bool]:
        """Whether each pod of the workload and each orphan of its namespace is being deleted, by uid."""


@dataclass(slots=True)
class Expectations:
    """Creates and deletes that have not been observed."""

    set_at: Timestamp | None = None
    named: dict[str, str] = field(default_factory=dict)
    """Node names by pod name."""
    unnamed: Counter[str] = field(default_factory=Counter)
    """The number of pods whose names the apiserver chooses, by node name."""
    deletes: set[str] = field(default_factory=set)
    """Uids of pods."""

    @classmethod
    def of(cls, state: v1.ReconcileState) -> "Expectations":
        """The expectations of a state message."""
        wire = state.expectations
        return cls(
            set_at=wire.set_at if wire.HasField("set_at") else None,
            named={create.pod_name: create.node_name for create in wire.creates if create.pod_name},
            unnamed=Counter(create.node_name for create in wire.creates if not create.pod_name),
            deletes=set(wire.delete_uids),
        )

    def wire(self) -> v1.Expectations | None:
        """The message to send. A plan without expectations sets no time, and the service refuses expectations without
        one.
        """
        if self.set_at is None:
            return None
        named = [v1.ExpectedCreate(pod_name=pod, node_name=node) for pod, node in sorted(self.named.items())]
        unnamed = [v1.ExpectedCreate(node_name=node) for node in sorted(self.unnamed.elements())]
        return v1.Expectations(set_at=self.set_at, creates=named + unnamed, delete_uids=sorted(self.deletes))

    def observe_create(self, pod_name: str, node_name: str) -> None:
        """A watch showed this new pod on this node (D-73)."""
        if self.named.pop(pod_name, None) is None:
            self.lower(node_name, 1)

    def observe_deletion(self, pod_name: str, pod_uid: str, *, counted: bool) -> None:
        """A watch showed that this pod is gone or being deleted (D-73). Its create need not be awaited any more."""
        self.named.pop(pod_name, None)
        if pod_uid in self.deletes:
            self.deletes.remove(pod_uid)
        elif counted and self.deletes:
            self.deletes.remove(min(self.deletes))

    def retain(self, other: "Expectations") -> None:
        """Removes expectations that `other` does not have. Never adds any."""
        self.named = {pod: node for pod, node in self.named.items() if pod in other.named}
        self.deletes &= other.deletes
        self.unnamed &= other.unnamed

    def settle(self, sent: "Expectations", held: "Expectations") -> None:
        """Removes expectations that `sent` had and `held` does not have any more: a watch met them while the plan was
        requested.
        """
        for pod in sent.named.keys() - held.named.keys():
            self.named.pop(pod, None)
        self.deletes -= sent.deletes - held.deletes
        for node, count in (sent.unnamed - held.unnamed).items():
            self.lower(node, count)

    def lower(self, node_name: str, by: int) -> None:
        """Removes `by` expected pods with a name chosen by the apiserver from this node."""
        self.unnamed[node_name] -= by
        self.unnamed = +self.unnamed


def leave_out_foreign(held: v1.ReconcileState, plan: v1.Plan, sent: v1.ReconcileState) -> None:
    """Removes expectations that neither belong to an action of the plan nor were expected before: they would never be
    met.
    """
    if not held.HasField("expectations"):
        return
    creates = Counter(map(_create, sent.expectations.creates))
    deletes = set(sent.expectations.delete_uids)
    for action in actions_of(plan):
        removed = removed_pod(action)
        if removed is not None:
            deletes.add(removed.uid)
        if action.HasField("create_pod"):
            creates[_create(action.create_pod)] += 1
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
    """The fields that a plan or report replaces as a whole: back-off, collisions, slow start."""
    blocked: BlockedEvictions


_LIFETIME = 300
"""The lifetime of expectations, in seconds."""


class ReconcileStates:
    """The reconcile state of every workload.

    Deletions are observed by uid. With `count_deletions`, as upstream does for DaemonSets, each event of any deleted
    pod of the workload counts (without the deviation DELETIONS_BY_UID, Q-5).
    """

    def __init__(self, *, count_deletions: bool = False) -> None:
        self._used_names = UsedPodNames()
        self._held: dict[Key, _Held] = {}
        self._count_deletions = count_deletions

    def get(self, key: Key, uid: str) -> v1.ReconcileState:
        """The state to send with the next snapshot. The state of another uid is dropped: a re-created workload starts
        afresh.
        """
        held = self._of(key, uid)
        state = v1.ReconcileState(used_pod_names=self._used_names.wire(key, uid))
        if held is None:
            self._held.pop(key, None)
            return state
        state.MergeFrom(held.rest)
        state.blocked_evictions.extend(held.blocked.wire())
        expectations = held.expectations.wire()
        if expectations is not None:
            state.expectations.CopyFrom(expectations)
        return state

    def replace(
        self, key: Key, uid: str, planned: v1.ReconcileState, sent: v1.ReconcileState, pod_view: PodView
    ) -> None:
        """Stores the state of a plan, before its first write.

        The watches continued while the plan was requested. An expectation that was in `sent` and is not held any more
        was met meanwhile, and one that the caches already meet is not needed. Used pod names and blocked evictions that
        were sent and that the plan leaves out are dropped.
        """
        expectations, before = Expectations.of(planned), Expectations.of(sent)
        held = self._of(key, uid)
        expectations.settle(before, held.expectations if held else Expectations())
        expectations.named = {pod: node for pod, node in expectations.named.items() if not pod_view.exists(pod)}
        # An earlier expectation ends with its own event.
        new = expectations.deletes - before.deletes
        if new:
            deleting = pod_view.deleting()
            # Upstream waits for an event even if the pod was being deleted before.
            awaited = {pod for pod in new if pod in deleting and (self._counts(key) or not deleting[pod])}
            expectations.deletes = (expectations.deletes - new) | awaited
        blocked = held.blocked if held else BlockedEvictions()
        blocked.drop_unneeded(sent.blocked_evictions, planned.blocked_evictions)
        self._held[key] = _Held(uid, expectations, _rest(planned), blocked)
        self._used_names.drop(key, uid, sent.used_pod_names, planned.used_pod_names)

    def restore_backoffs(self, key: Key, uid: str, sent: v1.ReconcileState) -> None:
        """Restores the back-off of failed pods from before the plan, because the plan ended before it deleted failed
        pods.
        """
        held = self._of(key, uid)
        if held is not None:
            del held.rest.failed_pod_backoffs[:]
            held.rest.failed_pod_backoffs.extend(sent.failed_pod_backoffs)

    def block(
        self, key: Key, uid: str, blocked: Mapping[str, Blocked], sent: v1.ReconcileState, now: Timestamp
    ) -> None:
        """Records evictions that a PodDisruptionBudget did not allow, by the uid of the pod. `sent` is the state in the
        request for the plan that asked for them: it has how often they were not allowed before.
        """
        held = self._of(key, uid)
        if held is not None:
            for pod_uid, one in blocked.items():
                held.blocked.record(pod_uid, one, sent.blocked_evictions, now)

    def settle(self, key: Key, uid: str, settled: v1.ReconcileState) -> None:
        """Applies the response to a report: removes expectations that it does not have, and adds none. Used pod names
        and blocked evictions stay.
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
        """A pod of the workload of this uid is gone from the caches. No new pod gets its name until another pod of the
        workload is seen on its node.
        """
        self._used_names.retire(key, uid, node_name, pod_name)

    def observe_deletion(self, key: Key, pod_name: str, pod_uid: str) -> None:
        """A watch showed that a pod of the workload is gone or being deleted."""
        if key in self._held:
            self._held[key].expectations.observe_deletion(pod_name, pod_uid, counted=self._counts(key))
            self._held[key].blocked.remove(pod_uid)

    def lower(self, key: Key, uid: str, outcomes: Iterable[v1.Outcome]) -> None:
        """Removes the expectations of actions that certainly did not happen. An action without a response may have
        happened. A name for no node that the apiserver refused because another pod has it counts as used.
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
                        if not create.node_name and outcome.result == v1.RESULT_NAME_TAKEN:
                            self._used_names.retire(key, uid, create.node_name, create.pod_name)
                    else:
                        held.expectations.lower(create.node_name, 1)
                case "deleted_pod_uid":
                    held.expectations.deletes.discard(outcome.deleted_pod_uid)

    def drop_planned(self, key: Key, uid: str, now: Timestamp) -> bool:
        """Drops the state that plans set, and returns whether there was any. Expectations and used pod names stay, as
        they are the executor's own observations; an expectation with an invalid time gets the time `now`. Expired
        expectations are dropped, too, and blocked evictions: a budget that still protects a pod does so again.
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
        dropped = is_old or is_odd or held.rest != v1.ReconcileState() or bool(held.blocked)
        held.rest, held.blocked = v1.ReconcileState(), BlockedEvictions()
        return dropped

    def forget(self, key: Key) -> None:
        """Drops the state of a workload."""
        self._held.pop(key, None)
        self._used_names.forget(key)

    def outstanding(self, key: Key) -> tuple[int, int]:
        """The number of unmet creates and deletes of a workload."""
        held = self._held.get(key)
        if held is None:
            return 0, 0
        expectations = held.expectations
        return len(expectations.named) + expectations.unnamed.total(), len(expectations.deletes)

    def _counts(self, key: Key) -> bool:
        rules = KINDS[key.kind].pods
        return self._count_deletions and rules is not None and rules.counts_deletions

    def _of(self, key: Key, uid: str) -> _Held | None:
        held = self._held.get(key)
        return held if held is not None and held.uid == uid else None


def _is_undone(outcome: v1.Outcome) -> bool:
    """Whether an action was left out, not attempted, not allowed by a budget, or refused by the apiserver."""
    match outcome.result:
        case v1.RESULT_SKIPPED | v1.RESULT_NAME_TAKEN | v1.RESULT_BLOCKED:
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
    rest.ClearField("blocked_evictions")
    return rest
