"""Checks the revision hash of created pods."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence

from .. import v1
from ..kinds import HASH_LABEL
from ..objects import Workload
from .values import at, quoted


def wrong(
    plan: v1.Plan, actions: Sequence[v1.Action], workload: Workload, shown: Iterable[str], left_out: Collection[int]
) -> str | None:
    """What is wrong with the hash of the created pods; None if it is right. It must be the hash of a revision in the
    snapshot (`shown`, with an empty hash for revisions without one), or of a revision that the plan creates or labels.
    """
    own = _hash(plan.pod_manifest)
    # Pods of a revision without the label have the label of the template, if it has one.
    own_or_none = {own, ""} if own in ("", _hash(workload.object, "spec", "template")) else {own}
    written = (_hash(text) for text in _written(actions, left_out))
    # A patch may leave the label unchanged.
    if any(other in own_or_none for other in shown) or own in filter(None, written):
        return None
    return f"it creates pods with the hash {quoted(own)}, which no revision of the workload has"


def _written(actions: Sequence[v1.Action], left_out: Collection[int]) -> Iterator[bytes]:
    """The revision manifests and patches of the plan."""
    for action in actions:
        if action.id in left_out:
            continue
        if action.HasField("create_revision"):
            yield action.create_revision.manifest
        elif action.HasField("update_revision"):
            yield action.update_revision.patch


def _hash(text: bytes, *path: str) -> str:
    """The hash label of the object at a path in JSON; empty if there is none."""
    try:
        found = at(json.loads(text), *path, "metadata", "labels", HASH_LABEL)
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""
