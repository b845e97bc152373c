"""Checks whether a plan may be applied (rule W15 of docs/writing-an-executor.md).

The executor has the rights in the cluster, so it checks everything in a plan before the first write.

The check is pure: it reads the plan, the request and the caches. An object that the caches do not have, or have with
another uid, must be read live: it may be gone since the snapshot, or belong to another workload. If an action is wrong
about an object or a node that changed after the snapshot, only this action is left out.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from .. import convert, v1
from ..actions import actions_of
from ..actuator import Actuator, ActuatorError, Refusal
from ..apply.patching import is_adoption
from ..kinds import ObjectKey, Resource
from ..sanitize import one_line
from ..store import LivePods
from . import bounds, events, hashes, kinds, manifests, named, objects, patches, policies, remembered, rollback, totals
from .asked import Asked, Caches, UnclearError, ViolationError
from .named import ObjectState, Target
from .values import WrongError, quoted

__all__ = [
    "MAX_UNSEEN",
    "Asked",
    "Caches",
    "Checked",
    "UnclearError",
    "ViolationError",
    "check",
    "check_with_reads",
]

MAX_UNSEEN = 100
"""Most objects of one plan that are read live. If more are missing in the caches, the snapshot is too old to act on."""

_MAY_REST_ON_ADOPTIONS = (
    "delete_pod",
    "evict_pod",
    "delete_revision",
    "relabel_pod",
    "create_object",
    "delete_object",
)

_OF_ROLLOUTS = ("delete_pod", "evict_pod", "emit_event", "patch_object", "measure")
"""The actions of a plan for a rollout alone. What plans write to the statuses of policies is checked elsewhere."""


class Checked:
    """A plan that breaks no rule as far as the caches show."""

    def __init__(self, actions: Sequence[v1.Action], asked: Asked, caches: Caches) -> None:
        """A plan with these actions, whose objects are not checked yet."""
        self.unseen: list[Target] = []
        """Objects that must be read live before the plan may be applied."""
        self._actions, self._asked, self._caches = actions, asked, caches
        self._left_out: dict[int, str] = {}

    def check_live(self, target: Target, served: bytes) -> None:
        """Checks an object that the caches do not have, as it was read live. A replaced object is no violation: the
        write fails by the uid. Raises `ViolationError`.
        """
        try:
            known = ObjectState.read(target.resource, served)
        except convert.ConversionError as error:
            raise ViolationError(f"{target} cannot be read: {error}", target.action) from error
        if known.uid == target.reference.uid:
            self._check_controller(target, known)
            # The caches do not show whether all objects together may get larger.
            if totals.grows(target.action, known.replicas):
                self._left_out.setdefault(
                    target.action.id, one_line(f"{target} grows, and the caches do not show it yet")
                )
        elif target.action.HasField("delete_pod") and not target.action.delete_pod.uid_precondition:
            # Without a precondition, the delete would take the new object.
            self._leave_out_target(target, f"{target} has the uid {known.uid} by now, and the delete carries none")

    def left_out(self) -> dict[int, str]:
        """The ids of actions that must not be carried out, with the reasons. If an adoption is left out, so are the
        actions that may depend on it: deletes in favour of the adopted object, relabels with its hash, and changes of
        objects that the workload controls.
        """
        if any(action.id in self._left_out and is_adoption(action) for action in self._actions):
            for action in self._actions:
                if _may_rest_on_adoption(action):
                    self._left_out.setdefault(action.id, "an adoption that it may rest on is left out")
        return self._left_out

    def check_objects(self, targets: Iterable[Target]) -> None:
        """Checks objects against the caches. Raises `ViolationError`."""
        for target in targets:
            known = ObjectState.cached(self._caches, self._asked, target)
            if known is None or known.uid != target.reference.uid:
                self.unseen.append(target)
            else:
                self._check_controller(target, known)

    def check_nodes(self, nodes: Collection[str]) -> None:
        """Checks that the nodes of created pods exist and do not have too many pods. Raises `ViolationError`."""
        live = self._caches.live_pods(self._asked.workload, nodes) if nodes else {}
        for action in self._creates():
            name = action.create_pod.node_name
            pods = live.get(name)
            wrong = bounds.wrong_node(name, None if pods is None else pods.number)
            if wrong is not None:
                gone = self._caches.changed(Resource.NODES, "", name)
                self._leave_out(action, wrong, gone if pods is None else pods.changed)

    def check_replicas(self) -> None:
        """Checks that the workload gets no more pods than it should have, with those that the caches show now, and
        those that were created and that they do not show yet. A plan that was made from an old snapshot must not create
        pods once more. Raises `ViolationError`.
        """
        creates, workload = self._creates(), self._asked.workload
        if not creates:
            return
        replicas = max(workload.replicas, 0)
        # A pod that is created once more is the same pod.
        names = {action.create_pod.pod_name for action in creates}
        unseen = sum(name not in names for name in self._asked.unseen_creates)
        # More creates than replicas are a violation whatever the caches show.
        room = max(replicas - len(creates), 0)
        live = self._caches.live_pods_beyond(workload, max(room - unseen, 0)) or LivePods()
        # How many creates there is room for beside all pods, and beside those that the caches show.
        fit, fit_seen = (max(replicas - pods, 0) for pods in (live.number + unseen, live.number))
        beside = f"the plan creates {len(creates)} pods beside {live.number} that the caches show"
        what = f"{beside} and {unseen} that they do not show yet, and spec.replicas is {replicas}"
        for action in creates[fit:fit_seen]:
            self._left_out[action.id] = one_line(what)
        for action in creates[fit_seen:]:
            self._leave_out(action, f"{beside}, and spec.replicas is {replicas}", live.changed)

    def check_hash(self, plan: v1.Plan) -> None:
        """Checks the hash of created pods. Raises `ViolationError`."""
        creates, workload = self._creates(), self._asked.workload
        if not creates:
            return
        shown = [revision.hash for revision in (*self._asked.live, *self._caches.revisions(workload))]
        wrong = hashes.wrong(plan, self._actions, workload, shown, self._left_out)
        if wrong is not None:
            # The revision may have been deleted, or lost its label or its owner.
            changed = self._caches.revisions_changed(workload.key.namespace)
            for action in creates:
                self._leave_out(action, wrong, changed)

    def check_rollbacks(self) -> None:
        """Checks the templates that the plan restores. Raises `ViolationError`."""
        for action, write in kinds.writes(self._actions, self._asked):
            if write is kinds.Write.ROLLBACK:
                with _violation(action):
                    wrong, changed = rollback.wrong(action, self._actions, self._asked, self._caches)
                if wrong is not None:
                    self._leave_out(action, wrong, changed)

    def check_totals(self) -> None:
        """Checks the ReplicaSets of a Deployment together. Raises `ViolationError`."""
        with _violation():
            for action, wrong, changed in totals.wrong(self._actions, self._asked, self._caches):
                self._leave_out(action, wrong, changed)

    def _creates(self) -> list[v1.Action]:
        return [action for action in self._actions if action.HasField("create_pod")]

    def _check_controller(self, target: Target, known: ObjectState) -> None:
        """Checks that the workload controls the object, or that it is an orphan that the action may touch. Raises
        `ViolationError`.
        """
        wrong = named.wrong(target, self._asked, known)
        if wrong is not None:
            self._leave_out_target(target, wrong)

    def _leave_out_target(self, target: Target, what: str) -> None:
        namespace = self._asked.workload.key.namespace
        changed = self._caches.changed(target.resource, namespace, target.reference.name)
        self._leave_out(target.action, what, changed)

    def _leave_out(self, action: v1.Action, what: str, changed: int) -> None:
        """Leaves out an action whose object changed after the snapshot. If it did not change, the plan was not made
        from the snapshot. Raises `ViolationError`.
        """
        if changed <= self._asked.as_of:
            raise ViolationError(what, action)
        self._left_out[action.id] = one_line(f"{what}; that has changed since the snapshot")


def _may_rest_on_adoption(action: v1.Action) -> bool:
    """Whether a plan may have decided an action because it adopts an object."""
    if action.HasField("patch_object"):
        return action.patch_object.claim == v1.CLAIM_UNSPECIFIED and not action.patch_object.subresource
    return action.WhichOneof("kind") in _MAY_REST_ON_ADOPTIONS


def check(plan: v1.Plan, asked: Asked, caches: Caches) -> Checked:
    """Checks a plan. Raises `ViolationError`."""
    _check_workload(plan, asked)
    actions = list(actions_of(plan))
    for action in actions:
        with _violation(action):
            _check_verdict(plan.verdict, action)
    _check_scope(plan, actions, asked.scope)
    with _violation():
        policies.check_confirmation(plan, asked)
    kinds.check(actions, asked)
    policies.check_phases(plan, asked)
    with _violation():
        bounds.check(plan, actions, asked.burst, asked.decides_after_cut)
    nodes, writes = bounds.Nodes(asked.kind), bounds.Writes()
    for action in actions:
        with _violation(action):
            writes.check(action)
    for action in actions:
        with _violation(action):
            nodes.check(action)
    _check_state(plan, asked, caches)
    revisions = [found for found in caches.revisions(asked.workload) if found.controller]
    revisions += [found for found in asked.live if found.controller and found.controller.uid == asked.workload.uid]
    # A revision that is not cached completely was not sent either.
    own = [found.object for found in revisions if found.object is not None]
    creates = manifests.Creates(plan, asked, own)
    for action in actions:
        with _violation(action):
            creates.check(action)
    of_objects = objects.Objects(asked)
    for action, write in kinds.writes(actions, asked):
        with _violation(action):
            of_objects.check(action, write)
    measurements = policies.Measurements(asked)
    for action in actions:
        with _violation(action):
            measurements.check(action)
    targets = list(_check_actions(actions, asked))
    # Objects that may have changed since the snapshot come last: they must not hide certain violations.
    checked = Checked(actions, asked, caches)
    checked.check_objects(targets)
    if asked.per_node:
        checked.check_nodes(nodes.names)
        checked.check_hash(plan)
    else:
        checked.check_replicas()
    checked.check_rollbacks()
    checked.check_totals()
    return checked


def _check_verdict(verdict: v1.Verdict.ValueType, action: v1.Action) -> None:
    """Checks that the verdict of a plan does not rule an action out."""
    is_of_pods = action.WhichOneof("kind") in ("create_pod", "delete_pod", "evict_pod")
    is_status_only = verdict == v1.VERDICT_STATUS_ONLY and not is_of_pods
    if verdict != v1.VERDICT_APPLY and not is_status_only:
        name = v1.Verdict.Name(verdict) if verdict in v1.Verdict.values() else verdict
        raise WrongError(f"the verdict of the plan is {name}, which rules it out")


def _check_state(plan: v1.Plan, asked: Asked, caches: Caches) -> None:
    def may_exist(node: str) -> bool:
        return caches.has_node(node) or caches.changed(Resource.NODES, "", node) > asked.as_of

    with _violation():
        if asked.per_node:
            remembered.check(plan.state, asked.sent, may_exist)
        else:
            remembered.check_without_nodes(plan.state, asked.kind)


def _check_actions(actions: Sequence[v1.Action], asked: Asked) -> Iterator[Target]:
    """Checks the content of each action. Yields the objects that the actions name."""
    adopted = named.adopted(actions, asked)
    for action in actions:
        with _violation(action):
            events.check(action)
        target = named.target_of(action, asked, adopted)
        if target is None:
            continue
        named.check_precondition(target, asked)
        with _violation(action):
            patches.check(action, target.reference.uid, asked.workload)
        yield target


@contextmanager
def _violation(action: v1.Action | None = None) -> Iterator[None]:
    """Turns a `WrongError` into a violation of this action, or of the whole plan."""
    try:
        yield
    except WrongError as wrong:
        raise ViolationError(str(wrong), action) from None
    except RecursionError:
        raise ViolationError("it is nested too deeply to be checked", action) from None


async def check_with_reads(plan: v1.Plan, asked: Asked, caches: Caches, actuator: Actuator) -> dict[int, str]:
    """Checks a plan, with live reads of objects that the caches do not have. Returns the ids of actions that must not
    be carried out, with the reasons. Raises `ViolationError`, and `UnclearError` if the plan cannot be checked now.
    """
    checked = check(plan, asked, caches)
    if len(checked.unseen) > MAX_UNSEEN:
        raise UnclearError(
            f"the plan names {len(checked.unseen)} objects that the caches do not show; "
            "the snapshot it was made from is too old"
        )
    for target in checked.unseen:
        key = ObjectKey(target.resource, asked.workload.key.namespace, target.reference.name)
        try:
            served = await actuator.read(key)
        except Exception as raised:
            error = ActuatorError.of(raised)
            if error.refusal is Refusal.NOT_FOUND:
                continue
            reason = f"reading {key}, which the plan names: {error.message}"
            raise UnclearError(reason, error.http_status) from raised
        checked.check_live(target, served)
    return checked.left_out()


def _check_workload(plan: v1.Plan, asked: Asked) -> None:
    """Checks that the plan is for the workload of the request."""
    if not plan.HasField("workload"):
        raise ViolationError("it names no workload")
    planned, workload = plan.workload, asked.workload
    key = workload.key
    named_workload = (planned.kind, planned.namespace, planned.name, planned.uid)
    if named_workload != (key.kind, key.namespace, key.name, workload.uid):
        raise ViolationError(
            f"it is for {planned.kind} {planned.namespace}/{planned.name} with uid {quoted(planned.uid)}, "
            f"and was asked for {key.kind} {key.path} with uid {quoted(workload.uid)}"
        )


def _check_scope(plan: v1.Plan, actions: Sequence[v1.Action], scope: v1.Scope.ValueType) -> None:
    """Checks the scope. A service that does not know scopes plans for whole workloads."""
    if scope != v1.SCOPE_ROLLOUTS:
        return
    of_rollouts = all(action.WhichOneof("kind") in _OF_ROLLOUTS for action in actions)
    if plan.scope != v1.SCOPE_ROLLOUTS or not of_rollouts:
        raise ViolationError(
            "the service planned for the whole workload, and was asked for its rollout alone: "
            "it is too old for --mode companion"
        )
