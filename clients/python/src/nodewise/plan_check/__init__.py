"""Checks whether a plan may be applied (rule W15 of docs/writing-an-executor.md).

The executor has the rights in the cluster, so it checks everything in a plan before the first write.

The check is pure: it reads the plan, the request and the caches. An object that the caches do not have, or have with
another uid, must be read live: it may be gone since the snapshot, or belong to another workload. If an action is wrong
about an object or a node that changed after the snapshot, only this action is left out.
"""

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from .. import convert, v1
from ..actions import actions_of
from ..actuator import Actuator, ActuatorError, Refusal
from ..apply.action import is_adoption
from ..kinds import OWNER_KIND, ObjectKey, Resource
from ..objects import DaemonSet, Owner, Pod, Revision, owner_of
from ..options import DEFAULT_BURST
from ..sanitize import one_line
from ..store import LivePods
from . import bounds, events, hashes, manifests, names, patches, remembered
from .values import WrongError, quoted

MAX_UNSEEN = 100
"""Most objects of one plan that are read live. If more are missing in the caches, the snapshot is too old to act on."""


_RELEASES = ("release_pod", "release_revision")
_MAY_REST_ON_ADOPTIONS = ("delete_pod", "delete_revision", "relabel_pod")


class ObjectState(NamedTuple):
    """The uid, controller and labels of an object."""

    uid: str
    controller: Owner | None
    labels: Mapping[str, str]

    @classmethod
    def of_pod(cls, pod: v1.Pod) -> "ObjectState":
        """The state of a pod."""
        controller = owner_of(pod.controller) if pod.HasField("controller") else None
        return cls(pod.uid, controller, {label.key: label.value for label in pod.labels})

    @classmethod
    def of_revision(cls, revision: Revision) -> "ObjectState":
        """The state of a revision."""
        return cls(revision.uid, revision.controller, revision.labels)


class Caches(Protocol):
    """The caches as the check reads them."""

    def pod(self, namespace: str, name: str) -> v1.Pod | None:
        """The pod of this name."""

    def revision(self, namespace: str, name: str) -> Revision | None:
        """The revision of this name."""

    def revisions(self, workload: DaemonSet) -> list[Revision]:
        """The revisions that a workload controls, and orphans that it selects."""

    def has_node(self, name: str) -> bool:
        """Whether there is a node of this name."""

    def live_pods(self, workload: DaemonSet, nodes: Collection[str]) -> dict[str, LivePods]:
        """The existing ones of these nodes, with the workload's live pods on or targeting each: pods that it controls
        and selects, and that have not finished and are not being deleted.
        """

    def changed(self, resource: Resource, namespace: str, name: str) -> int:
        """The number of the last change of a pod or revision. For a node, or an object that is not in the caches: of
        the last removal of any object of the resource.
        """

    def revisions_changed(self, namespace: str) -> int:
        """The number of the last change or removal of any revision of a namespace."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request that the plan answers."""

    workload: DaemonSet
    """The workload in the snapshot."""
    scope: v1.Scope.ValueType = v1.SCOPE_UNSPECIFIED
    """The scope that was requested."""
    live: Sequence[Revision] = ()
    """Revisions of the snapshot that were read live."""
    as_of: int = 0
    """The number of the last cache change in the snapshot."""
    sent: v1.ReconcileState = field(default_factory=v1.ReconcileState)
    """The state in the request."""
    deletes_with_uid: bool = True
    """Whether the options require the pod's uid as a precondition of every delete."""
    burst: int = DEFAULT_BURST
    """Most creates, and separately most deletes, of pods."""
    decides_after_cut: bool = True
    """Whether failed pods beyond the burst are left to later plans, so that they cause no Events in this one, as the
    options say.
    """


class ViolationError(Exception):
    """The plan must not be applied."""

    def __init__(self, what: str, action: v1.Action | None = None) -> None:
        """`action` is the wrong action; None if the plan as a whole is wrong."""
        self.what = one_line(what)
        of = "" if action is None else f"action {action.id} ({_kind_name(action)}): "
        super().__init__(f"the plan is refused and nothing of it is written: {of}{self.what}")


class UnclearError(Exception):
    """The plan cannot be checked now."""

    def __init__(self, message: str, http_status: int = 0) -> None:
        """`http_status` is the status of the apiserver's response to a read; 0 if there is none."""
        super().__init__(message)
        self.http_status = http_status


class _Orphan(enum.Enum):
    """What an action may do to an orphan."""

    REFUSED = enum.auto()
    """The action must not touch an orphan."""
    IF_SELECTED = enum.auto()
    """The action may adopt an orphan that the selector matches, or follows such an adoption in the same plan."""
    ACCEPTED = enum.auto()
    """The action may release an orphan again: an earlier plan has released it since the snapshot."""


