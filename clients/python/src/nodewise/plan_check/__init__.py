"""Whether a plan may be applied (rule W15 of docs/writing-an-executor.md).

The executor holds the rights in the cluster, so it checks everything that the service says before the first write.

The check is pure: it looks at the plan, at what was asked and at the caches. An object that the caches do not show, or
do not show with this uid, is handed back: it may be gone since the snapshot, or it may be another workload's. One live
read tells which.
"""

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .. import convert, v1
from ..actions import actions_of
from ..actuator import Actuator, ActuatorError, Refusal
from ..kinds import OWNER_KIND, ObjectKey, Resource
from ..objects import DaemonSet, Owner, Pod, Revision, owner_of
from ..options import DEFAULT_BURST
from ..told import in_short
from . import bounds, events, manifests, names, patches
from .values import WrongError, quoted

MAX_UNSEEN = 100
"""Most objects of one plan that are read live. When more of them are gone, the snapshot is too old to act on."""


_RELEASES = ("release_pod", "release_revision")


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

    def live_pods(self, workload: DaemonSet, nodes: Collection[str]) -> dict[str, int]:
        """Of these nodes those that there are, and how many pods of a workload live on each or are meant for it: those
        that it controls and selects, but for those that have finished or are being deleted.
        """


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan has to answer."""

    workload: DaemonSet
    """The workload as the snapshot had it."""
    scope: v1.Scope.ValueType = v1.SCOPE_UNSPECIFIED
    """What was to be decided of the workload."""
    live: Sequence[Revision] = ()
    """Revisions of the snapshot that were read live."""
    deletes_with_uid: bool = True
    """Every delete of a pod carries the pod's uid as a precondition, as the options say that were sent."""
    burst: int = DEFAULT_BURST
    """Most creates, and separately most deletes, of pods."""
    decides_after_cut: bool = True
    """Failed pods beyond the burst are left to later plans, so that no Events are due for them, as the options say."""


class ViolationError(Exception):
    """Why a plan must not be applied."""

    def __init__(self, what: str, action: v1.Action | None = None, contradicts: str | None = None) -> None:
        """`contradicts` is what is not as the plan takes it to be, if that is what is wrong: the uid of an object, or
        `node/` and the name of a node. It may have been so when the snapshot was taken.
        """
        self.what = in_short(what)
        self.contradicts = None if contradicts is None else in_short(contradicts)
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

    def check_live(self, asked: Asked, served: bytes) -> None:
        """Checks an object that the caches do not show, as it was read live. One that is gone, or has been replaced, is
        no violation: the write finds that out by the uid. Raises `ViolationError`.
        """
        try:
            if self.resource is Resource.PODS:
                known = Known.of_pod(Pod.read(served).projection)
            else:
                known = Known.of_revision(Revision.read(served))
        except convert.ConversionError as error:
            raise ViolationError(f"{self} cannot be read: {error}", self.action) from error
        if known.uid == self.reference.uid:
            self.check_controller(asked, known)
        elif self.action.HasField("delete_pod") and not self.action.delete_pod.uid_precondition:
            # Without a precondition the delete would take the other object.
            raise self._violation(f"has the uid {known.uid} by now, and the delete carries none")

    def check_controller(self, asked: Asked, known: Known) -> None:
        """The object is the workload's, or it is an orphan and may be. Raises `ViolationError`."""
        controller = known.controller
        if controller is not None:
            if controller.uid != asked.workload.uid:
                of = f"{controller.kind} {controller.name} with uid {quoted(controller.uid)}"
                raise self._violation(f"is controlled by {of}, not by the workload")
            if self.action.WhichOneof("kind") in _RELEASES and asked.workload.selector.selects(known.labels):
                raise self._violation("is selected by the workload, and the plan releases it")
        elif self.orphan is _Orphan.REFUSED:
            raise self._violation("has no controller, and the plan does not adopt it")
        elif self.orphan is _Orphan.IF_SELECTED and not asked.workload.selector.selects(known.labels):
            raise self._violation("is not selected by the workload")

    def _violation(self, what: str) -> ViolationError:
        return ViolationError(f"{self} {what}", self.action, self.reference.uid)

    def __str__(self) -> str:
        kind = "pod" if self.resource is Resource.PODS else "ControllerRevision"
        return f"{kind} {self.reference.name}"


def check(plan: v1.Plan, asked: Asked, caches: Caches) -> list[Named]:
    """Checks a plan. Answers with the objects that have to be read live before it may be applied. Raises
    `ViolationError`.
    """
    _check_workload(plan, asked.workload)
    actions = list(actions_of(plan))
    _check_scope(plan, actions, asked.scope)
    with _violation():
        bounds.check(plan, actions, asked.burst, asked.decides_after_cut)
    nodes = bounds.Nodes()
    for action in actions:
        with _violation(action):
            nodes.check(action)
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
    _check_nodes(actions, nodes.names, asked.workload, caches)
    unseen = []
    for named in every_named:
        known = _known(caches, asked.workload, named)
        if known is None or known.uid != named.reference.uid:
            unseen.append(named)
        else:
            named.check_controller(asked, known)
    return unseen


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


async def check_with_reads(plan: v1.Plan, asked: Asked, caches: Caches, actuator: Actuator) -> None:
    """Checks a plan, and reads live what the caches do not show. Raises `ViolationError`, and `UnclearError` when the
    plan cannot be judged now.
    """
    unseen = check(plan, asked, caches)
    if len(unseen) > MAX_UNSEEN:
        raise UnclearError(
            f"the plan names {len(unseen)} objects that the caches do not show; "
            "the snapshot it was made from is too old"
        )
    for named in unseen:
        key = ObjectKey(named.resource, asked.workload.key.namespace, named.reference.name)
        try:
            served = await actuator.read(key)
        except Exception as raised:
            error = ActuatorError.of(raised)
            if error.refusal is Refusal.NOT_FOUND:
                continue
            reason = f"reading {key}, which the plan names: {error.message}"
            raise UnclearError(reason, error.http_status) from raised
        named.check_live(asked, served)


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


def _check_nodes(actions: Sequence[v1.Action], names: Collection[str], workload: DaemonSet, caches: Caches) -> None:
    """Pods are created for nodes that exist and do not have too many. Nodes and pods may have changed since the
    snapshot.
    """
    if not names:
        return
    live = caches.live_pods(workload, names)
    for action in actions:
        if action.HasField("create_pod"):
            name = action.create_pod.node_name
            wrong = bounds.wrong_node(name, live)
            if wrong is not None:
                raise ViolationError(wrong, action, f"node/{name}")


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
