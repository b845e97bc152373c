"""Whether a plan may be applied (rule W15 of docs/writing-an-executor.md).

The executor holds the rights in the cluster, so it checks everything that the service says before the first write.

The check is pure: it looks at the plan, at what was asked and at the caches. An object that the caches do not show, or
do not show with this uid, is handed back: it may be gone since the snapshot, or it may be another workload's. One live
read tells which. Where an action is wrong about an object or a node that has changed since the snapshot, this action
alone is left out.
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
from ..store import LivePods
from ..told import in_short
from . import bounds, events, hashes, manifests, names, patches, remembered
from .values import WrongError, quoted

MAX_UNSEEN = 100
"""Most objects of one plan that are read live. When more of them are gone, the snapshot is too old to act on."""


_RELEASES = ("release_pod", "release_revision")
_MAY_REST_ON_ADOPTIONS = ("delete_pod", "delete_revision", "relabel_pod")


class Known(NamedTuple):
    """What is known of an object."""

    uid: str
    controller: Owner | None
    labels: Mapping[str, str]

    @classmethod
    def of_pod(cls, pod: v1.Pod) -> "Known":
        """Of a pod."""
        controller = owner_of(pod.controller) if pod.HasField("controller") else None
        return cls(pod.uid, controller, {label.key: label.value for label in pod.labels})

    @classmethod
    def of_revision(cls, revision: Revision) -> "Known":
        """Of a revision."""
        return cls(revision.uid, revision.controller, revision.labels)


class Caches(Protocol):
    """What the caches show."""

    def pod(self, namespace: str, name: str) -> v1.Pod | None:
        """The pod of this name."""

    def revision(self, namespace: str, name: str) -> Revision | None:
        """The revision of this name."""

    def revisions(self, workload: DaemonSet) -> list[Revision]:
        """The revisions that a workload controls, and orphans that it selects."""

    def has_node(self, name: str) -> bool:
        """Whether there is a node of this name."""

    def live_pods(self, workload: DaemonSet, nodes: Collection[str]) -> dict[str, LivePods]:
        """Of these nodes those that there are, and the pods of a workload that live on each or are meant for it: those
        that it controls and selects, but for those that have finished or are being deleted.
        """

    def changed(self, resource: Resource, namespace: str, name: str) -> int:
        """The number of the last change of a pod or revision. Of what the caches do not show, and of nodes, it is that
        of the last change that took any object of the resource out.
        """

    def revisions_changed(self, namespace: str) -> int:
        """The number of the last change of any revision of a namespace, or that took any revision out."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan has to answer."""

    workload: DaemonSet
    """The workload as the snapshot had it."""
    scope: v1.Scope.ValueType = v1.SCOPE_UNSPECIFIED
    """What was to be decided of the workload."""
    live: Sequence[Revision] = ()
    """Revisions of the snapshot that were read live."""
    as_of: int = 0
    """The number of the last change that the snapshot shows."""
    sent: v1.ReconcileState = field(default_factory=v1.ReconcileState)
    """The state that the snapshot had."""
    deletes_with_uid: bool = True
    """Every delete of a pod carries the pod's uid as a precondition, as the options say that were sent."""
    burst: int = DEFAULT_BURST
    """Most creates, and separately most deletes, of pods."""
    decides_after_cut: bool = True
    """Failed pods beyond the burst are left to later plans, so that no Events are due for them, as the options say."""


class ViolationError(Exception):
    """Why a plan must not be applied."""

    def __init__(self, what: str, action: v1.Action | None = None) -> None:
        """`action` is the one that is wrong; None where the plan as a whole is."""
        self.what = in_short(what)
        of = "" if action is None else f"action {action.id} ({_kind_name(action)}): "
        super().__init__(f"the plan is refused and nothing of it is written: {of}{self.what}")


class UnclearError(Exception):
    """A plan cannot be judged now."""

    def __init__(self, message: str, http_status: int = 0) -> None:
        """`http_status` is that of the apiserver's answer to a read, if that is why; else it is 0."""
        super().__init__(message)
        self.http_status = http_status


class _Orphan(enum.Enum):
    """What an action may do to an object without a controller."""

    REFUSED = enum.auto()
    """Nothing."""
    IF_SELECTED = enum.auto()
    """Adopt it, where the selector matches; or whatever this plan does to it after its adoption."""
    ACCEPTED = enum.auto()
    """Release it once more: an earlier plan has released it since the snapshot."""


