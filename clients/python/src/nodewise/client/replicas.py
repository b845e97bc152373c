"""The set of replicas: who is in it, how each stands, and so whether the service can be reached at all."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable

from .. import tracing, waiting
from .replica import Replica, Standing

_log = tracing.logger(__name__)


def weight(uid: str, address: str) -> bytes:
    """The weight of a replica for a workload, by rendezvous hashing. The one with the least is asked first, so that one
    that goes moves only its own workloads, and one that comes takes a fair share of everybody's.
    """
    return hashlib.sha256(uid.encode() + b"\0" + address.encode()).digest()


class Replicas:
    """The replicas of the service, each made by `connect` when its address comes up."""

    def __init__(self, connect: Callable[[str], Replica]) -> None:
        self._connect = connect
        self._members: list[Replica] = []
        self._changed = asyncio.Event()
        self._doubts: list[asyncio.Event] = []
        self._search: dict[object, str] = {}
        """Why the replicas of a target could not be found lately."""
        self._away = False

    @property
    def members(self) -> list[Replica]:
        """Who is in it."""
        return self._members

    def replace(self, addresses: Iterable[str]) -> list[Replica]:
        """From now on the replicas are at these addresses. One that stays keeps its connection, its standing and what
        it is believed to have. Answers with those that are gone.
        """
        before = {replica.address: replica for replica in self._members}
        after = [before.get(address) or self._connect(address) for address in dict.fromkeys(addresses)]
        gone = [replica for replica in self._members if replica not in after]
        if gone or len(after) != len(before):
            _log.info("the planning service has %d replicas now, %d are gone", len(after), len(gone))
            self._members = after
            self._changed.set()
            self._note()
        return gone

    def doubts(self) -> asyncio.Event:
        """An event of the caller's own, which is set when whoever is known may have moved: a name should be looked up
        again.
        """
        doubt = asyncio.Event()
        self._doubts.append(doubt)
        return doubt

    def found(self, target: object) -> None:
        """The replicas of this target were found."""
        self._search.pop(target, None)

    def not_found(self, target: object, reason: str) -> None:
        """Those of this target could not be found just now; who was known stays known."""
        if target not in self._search:
            _log.warning("replicas of the planning service cannot be looked up: %s", reason)
        self._search[target] = reason
        self._note()

    async def order(self, uid: str, timeout: float) -> list[Replica]:
        """The replicas in the order in which a workload asks them: those that do not serve last, else by rendezvous
        hash. Waits for the first ones if there are none yet.
        """
        if not self._members:
            self._doubt()
            self._changed.clear()
            try:
                async with waiting.timeout(timeout):
                    await self._changed.wait()
            except asyncio.TimeoutError:
                return []
        return sorted(self._members, key=lambda replica: (replica.standing.rank, weight(uid, replica.address)))

    def answered(self, replica: Replica) -> None:
        """It answered a call."""
        replica.answered()
        self._note()

    def serves(self, replica: Replica) -> None:
        """It said that it serves."""
        replica.serves()
        self._note()

    def drains(self, replica: Replica) -> None:
        """It said that it does not serve."""
        if replica.drains():
            _log.info("%s: a replica of the planning service drains; asking others", replica)
        self._note()

    def failed(self, replica: Replica, reason: str) -> None:
        """A call failed."""
        if replica.failed(reason):
            self._evicted(reason)
        self._note()

    def unwell(self, replica: Replica, reason: str) -> None:
        """A probe failed, or the connection on which its health is followed."""
        if replica.evict(reason):
            self._evicted(reason)
        self._note()

    def health(self) -> str | None:
        """Why the service cannot be reached, if so, or that it was not tried yet."""
        if not self._members:
            return ": ".join(
                filter(None, ["no replica of the planning service is known", "; ".join(self._search.values())])
            )
        standings = {replica.standing for replica in self._members}
        if Standing.READY in standings:
            return None
        reasons = [replica.reason for replica in self._members if replica.standing.rank]
        if reasons:
            return f"no replica of the planning service answers: {reasons[-1]}"
        return "the planning service was not asked yet"

    def _evicted(self, reason: str) -> None:
        _log.info("asking other replicas until this one answers again: %s", reason)
        self._doubt()

    def _doubt(self) -> None:
        for doubt in self._doubts:
            doubt.set()

    def _note(self) -> None:
        """Says what has changed."""
        health = self.health()
        standings = {replica.standing for replica in self._members}
        if health is None and self._away:
            self._away = False
            _log.info("the planning service answers again")
        elif health is not None and not self._away and Standing.UNKNOWN not in standings:
            self._away = True
            _log.warning("%s; nothing is written until one answers", health)
