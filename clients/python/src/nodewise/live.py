"""Objects that were read live, because a plan found their names taken, or because the caches do not show them yet. In a
snapshot they replace the cached objects of their names.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from . import tracing
from .convert import ConversionError
from .kinds import OBJECT_KINDS, Kind, Resource
from .objects import Revision, Workload

_log = tracing.logger(__name__)

MAX_LIVE = 16
"""Most objects of a resource, read live, that are kept for the next plan of a workload: a few for each plan of one
reconcile.
"""

_T = TypeVar("_T", bound=Revision | Workload)


@dataclass(slots=True)
class LiveObjects:
    """Objects that were read live, for the snapshots of one kind of workload."""

    revisions: list[Revision] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    """Workloads of the kind that the workloads of the snapshots control."""

    @classmethod
    def readable(cls, kind: Kind, served: Iterable[tuple[Resource, bytes]]) -> "LiveObjects":
        """Reads the objects that belong in snapshots of this kind of workload. Objects that cannot be read are skipped,
        as the watch does. If an object with a colliding name cannot be read, the next plan does not know it, and the
        workload fails with the collision as its reason.
        """
        live = cls()
        for resource, text in served:
            try:
                if resource is Resource.REVISIONS:
                    live.revisions.append(Revision.read(text))
                elif kind.controls is not None and resource is kind.controls.resource:
                    live.workloads.append(Workload.read(kind.controls, text))
            except ConversionError as error:
                _log.warning("a %s is skipped, because it cannot be read: %s", OBJECT_KINDS[resource], error)
        return live

    def __bool__(self) -> bool:
        return bool(self.revisions or self.workloads)

    def extend(self, others: "LiveObjects") -> None:
        """Adds these objects. They replace those of the same names."""
        self.revisions = _newest(self.revisions, others.revisions)
        self.workloads = _newest(self.workloads, others.workloads)

    def with_newest(self, newest: "LiveObjects") -> "LiveObjects":
        """These objects and the newest ones, each name once, and not too many. A faulty service could have the same
        object read again and again.
        """
        revisions, workloads = _newest(self.revisions, newest.revisions), _newest(self.workloads, newest.workloads)
        return LiveObjects(revisions[-MAX_LIVE:], workloads[-MAX_LIVE:])


def _newest(kept: list[_T], newest: list[_T]) -> list[_T]:
    names = {found.name for found in newest}
    return [found for found in kept if found.name not in names] + newest
