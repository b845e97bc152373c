"""The revisions of a namespace, of which only those are kept whole that a DaemonSet needs.

Anyone who may create ControllerRevisions may create any number of them, of more than a megabyte each. Of one that no
DaemonSet controls or selects the metadata is kept, and so it is of those that would be too many for what is sent. When
one of these is to be sent it is read live: see `snapshot.unread`.
"""

from .objects import DaemonSet, Revision

MAX_BYTES = 16 << 20
"""Bytes of the revisions of one snapshot. Anyone who may create revisions in the namespace may make orphans that the
selector matches, and all together must leave room for the rest of the request."""


class Revisions:
    """Those of one namespace."""

    def __init__(self) -> None:
        self.by_name: dict[str, Revision] = {}
        self._bytes = 0

    def put(self, revision: Revision) -> None:
        """Keeps one, in the place of another one of its name."""
        self.remove(revision.name)
        self.by_name[revision.name] = revision
        self._bytes += revision.kept_bytes

    def remove(self, name: str) -> Revision | None:
        """Keeps it no more."""
        revision = self.by_name.pop(name, None)
        self._bytes -= revision.kept_bytes if revision else 0
        return revision

    def has_room_for(self, revision: Revision, daemon_sets: int) -> bool:
        """Whether it fits into what is kept whole, where there are so many DaemonSets."""
        old = self.by_name.get(revision.name)
        besides = self._bytes - (old.kept_bytes if old else 0)
        return besides + revision.kept_bytes <= MAX_BYTES * daemon_sets


def concerns(workload: DaemonSet, revision: Revision) -> bool:
    """Whether a workload controls a revision, or selects one without a controller. One of which too few labels are kept
    to tell it may concern: it has to be read live.
    """
    if revision.controller is not None:
        return revision.controller.uid == workload.uid
    return not revision.is_known_to(workload.selector) or workload.selector.selects(revision.labels)
