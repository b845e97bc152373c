"""The set of replicas, the status of each, and whether the service can be reached at all."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable

from .. import tracing, waiting
from .replica import Replica, ReplicaStatus

_log = tracing.logger(__name__)


def weight(uid: str, address: str) -> bytes:
    """The weight of a replica for a workload, for rendezvous hashing. The replica with the lowest weight is asked
    first. A replica that goes away moves only its own workloads, and a new one takes an equal share of all workloads.
    """
    return hashlib.sha256(uid.encode() + b"\0" + address.encode()).digest()


class Replicas:
    """The replicas of the service. `connect` makes one when its address is first found."""

    def __init__(self, connect: Callable[[str], Replica]) -> None:
        self._connect = connect
        self._members: list[Replica] = []
        self._changed = asyncio.Event()
        self._lookup_requests: list[asyncio.Event] = []
        self._search: dict[object, str] = {}
        """Why the last look-up of a target failed, by target."""
        self._away = False

    @property
    def members(self) -> list[Replica]:
        """The current replicas."""
        return self._members

    def replace(self, addresses: Iterable[str]) -> list[Replica]:
        """Sets the addresses of the replicas. A replica that stays keeps its connection, its status and its known
        buckets. Returns the removed replicas.
        """
        before = {replica.address: replica for replica in self._members}
        after = [before.get(address) or self._connect(address) for address in dict.fromkeys(addresses)]
        gone = [replica for replica in self._members if replica not in after]
        if gone or len(after) != len(before):
            if before:
                noun = "replica" if len(after) == 1 else "replicas"
                came = len(after) - len(before) + len(gone)
                _log.info("the planning service has %d %s now: %d new, %d gone", len(after), noun, came, len(gone))
            self._members = after
            self._changed.set()
            self._note()
        return gone

    def lookup_requests(self) -> asyncio.Event:
        """An event for the caller, which is set when a replica failed or none is known: the caller should look up its
        name again.
        """
        requested = asyncio.Event()
        self._lookup_requests.append(requested)
        return requested

    def found(self, target: object) -> None:
        """Records a successful look-up of a target."""
        self._search.pop(target, None)

    def not_found(self, target: object, reason: str) -> None:
        """Records a failed look-up of a target. Its known replicas stay."""
        if target not in self._search:
            _log.warning("replicas of the planning service cannot be looked up: %s", reason)
        self._search[target] = reason
        self._note()

    async def order(self, uid: str, timeout: float) -> list[Replica]:
        """The replicas in the order in which a workload asks them: by status, then by rendezvous hash. Waits up to
        `timeout` seconds for the first replica.
        """
        if not self._members:
            self._request_lookup()
            self._changed.clear()
            try:
                async with waiting.timeout(timeout):
                    await self._changed.wait()
            except asyncio.TimeoutError:
                return []
        return sorted(self._members, key=lambda replica: (replica.status.rank, weight(uid, replica.address)))

    def answered(self, replica: Replica) -> None:
        """Records that a replica answered a call."""
        replica.answered()
        self._note()

    def serves(self, replica: Replica) -> None:
        """Records that a replica reported SERVING."""
        replica.serves()
        self._note()

    def drains(self, replica: Replica) -> None:
        """Records that a replica reported NOT_SERVING."""
        if replica.drains():
            _log.info("%s: a replica of the planning service drains; asking others", replica)
        self._note()

    def failed(self, replica: Replica, reason: str) -> None:
        """Records that a call failed."""
        if replica.failed(reason):
            self._evicted(reason)
        self._note()

    def probe_failed(self, replica: Replica, reason: str) -> None:
        """Records that a probe or a health watch failed."""
        if replica.evict(reason):
            self._evicted(reason)
        self._note()

    def health(self) -> str | None:
        """Why the service cannot be reached, or that it was not asked yet; None if it answers."""
        if not self._members:
            return ": ".join(
                filter(None, ["no replica of the planning service is known", "; ".join(self._search.values())])
            )
        statuses = {replica.status for replica in self._members}
        if ReplicaStatus.READY in statuses:
            return None
        reasons = [replica.reason for replica in self._members if replica.status.rank]
        if reasons:
            return f"no replica of the planning service answers: {reasons[-1]}"
        return "the planning service was not asked yet"

    def _evicted(self, reason: str) -> None:
        _log.info("asking other replicas until this one answers again: %s", reason)
        self._request_lookup()

    def _request_lookup(self) -> None:
        for requested in self._lookup_requests:
            requested.set()

    def _note(self) -> None:
        """Logs when the service becomes unreachable or reachable."""
        health = self.health()
        statuses = {replica.status for replica in self._members}
        if health is None and self._away:
            self._away = False
            _log.info("the planning service answers again")
        elif health is not None and not self._away and ReplicaStatus.UNKNOWN not in statuses:
            self._away = True
            _log.warning("%s; nothing is written until one answers", health)
