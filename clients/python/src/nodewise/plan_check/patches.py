"""Checks what the patches of a plan change. Each must have the uid of its object: the API refuses it for another
one.
"""

from collections.abc import Iterable
from typing import Any

from .. import v1
from ..apply import patching
from ..kinds import HASH_LABEL
from ..objects import Workload
from .templates import is_owner
from .values import WrongError, is_integer, list_at, object_at, other_than, parse_written, quoted, same

_ADOPTIONS = {"adopt_pod", "adopt_revision"}
_RELEASES = {"release_pod", "release_revision"}


def check(action: v1.Action, uid: str, workload: Workload) -> None:
    """Checks the patch of an action on the pod or revision with this uid. Does nothing for other actions. Raises
    `WrongError`.
    """
    patched, kind = patching.of(action), action.WhichOneof("kind")
    if patched is None:
        return
    patch = parse_patch(patched.body, uid)
    metadata = object_at(patch, "metadata")
    only(patch, ["metadata", "revision"] if kind == "update_revision" else ["metadata"], "")
    if "revision" in patch and not is_integer(patch["revision"]):
        raise WrongError("its patch sets revision to what is no number")
    if kind in _ADOPTIONS or kind in _RELEASES:
        check_owner(metadata, workload, adopts=kind in _ADOPTIONS)
    else:
        only(metadata, ["uid", "labels"], "metadata.")
        _check_labels(metadata)


def parse_patch(text: bytes, uid: str) -> dict[str, Any]:
    """Reads the patch of the object with this uid. It must carry the uid. Raises `WrongError`."""
    patch = parse_written(text, "its patch")
    if not isinstance(patch, dict):
        raise WrongError("its patch is no object")
    if object_at(patch, "metadata").get("uid") != uid:
        raise WrongError(f"its patch does not carry the uid {quoted(uid)}")
    return patch


def check_owner(metadata: dict[str, Any], workload: Workload, *, adopts: bool) -> None:
    """Checks that a claim changes only the workload's own owner reference. Raises `WrongError`."""
    only(metadata, ["uid", "ownerReferences"], "metadata.")
    release = {"$patch": "delete", "uid": workload.uid}
    owners = list_at(metadata, "ownerReferences")
    if len(owners) != 1 or not (is_owner(owners[0], workload) if adopts else same(owners[0], release)):
        raise WrongError("its patch changes other owner references than the workload's")


def check_objects(patch: dict[str, Any]) -> None:
    """Checks that the members of a patch are objects: a null in a merge patch removes the whole member. Raises
    `WrongError`.
    """
    for member in sorted(patch):
        if not isinstance(patch[member], dict):
            raise WrongError(f"its patch sets {member} to what is no object")


def _check_labels(metadata: dict[str, Any]) -> None:
    """Checks that only the hash label is set."""
    if "labels" not in metadata:
        return
    labels = metadata["labels"]
    if not isinstance(labels, dict):
        raise WrongError("its patch sets metadata.labels to what is no object")
    only(labels, [HASH_LABEL], "metadata.labels.")
    if not all(isinstance(value, str) for value in labels.values()):
        raise WrongError(f"its patch sets label {HASH_LABEL} to what is no string")


def type_name(patch_type: v1.PatchType.ValueType) -> str:
    """The name of the format of a patch, for messages."""
    known = patch_type if patch_type in v1.PatchType.values() else v1.PATCH_TYPE_UNSPECIFIED
    return v1.PatchType.Name(known)


def only(members: dict[str, Any], allowed: Iterable[str], path: str) -> None:
    """Checks that a patch has no other members. Raises `WrongError`."""
    other = other_than(members, allowed)
    if other is not None:
        raise WrongError(f"its patch changes {path}{other}")
