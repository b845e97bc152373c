"""How often a workload comes back at once, whatever the service says."""

import time
from collections.abc import Callable

from .kinds import Key

SOONEST = 0.1
"""When a workload without a token comes back at the earliest, in seconds."""
MAX_TOKENS = 100
"""Most tokens that a workload has. A rollout over the largest cluster takes fewer in a row than it gets meanwhile."""


class Pace:
    """The tokens of workloads. Each time that one comes back sooner than after `SOONEST` takes a token of it; a new one
    comes after as much time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens: dict[Key, tuple[float, float]] = {}
        """How many there were, and when."""

    def slow(self, key: Key, after: float | None) -> float | None:
        """When a workload comes back that is to come back after this time, in seconds; None for not by itself."""
        if after is None or after >= SOONEST or self._take(key):
            return after
        return SOONEST

    def forget(self, key: Key) -> None:
        """The workload is there no more."""
        self._tokens.pop(key, None)

    def _take(self, key: Key) -> bool:
        now = self._clock()
        left, at = self._tokens.get(key, (MAX_TOKENS, now))
        left = min(left + (now - at) / SOONEST, MAX_TOKENS)
        is_there = left >= 1
        self._tokens[key] = (left - 1 if is_there else left, now)
        return is_there
