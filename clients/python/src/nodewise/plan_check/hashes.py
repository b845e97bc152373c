"""The hash that pods to create carry, which says of which revision they are."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence

from .. import v1
from ..kinds import HASH_LABEL
from ..objects import DaemonSet
from .values import at, quoted


def wrong(
    plan: v1.Plan, actions: Sequence[v1.Action], workload: DaemonSet, shown: Iterable[str], left_out: Collection[int]
) -> str | None:
    """What is wrong with the hash of the pods that a plan creates, if anything: it is that of a revision which the
    snapshot shows (`shown` are their hashes, empty for those without one), or which the plan creates or labels.
    """
    own = _hash(plan.pod_manifest)
    # Pods of a revision without the label have the template's own, if it has one.
    own_or_none = {own, ""} if own in ("", _hash(workload.object, "spec", "template")) else {own}
    written = (_hash(text) for text in _written(actions, left_out))
    # A patch may leave the label as it is.
    if any(other in own_or_none for other in shown) or own in filter(None, written):
        return None
    return f"it creates pods with the hash {quoted(own)}, which no revision of the workload has"


def _written(actions: Sequence[v1.Action], left_out: Collection[int]) -> Iterator[bytes]:
    """What the plan writes of revisions."""
    for action in actions:
        if action.id in left_out:
            continue
        if action.HasField("create_revision"):
            yield action.create_revision.manifest
        elif action.HasField("update_revision"):
            yield action.update_revision.patch


def _hash(text: bytes, *path: str) -> str:
    """The hash label in JSON, of what a path leads to; empty where there is none."""
    try:
        found = at(json.loads(text), *path, "metadata", "labels", HASH_LABEL)
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""
