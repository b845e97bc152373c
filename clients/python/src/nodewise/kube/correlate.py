"""Reduces the number of Events (D-102): counts repeated ones, combines similar ones, and throttles objects with too
many. Pure; the time is an argument.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from ..actuator import WorkloadEvent

SIMILAR_EVENTS = 10
"""From this many different messages on, events with the same reason are combined."""
SIMILAR_WINDOW = 600.0
"""Seconds without a similar event, after which the count of similar events restarts."""
SPAM_BURST = 25.0
"""Most events of one object in a burst."""
SPAM_REFILL = 300.0
"""Time until one more event is allowed, in seconds."""
CAPACITY = 4096
"""Most entries of each table. The least recently used one is evicted."""


class Filtered(NamedTuple):
    """Send nothing."""


class Create(NamedTuple):
    """Create an Event with this message, then call `Correlator.sent`."""

    message: str


class Patch(NamedTuple):
    """Patch the Event of this name, with its new number of occurrences."""

    name: str
    message: str
    times: int


Verdict: TypeAlias = Filtered | Create | Patch


class Source(NamedTuple):
    """The key of throttling."""

    component: str
    object: tuple[str, str, str, str]
    type: str


class Identity(NamedTuple):
    """The key of counting: with a message an exact repetition, without one all similar events."""

    source: Source
    reason: str
    message: str | None


@dataclass(slots=True)
class _Similar:
    last: float
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Observed:
    name: str = ""
    count: int = 0


@dataclass(slots=True)
class _Tokens:
    refilled: float
    left: float = SPAM_BURST


_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """A table of limited size that evicts the least recently used entry."""

    def __init__(self) -> None:
        self._entries: OrderedDict[_K, _V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: _K) -> bool:
        return key in self._entries

    def entry(self, key: _K, new: Callable[[], _V]) -> _V:
        """Returns the entry, or a new one."""
        if key not in self._entries:
            if len(self._entries) >= CAPACITY:
                self._entries.popitem(last=False)
            self._entries[key] = new()
        self._entries.move_to_end(key)
        return self._entries[key]


class Correlator:
    """Remembers the events that were sent."""

    def __init__(self) -> None:
        self._similar: Recent[Identity, _Similar] = Recent()
        self._observed: Recent[Identity, _Observed] = Recent()
        self._tokens: Recent[Source, _Tokens] = Recent()

    def correlate(self, component: str, event: WorkloadEvent, now: float) -> tuple[Identity, Verdict]:
        """Decides about one event. The identity is the argument of `sent`."""
        of = event.workload
        source = Source(component, (of.kind, of.namespace, of.name, of.uid), event.type)
        identity, message = self._aggregate(source, event, now)
        observed = self._observed.entry(identity, _Observed)
        observed.count += 1
        if self._is_spam(source, now):
            return identity, Filtered()
        if observed.name:
            return identity, Patch(observed.name, message, observed.count)
        return identity, Create(message)

    def sent(self, identity: Identity, name: str) -> None:
        """Records the name of the Event that stands for an identity; an empty name if there is none."""
        observed = self._observed.entry(identity, _Observed)
        observed.name = name
        observed.count = max(observed.count, 1) if name else 0

    def _aggregate(self, source: Source, event: WorkloadEvent, now: float) -> tuple[Identity, str]:
        """Combines an event with similar ones if there are many."""
        everything = Identity(source, event.reason, None)
        similar = self._similar.entry(everything, lambda: _Similar(now))
        if now - similar.last > SIMILAR_WINDOW:
            similar.messages.clear()
        similar.last = now
        similar.messages.add(event.message)
        if len(similar.messages) < SIMILAR_EVENTS:
            return everything._replace(message=event.message), event.message
        similar.messages.discard(event.message)
        return everything, f"(combined from similar events): {event.message}"

    def _is_spam(self, source: Source, now: float) -> bool:
        tokens = self._tokens.entry(source, lambda: _Tokens(now))
        tokens.left = min(tokens.left + (now - tokens.refilled) / SPAM_REFILL, SPAM_BURST)
        tokens.refilled = now
        if tokens.left < 1:
            return True
        tokens.left -= 1
        return False