@dataclass(frozen=True, slots=True)
class Target:
    """The existing object of an action."""

    action: v1.Action
    resource: Resource
    """Pods or revisions."""
    reference: v1.ObjectReference
    """Its name and uid."""
    orphan: _Orphan

    def __str__(self) -> str:
        kind = "pod" if self.resource is Resource.PODS else "ControllerRevision"
        return f"{kind} {self.reference.name}"


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
            if target.resource is Resource.PODS:
                known = ObjectState.of_pod(Pod.read(served).projection)
            else:
                known = ObjectState.of_revision(Revision.read(served))
        except convert.ConversionError as error:
            raise ViolationError(f"{target} cannot be read: {error}", target.action) from error
        if known.uid == target.reference.uid:
            self._check_controller(target, known)
        elif target.action.HasField("delete_pod") and not target.action.delete_pod.uid_precondition:
            # Without a precondition, the delete would take the new object.
            self._leave_out_target(target, f"has the uid {known.uid} by now, and the delete carries none")

    def left_out(self) -> dict[int, str]:
        """The ids of actions that must not be carried out, with the reasons. If an adoption is left out, so are the
        actions that may depend on it: deletes of pods and revisions in favour of the adopted object, and relabels with
        its hash.
        """
        if any(action.id in self._left_out and is_adoption(action) for action in self._actions):
            for action in self._actions:
                if action.WhichOneof("kind") in _MAY_REST_ON_ADOPTIONS:
                    self._left_out.setdefault(action.id, "an adoption that it may rest on is left out")
        return self._left_out

    def check_objects(self, targets: Iterable[Target]) -> None:
        """Checks objects against the caches. Raises `ViolationError`."""
        for target in targets:
            known = _cached_state(self._caches, self._asked.workload, target)
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

    def _creates(self) -> list[v1.Action]:
        return [action for action in self._actions if action.HasField("create_pod")]

    def _check_controller(self, target: Target, known: ObjectState) -> None:
        """Checks that the workload controls the object, or that it is an orphan that the action may touch. Raises
        `ViolationError`.
        """
        workload, controller = self._asked.workload, known.controller
        if controller is not None:
            if controller.uid != workload.uid:
                of = f"{controller.kind} {controller.name} with uid {quoted(controller.uid)}"
                self._leave_out_target(target, f"is controlled by {of}, not by the workload")
            elif target.action.WhichOneof("kind") in _RELEASES and workload.selector.selects(known.labels):
                self._leave_out_target(target, "is selected by the workload, and the plan releases it")
        elif target.orphan is _Orphan.REFUSED:
            self._leave_out_target(target, "has no controller, and the plan does not adopt it")
        elif target.orphan is _Orphan.IF_SELECTED and not workload.selector.selects(known.labels):
            self._leave_out_target(target, "is not selected by the workload")

    def _leave_out_target(self, target: Target, what: str) -> None:
        namespace = self._asked.workload.key.namespace
        changed = self._caches.changed(target.resource, namespace, target.reference.name)
        self._leave_out(target.action, f"{target} {what}", changed)

    def _leave_out(self, action: v1.Action, what: str, changed: int) -> None:
        """Leaves out an action whose object changed after the snapshot. If it did not change, the plan was not made
        from the snapshot. Raises `ViolationError`.
        """
        if changed <= self._asked.as_of:
            raise ViolationError(what, action)
        self._left_out[action.id] = one_line(f"{what}; that has changed since the snapshot")


def check(plan: v1.Plan, asked: Asked, caches: Caches) -> Checked:
    """Checks a plan. Raises `ViolationError`."""
    _check_workload(plan, asked.workload)
    actions = list(actions_of(plan))
    _check_scope(plan, actions, asked.scope)

    def may_exist(node: str) -> bool:
        return caches.has_node(node) or caches.changed(Resource.NODES, "", node) > asked.as_of

    with _violation():
        bounds.check(plan, actions, asked.burst, asked.decides_after_cut)
    nodes = bounds.Nodes()
    for action in actions:
        with _violation(action):
            nodes.check(action)
    with _violation():
        remembered.check(plan.state, asked.sent, may_exist)
    revisions = [found for found in caches.revisions(asked.workload) if found.controller]
    revisions += [found for found in asked.live if found.controller and found.controller.uid == asked.workload.uid]
    # A revision that is not cached completely was not sent either.
    own = [found.object for found in revisions if found.object is not None]
    creates = manifests.Creates(plan, asked.workload, own)
    for action in actions:
        with _violation(action):
            creates.check(action)
    targets = list(_check_actions(actions, asked))
    # Objects that may have changed since the snapshot come last: they must not hide certain violations.
    checked = Checked(actions, asked, caches)
    checked.check_objects(targets)
    checked.check_nodes(nodes.names)
    checked.check_hash(plan)
    return checked


