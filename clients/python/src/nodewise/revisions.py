"""The cached revisions of a namespace. Only those that a DaemonSet needs are cached completely.

Anyone who may create ControllerRevisions may create any number, of more than a megabyte each. The cache has only the
metadata of a revision that no DaemonSet controls or selects, or that would exceed the size limit. If such a revision
has to be sent, it is read live: see `snapshot.unread`.
"""

from .objects import Revision, Workload

MAX_BYTES = 16 << 20
"""Most bytes of the revisions of one snapshot. Anyone who may create revisions in the namespace may create orphans that
the selector matches. Together they must leave space for the rest of the request.
"""


class Revisions:
    """The revisions of one namespace."""

    def __init__(self) -> None:
        self.by_name: dict[str, Revision] = {}
        self._bytes = 0

    def put(self, revision: Revision) -> None:
        """Adds or replaces a revision."""
        self.remove(revision.name)
        self.by_name[revision.name] = revision
        self._bytes += revision.kept_bytes

    def remove(self, name: str) -> Revision | None:
        """Removes a revision."""
        revision = self.by_name.pop(name, None)
        self._bytes -= revision.kept_bytes if revision else 0
        return revision

    def has_room_for(self, revision: Revision, workloads: int) -> bool:
        """Whether the complete revision fits into the cache, with this number of workloads that have
        revisions in the namespace.
        """
        old = self.by_name.get(revision.name)
        besides = self._bytes - (old.kept_bytes if old else 0)
        return besides + revision.kept_bytes <= MAX_BYTES * workloads


def concerns(workload: Workload, revision: Revision) -> bool:
    """Whether a workload controls a revision, or selects an orphan. True also if too few labels are cached to decide:
    the revision has to be read live.
    """
    if revision.controller is not None:
        return revision.controller.uid == workload.uid
    return not revision.is_known_to(workload.selector) or workload.selector.selects(revision.labels)
