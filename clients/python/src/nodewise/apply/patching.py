"""Actions that patch an object, and what each refusal of a patch means."""

import json
from typing import NamedTuple

from .. import convert, v1
from ..actuator import ActuatorError, PatchType, Refusal
from ..kinds import HASH_LABEL, ObjectKey, Resource
from ..manifest import locate


class PatchRequest(NamedTuple):
    """One patch."""

    resource: Resource
    type: PatchType
    gone: frozenset[Refusal]
    """Refusals that mean that the planned object is gone. They are not failures (D-23)."""
    object: v1.ObjectReference
    body: bytes
    subresource: str = ""
    """`status`, or empty for the object itself."""
    is_recorded: bool = False
    """Whether the caches must show the write before the next plan (D-109)."""


_NEVER: frozenset[Refusal] = frozenset()
_ADOPT = frozenset({Refusal.NOT_FOUND})
_RELEASE = frozenset({Refusal.NOT_FOUND, Refusal.INVALID})  # the apiserver answers 422 for a wrong uid


def of(action: v1.Action) -> PatchRequest | None:
    """The patch of an action on a pod or a revision; None if the action is not such a patch."""
    match action.WhichOneof("kind"):
        case "update_revision":
            update = action.update_revision
            return PatchRequest(Resource.REVISIONS, PatchType.MERGE, _NEVER, update.revision, update.patch)
        case "adopt_revision":
            adopt = action.adopt_revision
            return PatchRequest(Resource.REVISIONS, PatchType.STRATEGIC, _ADOPT, adopt.revision, adopt.patch)
        case "release_revision":
            release = action.release_revision
            return PatchRequest(Resource.REVISIONS, PatchType.STRATEGIC, _RELEASE, release.revision, release.patch)
        case "adopt_pod":
            pod = action.adopt_pod
            return PatchRequest(Resource.PODS, PatchType.STRATEGIC, _ADOPT, pod.pod, pod.patch, is_recorded=True)
        case "release_pod":
            released = action.release_pod
            return PatchRequest(Resource.PODS, PatchType.STRATEGIC, _RELEASE, released.pod, released.patch)
        case "relabel_pod":
            relabel = action.relabel_pod
            return PatchRequest(Resource.PODS, PatchType.MERGE, _NEVER, relabel.pod, relabel.patch)
    return None


_TYPES = {v1.PATCH_TYPE_MERGE: PatchType.MERGE, v1.PATCH_TYPE_STRATEGIC_MERGE: PatchType.STRATEGIC}
_GONE = {v1.CLAIM_UNSPECIFIED: _NEVER, v1.CLAIM_ADOPT: _ADOPT, v1.CLAIM_RELEASE: _RELEASE}


def of_object(resource: Resource, patch: v1.PatchObject, failure: str) -> PatchRequest:
    """The patch of an action on an object of any resource. `failure` is the first error of the plan so far; empty if
    there is none. Raises `ActuatorError`.
    """
    if patch.subresource not in ("", "status"):
        raise ActuatorError(f"this executor does not know the subresource {patch.subresource!r}")
    if patch.patch_type not in _TYPES:
        raise ActuatorError(f"this executor does not know the patch_type {patch.patch_type}")
    if patch.claim not in _GONE:
        raise ActuatorError(f"this executor does not know the claim {patch.claim}")
    return PatchRequest(
        resource,
        _TYPES[patch.patch_type],
        _GONE[patch.claim],
        patch.object,
        _with_failure(patch.patch, patch.failure_pointer, failure),
        patch.subresource,
        is_recorded=True,
    )


def _with_failure(patch: bytes, pointer: str, failure: str) -> bytes:
    """The patch with `failure` appended to the string at `pointer`. An empty pointer leaves the patch as it is."""
    if not pointer:
        return patch
    try:
        whole = json.loads(patch)
    except (ValueError, RecursionError) as error:
        raise ActuatorError(f"the action's patch cannot be read: {error}") from error
    found = locate(whole, pointer)
    if found is None:
        raise ActuatorError(f"the action's patch has no string at failure_pointer {pointer!r}")
    parent, member = found
    parent[member] += failure
    return convert.to_json(whole)


def is_create(action: v1.Action) -> bool:
    """Whether an action creates an object."""
    return action.WhichOneof("kind") in ("create_pod", "create_revision", "create_object")


def is_adoption(action: v1.Action) -> bool:
    """Whether an action makes the workload the controller of an object. A workload that is being deleted must not adopt
    (D-27).
    """
    if action.HasField("patch_object"):
        return action.patch_object.claim == v1.CLAIM_ADOPT
    return action.WhichOneof("kind") in ("adopt_pod", "adopt_revision")


class Seal(NamedTuple):
    """Why the apiserver refuses every change of an object, in the words of an Event."""

    reason: str
    message: str
    ends_plan: bool = True
    """Whether the rest of the plan depends on the change. The plan continues without a relabelled pod: the next plan
    decides by the label that the pod has.
    """


def seal_of(action: v1.Action, key: ObjectKey, error: ActuatorError) -> Seal | None:
    """Classifies a refusal. Only revisions, objects to adopt, and pods to relabel can be sealed: there is a plan
    without changing them.
    """
    is_revision = key.resource is Resource.REVISIONS
    if is_revision and _is_of_another_form(error):
        return Seal(
            "SealedRevision",
            f"The API server refuses every change of {key}, whose data was written in another form than its own; it is "
            "left out and can be deleted",
        )
    if (is_revision or is_adoption(action)) and _is_too_large(error):
        return Seal(
            "ObjectTooLarge", f"{key} is too large to be changed, and is left out until it is smaller: {error.message}"
        )
    if action.HasField("relabel_pod") and _is_too_large(error):
        message = f"{key} is too large to be changed, and keeps its label {HASH_LABEL}: {error.message}"
        return Seal("ObjectTooLarge", message, ends_plan=False)
    return None


def _is_too_large(error: ActuatorError) -> bool:
    """Whether the apiserver, etcd, or the apiserver's etcd client refused an object because it would be too large. The
    last two have no HTTP status of their own for that.
    """
    match error.http_status:
        case 413:
            return True
        case 422:
            return ": Too long: " in error.message
        case 500:
            return "request is too large" in error.message or "trying to send message larger than max" in error.message
    return False


def _is_of_another_form(error: ActuatorError) -> bool:
    """Whether a revision was refused because of its data, which no patch of this executor contains. When the apiserver
    writes an object, it escapes `<`, `>` and `&` and drops whitespace. For a strategic merge patch it also respells
    numbers and strings. If a client stored the data in another form, the apiserver finds the data changed by any patch.
    """
    if error.refusal is not Refusal.INVALID:
        return False
    _, invalid, errors = error.message.partition(" is invalid: ")
    return bool(invalid) and (errors.startswith(("data: ", "[data: ")) or ", data: " in errors)
