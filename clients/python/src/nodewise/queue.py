"""The work queue: which workload is reconciled next, and when.

`Queue` is a pure state machine; the time is an argument. A key is in work at most once at a time. If it is added again
while it is queued or in work, the requests are merged. The queue does not interpret keys.

An added key waits for a worker, but not while it is in work, nor for `cooldown` seconds after its work ended. A key
that was added with a delay, such as a retry, skips the cooldown when the delay is over.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .handlers import Urgency

K = TypeVar("K")

MOST_URGENT_IN_A_ROW = 8
"""Most urgent keys that a general worker takes in a row while other keys wait, so that those make progress."""
LONG_WORK = 1.0
"""If work on a key took longer than this, in seconds, only a general worker takes the key the next time. A few slow
keys then cannot block the worker for urgent keys.
"""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Back-off of failed keys: the larger of two delays counts. Defaults are those of upstream: 5 ms doubling to 1000 s
    for one key, and 10 per second over all keys with a burst of 100. Times are in seconds.
    """

    base_delay: float = 0.005
    max_delay: float = 1000.0
    rate: float = 10.0
    burst: int = 100


@dataclass(slots=True)
class _Work:
    urgency: Urgency
    started: float
    waited: float
    overdue: bool = False
    """A delay of the key ended during the work, so the key has no cooldown after it."""


@dataclass(slots=True)
class _Ready(Generic[K]):
    """Keys that wait for a worker, with the time since when: urgent ones first, each class in order of arrival."""

    urgent: dict[K, float] = field(default_factory=dict)
    normal: dict[K, float] = field(default_factory=dict)
    urgent_in_a_row: int = 0

    def push(self, key: K, urgency: Urgency, now: float) -> None:
        """Queues a key. A key that is already queued keeps its position, but may become urgent."""
        if key in self.urgent:
            return
        if urgency is Urgency.URGENT:
            self.urgent[key] = self.normal.pop(key, now)
        else:
            self.normal.setdefault(key, now)

    def pop(self) -> tuple[K, float] | None:
        """The next key for a general worker."""
        yields = self.urgent_in_a_row >= MOST_URGENT_IN_A_ROW and bool(self.normal)
        if self.urgent and not yields:
            self.urgent_in_a_row += 1
            return _pop_first(self.urgent)
        self.urgent_in_a_row = 0
        return _pop_first(self.normal) if self.normal else None

    def pop_urgent(self, may_take: Callable[[K], bool]) -> tuple[K, float] | None:
        """The next urgent key that the worker for urgent keys may take."""
        for key in self.urgent:
            if may_take(key):
                return key, self.urgent.pop(key)
        return None


def _pop_first(keys: dict[K, float]) -> tuple[K, float]:
    key = next(iter(keys))
    return key, keys.pop(key)


