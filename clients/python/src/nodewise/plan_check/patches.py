"""Checks what the patches of a plan change. Each must have the uid of its object: the API refuses it for another
one.
"""

from typing import Any

from .. import v1
from ..apply import patching
from ..kinds import HASH_LABEL
from ..objects import DaemonSet
from .templates import is_owner
from .values import WrongError, is_integer, list_at, object_at, other_than, parse_written, quoted, same

_ADOPTIONS = {"adopt_pod", "adopt_revision"}
_RELEASES = {"release_pod", "release_revision"}


def check(action: v1.Action, uid: str, workload: DaemonSet) -> None:
    """Checks the patch of an action on the object with this uid. Does nothing for other actions. Raises
    `WrongError`.
    """
    patched, kind = patching.of(action), action.WhichOneof("kind")
    if patched is None:
        return
    patch = parse_written(patched.body, "its patch")
    if not isinstance(patch, dict):
        raise WrongError("its patch is no object")
    metadata = object_at(patch, "metadata")
    if metadata.get("uid") != uid:
        raise WrongError(f"its patch does not carry the uid {quoted(uid)}")
    _only(patch, ["metadata", "revision"] if kind == "update_revision" else ["metadata"], "")
    if "revision" in patch and not is_integer(patch["revision"]):
        raise WrongError("its patch sets revision to what is no number")
    if kind in _ADOPTIONS or kind in _RELEASES:
        _only(metadata, ["uid", "ownerReferences"], "metadata.")
        release = {"$patch": "delete", "uid": workload.uid}
        owners = list_at(metadata, "ownerReferences")
        if len(owners) != 1 or not (is_owner(owners[0], workload) if kind in _ADOPTIONS else same(owners[0], release)):
            raise WrongError("its patch changes other owner references than the workload's")
    else:
        _only(metadata, ["uid", "labels"], "metadata.")
        _check_labels(metadata)


def _check_labels(metadata: dict[str, Any]) -> None:
    """Checks that only the hash label is set."""
    if "labels" not in metadata:
        return
    labels = metadata["labels"]
    if not isinstance(labels, dict):
        raise WrongError("its patch sets metadata.labels to what is no object")
    _only(labels, [HASH_LABEL], "metadata.labels.")
    if not all(isinstance(value, str) for value in labels.values()):
        raise WrongError(f"its patch sets label {HASH_LABEL} to what is no string")


def _only(members: dict[str, Any], allowed: list[str], path: str) -> None:
    other = other_than(members, allowed)
    if other is not None:
        raise WrongError(f"its patch changes {path}{other}")
