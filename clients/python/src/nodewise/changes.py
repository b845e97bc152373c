"""Numbers for what happens to the caches, so that it can be told what has changed since a snapshot was taken.

A plan that is wrong about something that has changed since its snapshot was right when it was made. One that is wrong
about anything else was not made from it.
"""

from .kinds import Resource


class Changes:
    """The numbers."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the last change."""
        self._removals: dict[Resource, int] = {}

    def next(self) -> int:
        """The number of another change."""
        self.last += 1
        return self.last

    def removed(self, resource: Resource) -> None:
        """An object of this resource is gone."""
        self._removals[resource] = self.next()

    def removal(self, resource: Resource) -> int:
        """The last change that took an object of this resource out."""
        return self._removals.get(resource, 0)