class Queue(Generic[K]):
    """The queue as a state machine. Methods take the current time, in seconds of one clock."""

    def __init__(self, limits: RateLimits, cooldown: float, now: float, max_retries: int | None = None) -> None:
        """A key is retried at most `max_retries` times in a row; None: without limit."""
        self._max_retries = max_retries
        self._ready: _Ready[K] = _Ready()
        self._dirty: dict[K, Urgency] = {}
        """Keys that need work: queued, in work again later, or in a cooldown."""
        self._processing: dict[K, _Work] = {}
        self._cooldown = cooldown
        self._cooling_down: dict[K, float] = {}
        self._long: set[K] = set()
        self._stay_urgent: set[K] = set()
        """Keys whose next work is urgent, because their last urgent work had no result."""
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        """The delays ordered by time. An entry that differs from `_due` was replaced by an earlier one and is
        skipped.
        """
        self._timer_count = 0
        self._failures: dict[K, int] = {}
        self._refusals: dict[K, int] = {}
        self._limits = limits
        self._tokens, self._updated = float(limits.burst), now
        self._shutting_down = False

    def add(self, key: K, urgency: Urgency, now: float) -> None:
        """Adds a key. It is queued when its cooldown is over."""
        if self._shutting_down:
            return
        self._end_cooldowns(now)
        self._mark(key, urgency)
        if key not in self._cooling_down:
            self._push(key, now)

    def add_after(self, key: K, delay: float, now: float) -> None:
        """Adds a key after a delay. Each key has at most one delay: the earliest."""
        if self._shutting_down:
            return
        if delay <= 0:
            self._add_now(key, now)
            return
        at = now + delay
        if at < self._due.get(key, float("inf")):
            self._due[key] = at
            self._timer_count += 1
            heapq.heappush(self._timers, (at, self._timer_count, key))

    def add_rate_limited(self, key: K, now: float, *, refused: bool = False) -> float | None:
        """Adds a key after a failure. Returns its back-off delay, in seconds. None if the key has been retried too
        often in a row: it then waits until it is added again, and may be retried as often again. A key that was refused
        is never given up, and that does not count as one of its failures.
        """
        failed = self._refusals if refused else self._failures
        failures = failed.get(key, 0)
        if not refused and self._max_retries is not None and failures >= self._max_retries:
            failed.pop(key, None)
            return None
        failed[key] = failures + 1
        limits = self._limits
        own = min(limits.base_delay * 2.0 ** min(failures, 64), limits.max_delay)
        if self._due.get(key, float("inf")) <= now + own:
            # An earlier delay of the key stays, and the key needs no token of the shared limit.
            return own
        delay = max(own, self._reserve(now))
        self.add_after(key, delay, now)
        return delay

    def forget(self, key: K) -> None:
        """Resets the back-off of a key."""
        self._failures.pop(key, None)
        self._refusals.pop(key, None)

    def keep_urgency(self, key: K) -> None:
        """The work on a key had no result. If it was urgent, so is the next one."""
        work = self._processing.get(key)
        if work is not None and work.urgency is Urgency.URGENT:
            self._stay_urgent.add(key)
            if key in self._dirty:
                self._dirty[key] = Urgency.URGENT

    def take(self, now: float) -> K | None:
        """The next key for a general worker. The worker must call `done` after it."""
        self._advance(now)
        return self._hand_out(self._ready.pop(), now)

    def take_urgent(self, now: float) -> K | None:
        """The next key for the worker for urgent keys: an urgent key whose last work was not long."""
        self._advance(now)
        return self._hand_out(self._ready.pop_urgent(lambda key: key not in self._long), now)

    def waited(self, key: K) -> float:
        """How long a key in work had waited for a worker, in seconds."""
        work = self._processing.get(key)
        return 0.0 if work is None else work.waited

    def worked(self, key: K, now: float) -> float:
        """How long a key has been in work, in seconds."""
        work = self._processing.get(key)
        return 0.0 if work is None else now - work.started

    def next_change(self) -> float | None:
        """The time at which a delay or a cooldown ends; None if there is none."""
        cooldowns = [until for key, until in self._cooling_down.items() if key in self._dirty]
        timers = [self._timers[0][0]] if self._timers else []
        return min(cooldowns + timers, default=None)

    @property
    def finished(self) -> bool:
        """Whether the queue is shut down and drained."""
        return self._shutting_down and not self._dirty

    @property
    def idle(self) -> bool:
        """Whether nothing is queued, in work or delayed."""
        return not (self._dirty or self._processing or self._due)

    def done(self, key: K, now: float) -> None:
        """Work on a key has ended, with any result."""
        work = self._processing.pop(key, None)
        if work is None:
            return
        if now - work.started > LONG_WORK:
            self._long.add(key)
        else:
            self._long.discard(key)
        if not work.overdue and self._cooldown > 0:
            self._cooling_down[key] = now + self._cooldown
        else:
            self._push(key, now)

    def shut_down(self, now: float) -> None:
        """Accepts no more keys, and drops delayed ones. Queued keys are still handed out, without cooldowns."""
        self._shutting_down = True
        self._timers.clear()
        self._due.clear()
        self._cooldown = 0
        self._cooling_down.clear()
        for key in self._dirty:
            self._push(key, now)

    def _hand_out(self, next_key: tuple[K, float] | None, now: float) -> K | None:
        if next_key is None:
            return None
        key, since = next_key
        self._processing[key] = _Work(self._dirty.pop(key), now, now - since)
        self._stay_urgent.discard(key)
        return key

    def _advance(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            at, _, key = heapq.heappop(self._timers)
            if self._due.get(key) == at:
                del self._due[key]
                self._add_now(key, now)
        self._end_cooldowns(now)

    def _end_cooldowns(self, now: float) -> None:
        # All cooldowns have the same length, so they end in order.
        for key in [key for key, until in self._cooling_down.items() if until <= now]:
            del self._cooling_down[key]
            self._push(key, now)

    def _add_now(self, key: K, now: float) -> None:
        self._mark(key, Urgency.NORMAL)
        self._cooling_down.pop(key, None)
        if key in self._processing:
            self._processing[key].overdue = True
        self._push(key, now)

    def _mark(self, key: K, urgency: Urgency) -> None:
        if key in self._stay_urgent:
            urgency = Urgency.URGENT
        self._dirty[key] = max(urgency, self._dirty.get(key, Urgency.NORMAL))

    def _push(self, key: K, now: float) -> None:
        """Queues a key that needs work and is not in work."""
        if key in self._dirty and key not in self._processing:
            self._ready.push(key, self._dirty[key], now)

    def _reserve(self, now: float) -> float:
        """Takes a token of the shared limit. Returns the time until it is available, in seconds."""
        gained = max(now - self._updated, 0) * self._limits.rate
        tokens = min(self._tokens + gained, float(self._limits.burst)) - 1
        # Keys that fail again and again must not delay all others without bound.
        self._tokens = max(tokens, -self._limits.rate * self._limits.max_delay)
        self._updated = max(self._updated, now)
        return max(-self._tokens / self._limits.rate, 0)
