"""The objects that a plan changes or deletes, and which of them it may touch."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .. import v1
from ..apply.patching import is_adoption
from ..kinds import KIND_OF, OBJECT_KINDS, Key, Resource
from ..objects import Owner, Pod, Revision, Workload, owner_of
from . import names
from .asked import Asked, Caches, ViolationError
from .policies import is_of_policy
from .values import quoted

_OF_REVISIONS = ("update_revision", "delete_revision", "adopt_revision", "release_revision")
_OF_PODS = ("adopt_pod", "release_pod", "relabel_pod", "delete_pod", "evict_pod")
_RELEASES = ("release_pod", "release_revision")


class ObjectState(NamedTuple):
    """The uid, controller, labels and replicas of an object."""

    uid: str
    controller: Owner | None
    labels: Mapping[str, str]
    replicas: int = 0
    """spec.replicas, or its default. 0 for pods and revisions."""

    @classmethod
    def of_pod(cls, pod: v1.Pod) -> "ObjectState":
        """The state of a pod."""
        controller = owner_of(pod.controller) if pod.HasField("controller") else None
        return cls(pod.uid, controller, {label.key: label.value for label in pod.labels})

    @classmethod
    def of_revision(cls, revision: Revision) -> "ObjectState":
        """The state of a revision."""
        return cls(revision.uid, revision.controller, revision.labels)

    @classmethod
    def of_workload(cls, workload: Workload) -> "ObjectState":
        """The state of a workload."""
        return cls(workload.uid, workload.controller, workload.labels, workload.replicas)

    @classmethod
    def read(cls, resource: Resource, served: bytes) -> "ObjectState":
        """Reads an object of this resource. Raises `ConversionError`."""
        if resource is Resource.PODS:
            return cls.of_pod(Pod.read(served).projection)
        if resource is Resource.REVISIONS:
            return cls.of_revision(Revision.read(served))
        return cls.of_workload(Workload.read(KIND_OF[resource], served))

    @classmethod
    def cached(cls, caches: Caches, asked: Asked, target: "Target") -> "ObjectState | None":
        """The cached state of an object. None if the caches do not have it, or do not have its labels."""
        namespace, name = asked.workload.key.namespace, target.reference.name
        if target.resource is Resource.PODS:
            pod = caches.pod(namespace, name)
            return None if pod is None else cls.of_pod(pod)
        if target.resource is Resource.REVISIONS:
            revision = caches.revision(namespace, name)
            if revision is None or not revision.is_known_to(asked.workload.selector):
                return None
            return cls.of_revision(revision)
        workload = caches.workload(Key(namespace, name, KIND_OF[target.resource].name))
        return None if workload is None else cls.of_workload(workload)


class Orphan(enum.Enum):
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
    reference: v1.ObjectReference
    """Its name and uid."""
    orphan: Orphan

    def __str__(self) -> str:
        kind = "pod" if self.resource is Resource.PODS else OBJECT_KINDS[self.resource]
        return f"{kind} {self.reference.name}"


class Identity(NamedTuple):
    """The name and the uid of an object. A service could send the uid of one object with the name of another, or of
    none. Such an action does nothing to the first one.
    """

    name: str
    uid: str


def identity_of(reference: v1.ObjectReference) -> Identity:
    """The name and the uid that a reference has."""
    return Identity(reference.name, reference.uid)


def adopted(actions: Sequence[v1.Action], asked: Asked) -> set[Identity]:
    """The objects that a plan adopts."""
    found = (_object(action, asked) for action in actions if is_adoption(action))
    return {identity_of(reference) for _, reference in filter(None, found)}


def target_of(action: v1.Action, asked: Asked, adopted: set[Identity]) -> Target | None:
    """The existing object that an action is about; None if there is none. Raises `ViolationError`."""
    named = _object(action, asked)
    if named is None:
        # Also for an action of an unknown kind: it is not carried out.
        return None
    resource, reference = named
    if not reference.name:
        raise ViolationError("it names no object", action)
    if not names.is_of_object(reference.name):
        raise ViolationError(f"it names {quoted(reference.name)}, and no object can be called so", action)
    if not reference.uid:
        raise ViolationError(f"it names {reference.name} without a uid", action)
    if _is_release(action):
        orphan = Orphan.ACCEPTED
    else:
        orphan = Orphan.IF_SELECTED if identity_of(reference) in adopted else Orphan.REFUSED
    return Target(action, resource, reference, orphan)


def _object(action: v1.Action, asked: Asked) -> tuple[Resource, v1.ObjectReference] | None:
    """The resource and the reference of an object, other than the workload and its RolloutPolicies, that an action
    changes or deletes.
    """
    kind = action.WhichOneof("kind")
    if kind == "patch_object":
        if is_of_policy(action.patch_object):
            return None
        reference = action.patch_object.object
        return None if asked.is_workload(reference) else (asked.controls.resource, reference)
    if kind == "delete_object":
        return asked.controls.resource, action.delete_object.object
    if kind in _OF_REVISIONS:
        return Resource.REVISIONS, getattr(action, kind).revision
    if kind in _OF_PODS:
        return Resource.PODS, getattr(action, kind).pod
    return None


def _is_release(action: v1.Action) -> bool:
    if action.HasField("patch_object"):
        return action.patch_object.claim == v1.CLAIM_RELEASE
    return action.WhichOneof("kind") in _RELEASES


def check_precondition(target: Target, asked: Asked) -> None:
    """Checks the uid precondition. A delete by name alone takes any object of that name. Only the options may ask for
    such deletes.
    """
    action = target.action
    if asked.deletes_with_uid and action.HasField("delete_pod") and not action.delete_pod.uid_precondition:
        raise ViolationError(f"it deletes {target.reference.name} without its uid as a precondition", action)


def wrong(target: Target, asked: Asked, known: ObjectState) -> str | None:
    """Why an action may not touch this object: the workload does not control it, and it is not an orphan that the
    action may touch; or it is deleted and should still have pods. None if the action may.
    """
    what = _wrong_controller(target, asked, known)
    if what is None and target.action.HasField("delete_object") and known.replicas != 0:
        what = f"has spec.replicas {known.replicas}"
    return None if what is None else f"{target} {what}"


def _wrong_controller(target: Target, asked: Asked, known: ObjectState) -> str | None:
    workload, controller = asked.workload, known.controller
    if controller is not None:
        if controller.uid != workload.uid:
            of = f"{controller.kind} {controller.name} with uid {quoted(controller.uid)}"
            return f"is controlled by {of}, not by the workload"
        if _is_release(target.action) and workload.selector.selects(known.labels):
            return "is selected by the workload, and the plan releases it"
    elif target.orphan is Orphan.REFUSED:
        return "has no controller, and the plan does not adopt it"
    elif target.orphan is Orphan.IF_SELECTED and not workload.selector.selects(known.labels):
        return "is not selected by the workload"
    return None