def _check_actions(actions: Sequence[v1.Action], asked: Asked) -> Iterator[Target]:
    """Checks the content of each action. Yields the objects that the actions name."""
    adopted = {action.adopt_pod.pod.uid for action in actions if action.HasField("adopt_pod")}
    adopted |= {action.adopt_revision.revision.uid for action in actions if action.HasField("adopt_revision")}
    for action in actions:
        with _violation(action):
            if action.HasField("emit_event"):
                events.check(action.emit_event)
        target = _target(action, adopted)
        if target is None:
            continue
        _check_precondition(target, asked)
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


def _cached_state(caches: Caches, workload: DaemonSet, target: Target) -> ObjectState | None:
    """The cached state of an object. None if the caches do not have it, or do not have its labels."""
    namespace = workload.key.namespace
    if target.resource is Resource.PODS:
        pod = caches.pod(namespace, target.reference.name)
        return None if pod is None else ObjectState.of_pod(pod)
    revision = caches.revision(namespace, target.reference.name)
    if revision is None or not revision.is_known_to(workload.selector):
        return None
    return ObjectState.of_revision(revision)


def _check_workload(plan: v1.Plan, workload: DaemonSet) -> None:
    """Checks that the plan is for the workload of the request."""
    if not plan.HasField("workload"):
        raise ViolationError("it names no workload")
    planned, key = plan.workload, workload.key
    if (planned.kind, planned.namespace, planned.name, planned.uid) != (OWNER_KIND, *key, workload.uid):
        raise ViolationError(
            f"it is for {planned.kind} {planned.namespace}/{planned.name} with uid {quoted(planned.uid)}, "
            f"and was asked for {OWNER_KIND} {key} with uid {quoted(workload.uid)}"
        )


def _check_scope(plan: v1.Plan, actions: Sequence[v1.Action], scope: v1.Scope.ValueType) -> None:
    """Checks the scope. A service that does not know scopes plans for whole workloads."""
    if scope != v1.SCOPE_ROLLOUTS:
        return
    of_rollouts = all(action.WhichOneof("kind") in ("delete_pod", "emit_event") for action in actions)
    if plan.scope != v1.SCOPE_ROLLOUTS or not of_rollouts:
        raise ViolationError(
            "the service planned for the whole workload, and was asked for its rollout alone: "
            "it is too old for --mode companion"
        )


def _target(action: v1.Action, adopted: set[str]) -> Target | None:
    """The existing object that an action is about; None if there is none."""
    orphan = _Orphan.REFUSED
    match action.WhichOneof("kind"):
        case "update_revision":
            resource, reference = Resource.REVISIONS, action.update_revision.revision
        case "delete_revision":
            resource, reference = Resource.REVISIONS, action.delete_revision.revision
        case "adopt_revision":
            resource, reference = Resource.REVISIONS, action.adopt_revision.revision
        case "release_revision":
            resource, reference, orphan = Resource.REVISIONS, action.release_revision.revision, _Orphan.ACCEPTED
        case "adopt_pod":
            resource, reference = Resource.PODS, action.adopt_pod.pod
        case "release_pod":
            resource, reference, orphan = Resource.PODS, action.release_pod.pod, _Orphan.ACCEPTED
        case "relabel_pod":
            resource, reference = Resource.PODS, action.relabel_pod.pod
        case "delete_pod":
            resource, reference = Resource.PODS, action.delete_pod.pod
        case _:
            # An action of an unknown kind is not carried out.
            return None
    if not reference.name:
        raise ViolationError("it names no object", action)
    if not names.is_of_object(reference.name):
        raise ViolationError(f"it names {quoted(reference.name)}, and no object can be called so", action)
    if not reference.uid:
        raise ViolationError(f"it names {reference.name} without a uid", action)
    if orphan is _Orphan.REFUSED and reference.uid in adopted:
        orphan = _Orphan.IF_SELECTED
    return Target(action, resource, reference, orphan)


def _check_precondition(target: Target, asked: Asked) -> None:
    """Checks the uid precondition. A delete by name alone takes any object of that name. Only the options may ask for
    such deletes.
    """
    action = target.action
    if asked.deletes_with_uid and action.HasField("delete_pod") and not action.delete_pod.uid_precondition:
        raise ViolationError(f"it deletes {target.reference.name} without its uid as a precondition", action)


def _kind_name(action: v1.Action) -> str:
    kind = action.WhichOneof("kind")
    return "unknown" if kind is None else type(getattr(action, kind)).__name__
