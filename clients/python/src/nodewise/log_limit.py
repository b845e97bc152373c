"""Limits a repeated log message to once a minute."""

import time
from collections.abc import Callable, Hashable

PERIOD = 60.0
"""A message is not logged again within this time, in seconds."""


class LogLimit:
    """Remembers the last messages."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns the time in seconds."""
        self._clock = clock
        self._told: dict[Hashable, float] = {}
        """When each message was logged, oldest first."""

    def is_due(self, of: Hashable) -> bool:
        """Whether to log the message of this key now. If so, it is not due again for `PERIOD` seconds."""
        now = self._clock()
        while self._told and now - next(iter(self._told.values())) >= PERIOD:
            del self._told[next(iter(self._told))]
        if of in self._told:
            return False
        self._told[of] = now
        return True
