"""The attempts of one call: the order of the replicas, the timeout of each attempt, and the pauses in between."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import grpc

from .replica import Replica

SHARES = 3
"""An attempt gets at most this fraction, one third, of the remaining time. A replica that hangs then costs a third of
it, and a large plan still has enough time however many replicas there are.
"""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """How the client calls the service. Times are in seconds."""

    timeout: float = 30.0
    """Timeout of a call over all replicas. Each attempt gets a part of it, which is sent to the service as the
    deadline: the service abandons a plan whose deadline has passed.
    """
    credentials: grpc.ChannelCredentials | None = None
    """TLS credentials for every replica, such as `grpc.ssl_channel_credentials()`: for `https://HOST:PORT`, and for
    `dns:///HOST:PORT`, whose certificates must be for that name. Without credentials the client uses plain text, and
    replicas must be on loopback.
    """
    plaintext: bool = False
    """Allows plain text off loopback, where something else, such as a service mesh, protects the connections. Otherwise
    a man in the middle could answer with a forged plan.
    """
    max_message_bytes: int = 64 << 20
    """Largest response that the client accepts, in bytes."""
    max_piece_bytes: int = 32 << 20
    """Longest request that is sent in one message, in bytes. The buckets of a longer one are sent in several calls."""
    min_attempts: int = 3
    """Fewest attempts before a call fails. Each replica gets at least one."""
    base_pause: float = 0.1
    """Pause after every replica was tried once. It doubles with each further round, with jitter."""
    max_pause: float = 2.0
    """Longest pause between two attempts, also if a replica asks for a longer one."""

    def __post_init__(self) -> None:
        if self.plaintext and self.credentials is not None:
            raise ValueError("plaintext=True means no TLS, and there are credentials: leave one of them out")


class Attempt(NamedTuple):
    """One attempt."""

    replica: Replica
    timeout: float


class Attempts:
    """The attempts of one call. `clock` returns the time in seconds."""

    def __init__(self, config: ClientConfig, clock: Callable[[], float], min_attempts: int | None = None) -> None:
        self._config = config
        self._clock = clock
        self._min_attempts = config.min_attempts if min_attempts is None else min_attempts
        self._deadline = clock() + config.timeout
        self._made = 0
        self._pauses = 0
        self._tried: set[Replica] = set()
        """The replicas that were asked since the last pause."""

    @property
    def left(self) -> float:
        """The remaining time of the call, in seconds."""
        return self._deadline - self._clock()

    def next(self, order: Sequence[Replica]) -> Attempt | None:
        """The next attempt; None if attempts, time or replicas are used up. Each replica is asked once before any is
        asked again.
        """
        attempts, time = self._most(order) - self._made, self.left
        if attempts <= 0 or time <= 0 or not order:
            return None
        if all(replica in self._tried for replica in order):
            self._tried.clear()
        replica = next(replica for replica in order if replica not in self._tried)
        self._made += 1
        self._tried.add(replica)
        return Attempt(replica, time / min(attempts, SHARES))

    def pause(self, order: Sequence[Replica], asked: float | None) -> float | None:
        """The pause before the next attempt, in seconds; None if no attempt or no time is left."""
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
