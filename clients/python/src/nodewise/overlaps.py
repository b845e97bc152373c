"""DaemonSets whose selectors match the same orphan."""

import time
from collections.abc import Callable, Sequence

from . import tracing
from .kinds import Key
from .quiet import Quiet

_log = tracing.logger(__name__)


class Overlaps:
    """Tells of DaemonSets of one namespace that select the same orphan."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells the time in seconds."""
        self._quiet = Quiet(clock)

    def tell(self, keys: Sequence[Key]) -> None:
        """Tells of these, which are ordered by name, unless it did so a moment ago: the labels of an orphan may change
        all the time.
        """
        if not self._quiet.is_due(tuple(keys)):
            return
        _log.warning(
            "several DaemonSets of %s select the same orphan, their selectors overlap: %s",
            keys[0].namespace,
            ", ".join(key.name for key in keys),
        )
