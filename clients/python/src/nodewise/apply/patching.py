"""Actions that patch an object, and what each refusal of a patch means."""

from typing import NamedTuple

from .. import v1
from ..actuator import ActuatorError, PatchType, Refusal
from ..kinds import HASH_LABEL, ObjectKey, Resource


class PatchRequest(NamedTuple):
    """One patch."""

    resource: Resource
    type: PatchType
    gone: frozenset[Refusal]
    """Refusals that mean that the planned object is gone. They are not failures (D-23)."""
    object: v1.ObjectReference
    body: bytes


_NEVER: frozenset[Refusal] = frozenset()
_ADOPT = frozenset({Refusal.NOT_FOUND})
_RELEASE = frozenset({Refusal.NOT_FOUND, Refusal.INVALID})  # the apiserver answers 422 for a wrong uid


def of(action: v1.Action) -> PatchRequest | None:
    """The patch of an action; None if the action is not a patch."""
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
            return PatchRequest(Resource.PODS, PatchType.STRATEGIC, _ADOPT, pod.pod, pod.patch)
        case "release_pod":
            released = action.release_pod
            return PatchRequest(Resource.PODS, PatchType.STRATEGIC, _RELEASE, released.pod, released.patch)
        case "relabel_pod":
            relabel = action.relabel_pod
            return PatchRequest(Resource.PODS, PatchType.MERGE, _NEVER, relabel.pod, relabel.patch)
    return None


class Seal(NamedTuple):
    """Why the apiserver refuses every change of an object, in the words of an Event."""

    reason: str
    message: str
    ends_plan: bool = True
    """Whether the rest of the plan depends on the change. The plan continues without a relabelled pod: the next plan
    decides by the label that the pod has.
    """


def seal_of(action: v1.Action, key: ObjectKey, error: ActuatorError) -> Seal | None:
    """Classifies a refusal. Only revisions, and pods to adopt or to relabel, can be sealed: there is a plan without
    changing them.
    """
    is_revision = key.resource is Resource.REVISIONS
    if is_revision and _is_of_another_form(error):
        return Seal(
            "SealedRevision",
            f"The API server refuses every change of {key}, whose data was written in another form than its own; it is "
            "left out and can be deleted",
        )
    if (is_revision or action.HasField("adopt_pod")) and _is_too_large(error):
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
