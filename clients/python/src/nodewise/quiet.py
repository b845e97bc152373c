"""What is said once a minute, however often it is so."""

import time
from collections.abc import Callable, Hashable

QUIET = 60.0
"""For so many seconds nothing is said again of the same thing."""


class Quiet:
    """Remembers what was said."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells the time in seconds."""
        self._clock = clock
        self._told: dict[Hashable, float] = {}
        """When it was told of what, the longest ago first."""

    def is_due(self, of: Hashable) -> bool:
        """Whether it is to be said of this, which then is not for a while."""
        now = self._clock()
        while self._told and now - next(iter(self._told.values())) >= QUIET:
            del self._told[next(iter(self._told))]
        if of in self._told:
            return False
        self._told[of] = now
        return True
