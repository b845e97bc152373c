"""Limits the ReplicaSets of a Deployment together: no more pods than its size and surge, and no second set of its
template. Otherwise a faulty service could add pods with every plan.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from .. import v1
from ..objects import Workload
from . import kinds, owned, sizes
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
        """The number of pods that it gets. `present` are the sizes by uid. The size of a ReplicaSet that the caches do
        not show is not known, so it does not count.
        """
        return self.size - present.get(self.uid, self.size if self.uid else 0)


def wrong(actions: Sequence[v1.Action], asked: Asked, caches: Caches) -> Iterator[Wrong]:
    """What is wrong with the ReplicaSets that a plan creates and resizes. Raises `WrongError`."""
    sized = list(_sized(actions, asked))
    if not sized:
        return
    workload, sets = parse(asked.workload.object, "the workload"), owned.objects(actions, asked, caches)
    patches = [action.patch_object for action in actions if action.HasField("patch_object")]
    released = {patch.object.uid for patch in patches if patch.claim == v1.CLAIM_RELEASE}
    for created in sized:
        if not created.uid:
            for name in _names_with_template(workload, (found for found in sets if found.uid not in released)):
                changed = caches.changed(asked.controls.resource, asked.workload.key.namespace, name)
                yield created.action, f"{name} of the workload has its template already", changed
    released -= {one.uid for one in sized}
    present = {found.uid: found.replicas for found in sets if found.uid not in released}
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
        size = at(parse(written, "it"), "spec", "replicas")
        if is_integer(size):
            yield _Sized(action, uid, size)


def _names_with_template(workload: Any, sets: Iterable[Workload]) -> Iterator[str]:
    """The names of the ReplicaSets that have the workload's template. `workload` is its JSON."""
    template = without_hash(at(workload, "spec", "template"))
    for found in sets:
        if same(without_hash(at(owned.read(found), "spec", "template")), template):
            yield found.key.name


def _beyond(sized: Sequence[_Sized], present: Mapping[str, int], most: int) -> str | None:
    """Says that all ReplicaSets together get more than `most` pods, and more than they have; None if they do not.
    `present` are their sizes by uid.
    """
    before = sum(present.values())
    # A ReplicaSet may get more than one size; the largest counts.
    planned: dict[str, int] = {}
    for one in sized:
        by = one.growth(present)
        planned[one.uid] = max(by, planned.get(one.uid, by))
    after, most = before + sum(planned.values()), max(most, before)
    if after <= most:
        return None
    return f"the ReplicaSets of the workload have {before} pods, the plan makes that {after}, and {most} is the most"
