"""The work queue: which workload is to be looked at next, and when.

`Queue` is the pure machine, with the time passed in. A key is handed out once at a time; what is added while it is
queued or in work is merged (M-28). Nothing here knows what a key means.

A key that is added waits for a worker, unless it is in work, or rests since its work ended a moment ago; then it waits
for the end of that. Delays, those of retries among them, are set on purpose: when they are over no rest counts.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .handlers import Urgency

K = TypeVar("K")

MOST_URGENT_IN_A_ROW = 8
"""Urgent keys that a worker for all may take in a row while others wait: those are never left standing."""
LONG_TURN = 1.0
"""A key whose work took longer than this is left to the workers for all the next time, so that whoever takes urgent
keys only is not held up by a few that are long in work each time.
"""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """How failed keys are slowed down (M-30): the larger of the two delays counts. Upstream's: 5 ms doubling to 1000 s,
    and 10 per second over all keys with a burst of 100. Times are in seconds.
    """

    base_delay: float = 0.005
    max_delay: float = 1000.0
    rate: float = 10.0
    burst: int = 100


@dataclass(slots=True)
class _Turn:
    urgency: Urgency
    started: float
    waited: float
    overdue: bool = False
    """A delay of the key has ended meanwhile: the next turn need not wait for a rest."""


@dataclass(slots=True)
class _Ready(Generic[K]):
    """Keys that wait for a worker, and since when: urgent ones first, each class in order of arrival."""

    urgent: dict[K, float] = field(default_factory=dict)
    normal: dict[K, float] = field(default_factory=dict)
    urgent_in_a_row: int = 0

    def push(self, key: K, urgency: Urgency, now: float) -> None:
        """Lets a key wait. If it does so already it keeps its place, but for becoming urgent."""
        if key in self.urgent:
            return
        if urgency is Urgency.URGENT:
            self.urgent[key] = self.normal.pop(key, now)
        else:
            self.normal.setdefault(key, now)

    def pop(self) -> tuple[K, float] | None:
        """The next key for a worker that takes all."""
        yields = self.urgent_in_a_row >= MOST_URGENT_IN_A_ROW and bool(self.normal)
        if self.urgent and not yields:
            self.urgent_in_a_row += 1
            return _pop_first(self.urgent)
        self.urgent_in_a_row = 0
        return _pop_first(self.normal) if self.normal else None

    def pop_urgent(self, may_take: Callable[[K], bool]) -> tuple[K, float] | None:
        """The next key for a worker that takes urgent ones only, and of these those that it may take."""
        for key in self.urgent:
            if may_take(key):
                return key, self.urgent.pop(key)
        return None


def _pop_first(keys: dict[K, float]) -> tuple[K, float]:
    key = next(iter(keys))
    return key, keys.pop(key)


class Queue(Generic[K]):
    """The queue as a state machine. Every method that depends on it is told the time, in seconds of one clock."""

    def __init__(self, limits: RateLimits, rest: float, now: float) -> None:
        self._ready: _Ready[K] = _Ready()
        self._dirty: dict[K, Urgency] = {}
        """Those to be worked on, be it that they wait for a worker, for the end of their work or of their rest."""
        self._processing: dict[K, _Turn] = {}
        self._rest = rest
        self._resting: dict[K, float] = {}
        self._long: set[K] = set()
        self._owed: set[K] = set()
        """Keys whose next turn is urgent, since the last one was and came to nothing."""
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        """The same ordered by time. An entry that disagrees was replaced by an earlier one and is skipped."""
        self._timer_count = 0
        self._failures: dict[K, int] = {}
        self._limits = limits
        self._tokens, self._updated = float(limits.burst), now
        self._shutting_down = False

    def add(self, key: K, urgency: Urgency, now: float) -> None:
        """Asks for work on a key, as soon as its rest is over."""
        if self._shutting_down:
            return
        self._end_rests(now)
        self._mark(key, urgency)
        if key not in self._resting:
            self._push(key, now)

    def add_after(self, key: K, delay: float, now: float) -> None:
        """Asks for work on a key after a delay. One delay per key is kept: the earliest (M-29)."""
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

    def add_rate_limited(self, key: K, now: float) -> float:
        """Asks for work on a key whose work failed; answers after which delay it comes."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        limits = self._limits
        own = min(limits.base_delay * 2.0 ** min(failures, 64), limits.max_delay)
        if self._due.get(key, float("inf")) <= now + own:
            # It was woken before its retry was due, and that stands: it needs no token of all keys.
            return own
        delay = max(own, self._reserve(now))
        self.add_after(key, delay, now)
        return delay

    def forget(self, key: K) -> None:
        """Forgets the failures of a key."""
        self._failures.pop(key, None)

    def put_off(self, key: K) -> None:
        """The turn of a key in work came to nothing: if it was an urgent one, so is the next, whoever asks for it."""
        turn = self._processing.get(key)
        if turn is not None and turn.urgency is Urgency.URGENT:
            self._owed.add(key)
            if key in self._dirty:
                self._dirty[key] = Urgency.URGENT

    def take(self, now: float) -> K | None:
        """The next key to work on; then call `done`."""
        self._advance(now)
        return self._hand_out(self._ready.pop(), now)

    def take_urgent(self, now: float) -> K | None:
        """The next key for a worker that must not be held up: an urgent one whose last turn was not a long one."""
        self._advance(now)
        return self._hand_out(self._ready.pop_urgent(lambda key: key not in self._long), now)

    def waited(self, key: K) -> float:
        """How long a key in work had waited for its worker, in seconds."""
        turn = self._processing.get(key)
        return 0.0 if turn is None else turn.waited

    def next_change(self) -> float | None:
        """When there may be a key though nothing is added: a delay or a rest has ended."""
        rests = [until for key, until in self._resting.items() if key in self._dirty]
        timers = [self._timers[0][0]] if self._timers else []
        return min(rests + timers, default=None)

    @property
    def finished(self) -> bool:
        """Shut down and drained: there will be nothing more."""
        return self._shutting_down and not self._dirty

    @property
    def idle(self) -> bool:
        """Nothing is queued, in work or delayed."""
        return not (self._dirty or self._processing or self._due)

    def done(self, key: K, now: float) -> None:
        """Work on a key has ended, whatever came of it."""
        turn = self._processing.pop(key, None)
        if turn is None:
            return
        if now - turn.started > LONG_TURN:
            self._long.add(key)
        else:
            self._long.discard(key)
        if not turn.overdue and self._rest > 0:
            self._resting[key] = now + self._rest
        else:
            self._push(key, now)

    def shut_down(self, now: float) -> None:
        """From now on nothing is added, and delayed keys are dropped; queued keys are still handed out (M-33), and
        nobody rests.
        """
        self._shutting_down = True
        self._timers.clear()
        self._due.clear()
        self._rest = 0
        self._resting.clear()
        for key in self._dirty:
            self._push(key, now)

    def _hand_out(self, next_key: tuple[K, float] | None, now: float) -> K | None:
        if next_key is None:
            return None
        key, since = next_key
        self._processing[key] = _Turn(self._dirty.pop(key), now, now - since)
        self._owed.discard(key)
        return key

    def _advance(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            at, _, key = heapq.heappop(self._timers)
            if self._due.get(key) == at:
                del self._due[key]
                self._add_now(key, now)
        self._end_rests(now)

    def _end_rests(self, now: float) -> None:
        # All rests are equally long, so they are in order.
        for key in [key for key, until in self._resting.items() if until <= now]:
            del self._resting[key]
            self._push(key, now)

    def _add_now(self, key: K, now: float) -> None:
        self._mark(key, Urgency.NORMAL)
        self._resting.pop(key, None)
        if key in self._processing:
            self._processing[key].overdue = True
        self._push(key, now)

    def _mark(self, key: K, urgency: Urgency) -> None:
        if key in self._owed:
            urgency = Urgency.URGENT
        self._dirty[key] = max(urgency, self._dirty.get(key, Urgency.NORMAL))

    def _push(self, key: K, now: float) -> None:
        """Lets a key wait for a worker, if it is to be worked on and nobody does."""
        if key in self._dirty and key not in self._processing:
            self._ready.push(key, self._dirty[key], now)

    def _reserve(self, now: float) -> float:
        """How long to wait for the next token of all keys, which is the caller's."""
        gained = max(now - self._updated, 0) * self._limits.rate
        tokens = min(self._tokens + gained, float(self._limits.burst)) - 1
        # Those who fail again and again must not make all others wait for ever longer.
        self._tokens = max(tokens, -self._limits.rate * self._limits.max_delay)
        self._updated = max(self._updated, now)
        return max(-self._tokens / self._limits.rate, 0)
