"""DaemonSets whose selectors match the same orphan."""

import time
from collections.abc import Callable, Sequence

from . import tracing
from .kinds import Key

_log = tracing.logger(__name__)

QUIET = 60.0
"""For so many seconds nothing is said again of the same DaemonSets: the labels of an orphan may change all the time."""


class Overlaps:
    """Tells of DaemonSets of one namespace that select the same orphan."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells the time in seconds."""
        self._clock = clock
        self._told: dict[tuple[Key, ...], float] = {}
        """When it was told of which, the longest ago first."""

    def tell(self, keys: Sequence[Key]) -> None:
        """Tells of these, which are ordered by name, unless it did so a moment ago."""
        now, of = self._clock(), tuple(keys)
        while self._told and now - next(iter(self._told.values())) >= QUIET:
            del self._told[next(iter(self._told))]
        if of in self._told:
            return
        self._told[of] = now
        _log.warning(
            "several DaemonSets of %s select the same orphan, their selectors overlap: %s",
            keys[0].namespace,
            ", ".join(key.name for key in keys),
        )
