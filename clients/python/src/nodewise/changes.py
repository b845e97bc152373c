"""Numbers the changes of the caches, to tell what changed after a snapshot was taken.

If a plan is wrong about an object that changed after its snapshot, the plan was right when it was made. If it is wrong
about any other object, it was not made from that snapshot.
"""

from .kinds import Resource


class Changes:
    """A counter of changes."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the last change."""
        self._removals: dict[Resource, int] = {}

    def next(self) -> int:
        """Returns a new number."""
        self.last += 1
        return self.last

    def removed(self, resource: Resource) -> None:
        """Records that an object of this resource was removed."""
        self._removals[resource] = self.next()

    def removal(self, resource: Resource) -> int:
        """The number of the last removal of an object of this resource."""
        return self._removals.get(resource, 0)
