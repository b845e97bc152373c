"""Sends the buckets of one request in several calls ("pieces") if one message with all of them would be too large.

A replica keeps the buckets of a request also if it lacks others of the same request. So a piece has some of the missing
buckets with their bytes, and the others only as digests. The replica answers which ones it still lacks, and the next
piece brings more of them.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from typing import TypeVar

from .. import v1, waiting
from ..buckets import Digest
from .fault import Failed, Fault

_Request = TypeVar("_Request", v1.PlanRequest, v1.ExplainRequest, v1.SimulateRequest)


class Pieces:
    """The pieces of one attempt, of at most `most` bytes each. As a context manager it releases the replica's lock:
    only one call at a time sends pieces to a replica.
    """

    def __init__(self, most: int, lock: asyncio.Lock) -> None:
        self._most = most
        self._lock = lock
        self.holds_lock = False
        self._left: int | None = None
        """The number of buckets that the replica lacked after the last piece."""

    def __enter__(self) -> "Pieces":
        return self

    def __exit__(self, *_: object) -> None:
        if self.holds_lock:
            self._lock.release()

    async def acquire_lock(self, timeout: float) -> None:
        """Waits at most `timeout` seconds for the replica's lock."""
        async with waiting.timeout(timeout):
            await self._lock.acquire()
        self.holds_lock = True

    def cut(self, request: _Request) -> tuple[_Request, list[Digest] | None]:
        """Returns a copy of the request in which only some buckets have their bytes, as many as fit into a piece and at
        least one, and the digests of those. Returns the request itself and None if it fits as it is. Only buckets with
        a digest can be sent later.
        """
        inline = [bucket for bucket in _buckets(request) if bucket.digest and _is_inline(bucket)]
        # The size is not computed for a single bucket: the first one is always sent.
        if len(inline) < 2 or (size := request.ByteSize()) <= self._most:
            return request, None
        room = max(self._most - (size - sum(map(_length, inline))), 0)
        brought: list[Digest] = []
        later: set[Digest] = set()
        for bucket in inline:
            if _length(bucket) <= room or not brought:
                room = max(room - _length(bucket), 0)
                brought.append(bucket.digest)
            else:
                later.add(bucket.digest)
        later.difference_update(brought)
        if not later:
            return request, None
        return without_known(request, later.__contains__), brought

    def are_kept(self, brought: int, missing: int) -> bool:
        """Whether the replica keeps at least half of the buckets that it is sent, after a piece with `brought` buckets
        and with `missing` ones still lacking. If not, its cache is too small, or it does not keep buckets of an
        incomplete request.
        """
        before, self._left = self._left, missing
        # The first piece says nothing: its buckets were not counted as missing before.
        return before is None or missing + (brought + 1) // 2 <= before

    def explain(self, failed: Failed, size: int) -> Failed:
        """Adds advice to the failure of a request of `size` bytes with all buckets, if pieces did not help."""
        if self._left is None or failed.fault is not Fault.SIZE:
            return failed
        advice = (
            f" (all buckets take {size} bytes in one message; the replica was sent them in pieces of {self._most} "
            "bytes, and did not keep them: raise --bucket-cache-size of the service, or its --max-message-size to more "
            f"than {size} bytes)"
        )
        return dataclasses.replace(failed, reason=failed.reason + advice)


def without_known(request: _Request, known: Callable[[Digest], bool]) -> _Request:
    """A copy of a request in which known buckets have only their digest."""
    slim = type(request)()
    slim.CopyFrom(request)
    for bucket in _buckets(slim):
        if bucket.digest and known(bucket.digest):
            bucket.ClearField("data")
            bucket.ClearField("data_with_shared_labels")
    return slim


def _is_inline(bucket: v1.Bucket) -> bool:
    return bucket.HasField("data") or bucket.HasField("data_with_shared_labels")


def _length(bucket: v1.Bucket) -> int:
    """The number of the bucket's bytes, in either form."""
    return len(bucket.data) + len(bucket.data_with_shared_labels)


def _buckets(request: v1.PlanRequest | v1.ExplainRequest | v1.SimulateRequest) -> Iterator[v1.Bucket]:
    yield from request.snapshot.node_buckets
    yield from request.snapshot.pod_buckets
