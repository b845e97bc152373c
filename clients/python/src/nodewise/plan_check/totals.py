"""Limits the ReplicaSets of a Deployment together: no more pods than its size and surge, and no second set of its
template. Otherwise a faulty service could add pods with every plan.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from .. import v1
from ..objects import Workload
from . import kinds, named, owned, sizes
from .asked import Asked, Caches
from .templates import without_hash
from .values import at, is_integer, parse, same

Wrong: TypeAlias = tuple[v1.Action, str, int]
"""An action, what is wrong with it, and the number of the last change of what it is wrong about."""


class _Sized(NamedTuple):
    """A new ReplicaSet, or one that gets another size."""

    action: v1.Action
    uid: str
    """Empty for a new ReplicaSet."""
    size: int

    def growth(self, present: Mapping[str, int]) -> int:
        """The number of pods that it gets. `present` are the sizes by uid. A ReplicaSet that the caches do not show may
        not grow (`Checked.check_live`).
        """
        return self.size - present.get(self.uid, self.size if self.uid else 0)


def wrong(actions: Sequence[v1.Action], asked: Asked, caches: Caches) -> Iterator[Wrong]:
    """What is wrong with the ReplicaSets that a plan creates and resizes. Raises `WrongError`."""
    sized = list(_sized(actions, asked))
    if not sized:
        return
    workload, sets = parse(asked.workload.object, "the workload"), owned.objects(actions, asked, caches)
    patches = [action.patch_object for action in actions if action.HasField("patch_object")]
    released = {named.identity_of(patch.object) for patch in patches if patch.claim == v1.CLAIM_RELEASE}
    for created in sized:
        if not created.uid:
            # The apiserver refuses a set of the same name. The service may not know it, if not all fit into a request.
            known = created.action.create_object.name
            others = [found for found in sets if owned.identity(found) not in released and found.key.name != known]
            for name in _names_with_template(workload, others):
                changed = caches.changed(asked.controls.resource, asked.workload.key.namespace, name)
                yield created.action, f"{name} of the workload has its template already", changed
    resized = {one.uid for one in sized}
    present = {
        found.uid: found.replicas for found in sets if found.uid in resized or owned.identity(found) not in released
    }
    what = _beyond(sized, present, sizes.most(workload))
    if what is not None:
        changed = owned.last_change(sets, asked, caches)
        for one in sized:
            if one.growth(present) > 0:
                yield one.action, what, changed


def _sized(actions: Sequence[v1.Action], asked: Asked) -> Iterator[_Sized]:
    """The new ReplicaSets, and those that get another size."""
    for action, write in kinds.writes(actions, asked):
        match write:
            case kinds.Write.CREATE:
                uid, written = "", action.create_object.manifest
            case kinds.Write.PATCH:
                uid, written = action.patch_object.object.uid, action.patch_object.patch
            case _:
                continue
        size = _size_in(written)
        if size is not None:
            yield _Sized(action, uid, size)


def _size_in(written: bytes) -> int | None:
    """The size that a manifest or a patch sets."""
    size = at(parse(written, "it"), "spec", "replicas")
    return size if is_integer(size) else None


def grows(action: v1.Action, replicas: int) -> bool:
    """Whether an action makes an object larger than it is."""
    size = _size_in(action.patch_object.patch) if action.HasField("patch_object") else None
    return size is not None and size > replicas


def _names_with_template(workload: Any, sets: Iterable[Workload]) -> Iterator[str]:
    """The names of the ReplicaSets that have the workload's template. `workload` is its JSON."""
    template = without_hash(at(workload, "spec", "template"))
    for found in sets:
        if same(without_hash(at(owned.read(found), "spec", "template")), template):
            yield found.key.name


def _beyond(sized: Sequence[_Sized], present: Mapping[str, int], most: int) -> str | None:
    """Says that all ReplicaSets together get more than `most` pods; or, if they have more, that one of them grows. None
    if they do not. `present` are their sizes by uid.

    A ReplicaSet that the plan makes smaller counts, although that write may fail: while a rollout is scaled, one
    ReplicaSet may grow by what another one loses. So they have at most twice as many, once: then none may grow.
    """
    before = sum(present.values())
    # A ReplicaSet may get more than one size; the largest counts.
    planned: dict[str, int] = {}
    for one in sized:
        by = one.growth(present)
        planned[one.uid] = max(by, planned.get(one.uid, by))
    after = before + sum(planned.values())
    grows = any(by > 0 for by in planned.values())
    if not grows or max(before, after) <= most:
        return None
    return f"the ReplicaSets of the workload have {before} pods, the plan makes that {after}, and {most} is the most"
