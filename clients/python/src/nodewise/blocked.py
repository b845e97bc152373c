"""Evictions of one workload that a PodDisruptionBudget did not allow.

The outcomes of plans add them, and a plan only says which are not needed any more. So each is of a pod that the
workload controlled when it was evicted, and a service cannot make others.
"""

from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from . import times, v1
from .actuator import Blocked

FIRST_WAIT = 10.0
"""The wait after the first refusal, in seconds. It doubles with each further one."""
LONGEST_WAIT = 300.0
"""The longest wait, in seconds."""
MOST = 10_000
"""Most entries. Plans drop entries; while there are none, each plan may add a burst of them."""


class BlockedEvictions:
    """The evictions, by the uid of the pod."""

    def __init__(self) -> None:
        self._entries: dict[str, v1.BlockedEviction] = {}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def record(self, pod_uid: str, blocked: Blocked, sent: Iterable[v1.BlockedEviction], now: Timestamp) -> None:
        """Adds an eviction that was not allowed `now`. `sent` are those in the request for the plan that evicts it."""
        entry = self._entries.get(pod_uid) or next((entry for entry in sent if entry.pod_uid == pod_uid), None)
        before = 0 if entry is None else entry.attempts
        if not before and len(self._entries) >= MOST:
            return
        wait = max(min(FIRST_WAIT * 2.0 ** min(before, 16), LONGEST_WAIT), blocked.retry_after or 0.0)
        self._entries[pod_uid] = v1.BlockedEviction(
            pod_uid=pod_uid, message=blocked.message, retry_time=times.later(now, wait), attempts=before + 1
        )

    def remove(self, pod_uid: str) -> None:
        """Removes the entry of a pod that is gone or being deleted."""
        self._entries.pop(pod_uid, None)

    def drop_unneeded(self, sent: Iterable[v1.BlockedEviction], kept: Iterable[v1.BlockedEviction]) -> None:
        """Drops the entries that were `sent` with the request and that the plan did not keep. Entries that were added
        since stay.
        """
        needed = {entry.pod_uid for entry in kept}
        for entry in sent:
            if entry.pod_uid not in needed:
                self._entries.pop(entry.pod_uid, None)

    def wire(self) -> list[v1.BlockedEviction]:
        """The entries for a request, ordered by uid."""
        return [self._entries[uid] for uid in sorted(self._entries)]