@dataclass(frozen=True, slots=True)
class Named:
    """An object that an action is about."""

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
    """A plan that breaks no rule by what the caches show."""

    def __init__(self, actions: Sequence[v1.Action], asked: Asked, caches: Caches) -> None:
        """Of a plan, which has these actions, nothing that may have changed since the snapshot is checked yet."""
        self.unseen: list[Named] = []
        """Objects that have to be read live before the plan may be applied."""
        self._actions, self._asked, self._caches = actions, asked, caches
        self._left_out: dict[int, str] = {}

    def check_live(self, named: Named, served: bytes) -> None:
        """Checks an object that the caches do not show, as it was read live. One that is gone, or has been replaced, is
        no violation: the write finds that out by the uid. Raises `ViolationError`.
        """
        try:
            if named.resource is Resource.PODS:
                known = Known.of_pod(Pod.read(served).projection)
            else:
                known = Known.of_revision(Revision.read(served))
        except convert.ConversionError as error:
            raise ViolationError(f"{named} cannot be read: {error}", named.action) from error
        if known.uid == named.reference.uid:
            self._check_controller(named, known)
        elif named.action.HasField("delete_pod") and not named.action.delete_pod.uid_precondition:
            # Without a precondition the delete would take the other object.
            self._leave_out_named(named, f"has the uid {known.uid} by now, and the delete carries none")

    def left_out(self) -> dict[int, str]:
        """Why actions are not to be carried out, by their ids. What an adoption makes superfluous stays while it is
        left out: no pod and no revision is deleted in favour of what is not adopted, and no pod gets its hash.
        """
        if any(action.id in self._left_out and is_adoption(action) for action in self._actions):
            for action in self._actions:
                if action.WhichOneof("kind") in _MAY_REST_ON_ADOPTIONS:
                    self._left_out.setdefault(action.id, "an adoption that it may rest on is left out")
        return self._left_out

    def check_objects(self, every_named: Iterable[Named]) -> None:
        """Checks objects as the caches show them. Raises `ViolationError`."""
        for named in every_named:
            known = _known(self._caches, self._asked.workload, named)
            if known is None or known.uid != named.reference.uid:
                self.unseen.append(named)
            else:
                self._check_controller(named, known)

    def check_nodes(self, nodes: Collection[str]) -> None:
        """Checks the nodes that pods are created for: they exist and do not have too many. Raises `ViolationError`."""
        live = self._caches.live_pods(self._asked.workload, nodes) if nodes else {}
        for action in self._creates():
            name = action.create_pod.node_name
            pods = live.get(name)
            wrong = bounds.wrong_node(name, None if pods is None else pods.number)
            if wrong is not None:
                gone = self._caches.changed(Resource.NODES, "", name)
                self._leave_out(action, wrong, gone if pods is None else pods.changed)

    def check_hash(self, plan: v1.Plan) -> None:
        """Checks the hash of the pods that are created. Raises `ViolationError`."""
        creates, workload = self._creates(), self._asked.workload
        if not creates:
            return
        shown = [revision.hash for revision in (*self._asked.live, *self._caches.revisions(workload))]
        wrong = hashes.wrong(plan, self._actions, workload, shown, self._left_out)
        if wrong is not None:
            # The revision may have lost its label or its owner, or may be gone.
            changed = self._caches.revisions_changed(workload.key.namespace)
            for action in creates:
                self._leave_out(action, wrong, changed)

    def _creates(self) -> list[v1.Action]:
        return [action for action in self._actions if action.HasField("create_pod")]

    def _check_controller(self, named: Named, known: Known) -> None:
        """The object is the workload's, or it is an orphan and may be. Raises `ViolationError`."""
        workload, controller = self._asked.workload, known.controller
        if controller is not None:
            if controller.uid != workload.uid:
                of = f"{controller.kind} {controller.name} with uid {quoted(controller.uid)}"
                self._leave_out_named(named, f"is controlled by {of}, not by the workload")
            elif named.action.WhichOneof("kind") in _RELEASES and workload.selector.selects(known.labels):
                self._leave_out_named(named, "is selected by the workload, and the plan releases it")
        elif named.orphan is _Orphan.REFUSED:
            self._leave_out_named(named, "has no controller, and the plan does not adopt it")
        elif named.orphan is _Orphan.IF_SELECTED and not workload.selector.selects(known.labels):
            self._leave_out_named(named, "is not selected by the workload")

    def _leave_out_named(self, named: Named, what: str) -> None:
        namespace = self._asked.workload.key.namespace
        changed = self._caches.changed(named.resource, namespace, named.reference.name)
        self._leave_out(named.action, f"{named} {what}", changed)

    def _leave_out(self, action: v1.Action, what: str, changed: int) -> None:
        """Leaves an action out if what it is wrong about has changed since the snapshot. If it has not, the plan was
        not made from the snapshot. Raises `ViolationError`.
        """
        if changed <= self._asked.as_of:
            raise ViolationError(what, action)
        self._left_out[action.id] = in_short(f"{what}; that has changed since the snapshot")


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
    # What is not kept whole was not sent either.
    own = [found.object for found in revisions if found.object is not None]
    creates = manifests.Creates(plan, asked.workload, own)
    for action in actions:
        with _violation(action):
            creates.check(action)
    every_named = list(_check_actions(actions, asked))
    # What may have changed since the snapshot comes last: it must not hide what is wrong in any case.
    checked = Checked(actions, asked, caches)
    checked.check_objects(every_named)
    checked.check_nodes(nodes.names)
    checked.check_hash(plan)
    return checked


