"""Actions that patch an object, and what a refusal of each means."""

from typing import NamedTuple

from .. import v1
from ..actuator import ActuatorError, PatchType, Refusal
from ..kinds import Resource


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


def is_sealed(resource: Resource, error: ActuatorError) -> bool:
    """Whether a revision is refused for its data, which is in none of our patches: the apiserver spells `<`, `>` and
    `&` as escapes whenever it writes an object anew, and leaves out blanks; for a strategic merge patch it spells
    numbers and strings its own way, too. Where a client stored them otherwise it then finds the data changed, whatever
    is asked.
    """
    if resource is not Resource.REVISIONS or error.refusal is not Refusal.INVALID:
        return False
    _, invalid, errors = error.message.partition(" is invalid: ")
    return bool(invalid) and (errors.startswith(("data: ", "[data: ")) or ", data: " in errors)
