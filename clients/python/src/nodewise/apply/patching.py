"""Actions that patch an object, and what a refusal of each means."""

from typing import NamedTuple

from .. import v1
from ..actuator import ActuatorError, PatchType, Refusal
from ..kinds import HASH_LABEL, ObjectKey, Resource


class Patching(NamedTuple):
    """One patch."""

    resource: Resource
    type: PatchType
    gone: frozenset[Refusal]
    """Refusals that mean: not the planned object any more, so not ours, and no error (D-23)."""
    object: v1.ObjectReference
    body: bytes


_NEVER: frozenset[Refusal] = frozenset()
_ADOPT = frozenset({Refusal.NOT_FOUND})
_RELEASE = frozenset({Refusal.NOT_FOUND, Refusal.INVALID})  # a wrong uid is answered with 422


def of(action: v1.Action) -> Patching | None:
    """The patch that an action is, if it is one."""
    match action.WhichOneof("kind"):
        case "update_revision":
            update = action.update_revision
            return Patching(Resource.REVISIONS, PatchType.MERGE, _NEVER, update.revision, update.patch)
        case "adopt_revision":
            adopt = action.adopt_revision
            return Patching(Resource.REVISIONS, PatchType.STRATEGIC, _ADOPT, adopt.revision, adopt.patch)
        case "release_revision":
            release = action.release_revision
            return Patching(Resource.REVISIONS, PatchType.STRATEGIC, _RELEASE, release.revision, release.patch)
        case "adopt_pod":
            pod = action.adopt_pod
            return Patching(Resource.PODS, PatchType.STRATEGIC, _ADOPT, pod.pod, pod.patch)
        case "release_pod":
            released = action.release_pod
            return Patching(Resource.PODS, PatchType.STRATEGIC, _RELEASE, released.pod, released.patch)
        case "relabel_pod":
            relabel = action.relabel_pod
            return Patching(Resource.PODS, PatchType.MERGE, _NEVER, relabel.pod, relabel.patch)
    return None


class Seal(NamedTuple):
    """Why the apiserver refuses every change of an object as it is, as an Event tells it."""

    reason: str
    message: str
    ends_plan: bool = True
    """Whether the rest of the plan rests on the change. The plan goes on without a relabelled pod: the next one decides
    about it by the label that it has.
    """


def seal_of(action: v1.Action, key: ObjectKey, error: ActuatorError) -> Seal | None:
    """What a refusal says of the object. It is told of revisions, and of pods that are to be adopted or relabelled:
    without these there is a plan.
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
    """Whether an object is refused since it would be too large: by the apiserver, by etcd, or by the apiserver's client
    of etcd, which has no status of their own for that.
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
    """Whether a revision is refused for its data, which is in none of our patches: the apiserver spells `<`, `>` and
    `&` as escapes whenever it writes an object anew, and leaves out blanks; for a strategic merge patch it spells
    numbers and strings its own way, too. Where a client stored them otherwise it then finds the data changed, whatever
    is asked.
    """
    if error.refusal is not Refusal.INVALID:
        return False
    _, invalid, errors = error.message.partition(" is invalid: ")
    return bool(invalid) and (errors.startswith(("data: ", "[data: ")) or ", data: " in errors)