def _check_actions(actions: Sequence[v1.Action], asked: Asked) -> Iterator[Named]:
    """Checks what each action says, whatever the objects are that it names. Answers with these."""
    adopted = {action.adopt_pod.pod.uid for action in actions if action.HasField("adopt_pod")}
    adopted |= {action.adopt_revision.revision.uid for action in actions if action.HasField("adopt_revision")}
    for action in actions:
        with _violation(action):
            if action.HasField("emit_event"):
                events.check(action.emit_event)
        named = _named(action, adopted)
        if named is None:
            continue
        _check_precondition(named, asked)
        with _violation(action):
            patches.check(action, named.reference.uid, asked.workload)
        yield named


@contextmanager
def _violation(action: v1.Action | None = None) -> Iterator[None]:
    """What is found to be wrong inside is a violation, of an action or of the plan as a whole."""
    try:
        yield
    except WrongError as wrong:
        raise ViolationError(str(wrong), action) from None
    except RecursionError:
        raise ViolationError("it is nested too deeply to be checked", action) from None


async def check_with_reads(plan: v1.Plan, asked: Asked, caches: Caches, actuator: Actuator) -> dict[int, str]:
    """Checks a plan, and reads live what the caches do not show. Answers with why actions are not to be carried out, by
    their ids. Raises `ViolationError`, and `UnclearError` when the plan cannot be judged now.
    """
    checked = check(plan, asked, caches)
    if len(checked.unseen) > MAX_UNSEEN:
        raise UnclearError(
            f"the plan names {len(checked.unseen)} objects that the caches do not show; "
            "the snapshot it was made from is too old"
        )
    for named in checked.unseen:
        key = ObjectKey(named.resource, asked.workload.key.namespace, named.reference.name)
        try:
            served = await actuator.read(key)
        except Exception as raised:
            error = ActuatorError.of(raised)
            if error.refusal is Refusal.NOT_FOUND:
                continue
            reason = f"reading {key}, which the plan names: {error.message}"
            raise UnclearError(reason, error.http_status) from raised
        checked.check_live(named, served)
    return checked.left_out()


def _known(caches: Caches, workload: DaemonSet, named: Named) -> Known | None:
    """What the caches show by the name of an object; None where that does not tell whether the workload selects it."""
    namespace = workload.key.namespace
    if named.resource is Resource.PODS:
        pod = caches.pod(namespace, named.reference.name)
        return None if pod is None else Known.of_pod(pod)
    revision = caches.revision(namespace, named.reference.name)
    if revision is None or not revision.is_known_to(workload.selector):
        return None
    return Known.of_revision(revision)


def _check_workload(plan: v1.Plan, workload: DaemonSet) -> None:
    """The plan is for the workload that was asked about."""
    if not plan.HasField("workload"):
        raise ViolationError("it names no workload")
    planned, key = plan.workload, workload.key
    if (planned.kind, planned.namespace, planned.name, planned.uid) != (OWNER_KIND, *key, workload.uid):
        raise ViolationError(
            f"it is for {planned.kind} {planned.namespace}/{planned.name} with uid {quoted(planned.uid)}, "
            f"and was asked for {OWNER_KIND} {key} with uid {quoted(workload.uid)}"
        )


def _check_scope(plan: v1.Plan, actions: Sequence[v1.Action], scope: v1.Scope.ValueType) -> None:
    """A service that does not know of scopes plans for whole workloads."""
    if scope != v1.SCOPE_ROLLOUTS:
        return
    of_rollouts = all(action.WhichOneof("kind") in ("delete_pod", "emit_event") for action in actions)
    if plan.scope != v1.SCOPE_ROLLOUTS or not of_rollouts:
        raise ViolationError(
            "the service planned for the whole workload, and was asked for its rollout alone: "
            "it is too old for --mode companion"
        )


def _named(action: v1.Action, adopted: set[str]) -> Named | None:
    """The object that exists already which an action is about, if there is one."""
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
            # What an action of an unknown kind would write is not known; it is not carried out.
            return None
    if not reference.name:
        raise ViolationError("it names no object", action)
    if not names.is_of_object(reference.name):
        raise ViolationError(f"it names {quoted(reference.name)}, and no object can be called so", action)
    if not reference.uid:
        raise ViolationError(f"it names {reference.name} without a uid", action)
    if orphan is _Orphan.REFUSED and reference.uid in adopted:
        orphan = _Orphan.IF_SELECTED
    return Named(action, resource, reference, orphan)


def _check_precondition(named: Named, asked: Asked) -> None:
    """A delete by name alone takes any object that has the name by then. Only the options may ask for such deletes."""
    action = named.action
    if asked.deletes_with_uid and action.HasField("delete_pod") and not action.delete_pod.uid_precondition:
        raise ViolationError(f"it deletes {named.reference.name} without its uid as a precondition", action)


def _kind_name(action: v1.Action) -> str:
    kind = action.WhichOneof("kind")
    return "unknown" if kind is None else type(getattr(action, kind)).__name__
