"""Workloads whose selectors match the same orphan."""

import time
from collections.abc import Callable, Sequence

from . import tracing
from .kinds import Key
from .log_limit import LogLimit

_log = tracing.logger(__name__)


class Overlaps:
    """Logs workloads of one kind and namespace that select the same orphan."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns the time in seconds."""
        self._log_limit = LogLimit(clock)

    def log(self, keys: Sequence[Key]) -> None:
        """Logs these workloads, ordered by name, at most once a minute: the labels of an orphan may change all the
        time.
        """
        if not self._log_limit.is_due(tuple(keys)):
            return
        _log.warning(
            "several %ss of %s select the same orphan, their selectors overlap: %s",
            keys[0].kind,
            keys[0].namespace,
            ", ".join(key.name for key in keys),
        )
