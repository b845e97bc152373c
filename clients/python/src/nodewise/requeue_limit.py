"""Limits how often a workload is reconciled again at once, whatever the service says."""

import time
from collections.abc import Callable

from .kinds import Key

MIN_DELAY = 0.1
"""The minimum delay, in seconds, of a workload without a token."""
MAX_TOKENS = 100
"""Most tokens of a workload. A rollout over the largest cluster needs fewer in a row than it gains meanwhile."""


class RequeueLimit:
    """A token bucket for each workload. A requeue with a delay below `MIN_DELAY` takes one token, and a new token comes
    every `MIN_DELAY`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens: dict[Key, tuple[float, float]] = {}
        """The number of tokens, and the time of that count."""

    def delay(self, key: Key, after: float | None) -> float | None:
        """The delay for a workload that asks for this delay, in seconds. None means no requeue."""
        if after is None or after >= MIN_DELAY or self._take(key):
            return after
        return MIN_DELAY

    def forget(self, key: Key) -> None:
        """Drops the tokens of a workload that is gone."""
        self._tokens.pop(key, None)

    def _take(self, key: Key) -> bool:
        now = self._clock()
        left, at = self._tokens.get(key, (MAX_TOKENS, now))
        left = min(left + (now - at) / MIN_DELAY, MAX_TOKENS)
        is_there = left >= 1
        self._tokens[key] = (left - 1 if is_there else left, now)
        return is_there
