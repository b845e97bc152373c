"""Whose turn it is: the attempts of one call, its time among them, and the pauses in between."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import grpc

from .replica import Replica

SHARES = 3
"""Into how many parts what is left of a call's time is divided at most. One that hangs costs a third of it, and there
is more than a moment for a large plan however many replicas there are.
"""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How the client talks to the service. Times are in seconds."""

    timeout: float = 30.0
    """Longest wait for a plan, whoever is asked in that time. Each attempt has a share of it, which the service is
    told: it abandons a plan whose deadline has passed.
    """
    credentials: grpc.ChannelCredentials | None = None
    """What every replica is talked to with, such as `grpc.ssl_channel_credentials()` for TLS: those at
    `https://HOST:PORT`, and those of `dns:///HOST:PORT`, whose certificates must be for that name. Without, all is
    plain text, and replicas have to be on loopback.
    """
    plaintext: bool = False
    """Whether plain text is spoken also to replicas that are not on loopback: where something else, such as a service
    mesh, protects the connections. Whoever stands in between could answer with a plan of his own otherwise.
    """
    max_message_bytes: int = 64 << 20
    """Largest answer that is taken."""
    max_piece_bytes: int = 32 << 20
    """Longest request that is sent in one message whatever the replica lacks. The buckets of a longer one are sent in
    several calls.
    """
    min_attempts: int = 3
    """Fewest attempts before a call fails; there is at least one for each replica."""
    base_pause: float = 0.1
    """Pause after every replica was tried once; doubles with each further round, with jitter."""
    max_pause: float = 2.0
    """Longest pause between two attempts, also when a replica asks for a longer one."""

    def __post_init__(self) -> None:
        if self.plaintext and self.credentials is not None:
            raise ValueError("plaintext=True means no TLS, and there are credentials: leave one of them out")


class Turn(NamedTuple):
    """One attempt."""

    replica: Replica
    timeout: float


class Tries:
    """The attempts of one call. `clock` tells the time in seconds."""

    def __init__(self, config: ClientConfig, clock: Callable[[], float], min_attempts: int | None = None) -> None:
        self._config = config
        self._clock = clock
        self._min_attempts = config.min_attempts if min_attempts is None else min_attempts
        self._deadline = clock() + config.timeout
        self._made = 0
        self._pauses = 0
        self._tried: set[Replica] = set()
        """Who had their turn since the last pause."""

    @property
    def left(self) -> float:
        """How much of the call's time is left."""
        return self._deadline - self._clock()

    def turn(self, order: Sequence[Replica]) -> Turn | None:
        """The next attempt; none when attempts, time or replicas are used up. Each replica is asked once, then each
        again.
        """
        attempts, time = self._most(order) - self._made, self.left
        if attempts <= 0 or time <= 0 or not order:
            return None
        if all(replica in self._tried for replica in order):
            self._tried.clear()
        replica = next(replica for replica in order if replica not in self._tried)
        self._made += 1
        self._tried.add(replica)
        return Turn(replica, time / min(attempts, SHARES))

    def pause(self, order: Sequence[Replica], asked: float | None) -> float | None:
        """How long to wait before the next attempt; none when there would be no time left for it."""
        if any(replica not in self._tried for replica in order):
            # Another replica may answer at once.
            return 0.0
        doubled = self._config.base_pause * 2.0 ** min(self._pauses, 16)
        self._pauses += 1
        longest = self._config.max_pause
        pause = min(doubled, longest) * random.uniform(0.5, 1.0) if asked is None else min(asked, longest)
        return pause if self._made < self._most(order) and pause < self.left else None

    def _most(self, order: Sequence[Replica]) -> int:
        return max(self._min_attempts, len(order))
