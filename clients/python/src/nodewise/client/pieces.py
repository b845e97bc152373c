"""Buckets that are sent in several calls, because one message with all that a replica lacks would be too large.

A replica keeps the buckets that came inline also when it lacks others of the same request. So a piece has some of the
missing buckets inline, and the others by digest alone. The replica says what it still lacks, and the next piece brings
more of it.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator

from .. import v1, waiting
from ..buckets import Digest
from .fault import Failed, Fault


class Pieces:
    """The pieces of one attempt, of so many bytes each. As a context manager it keeps the turn to send them, which one
    call at a time has at a replica.
    """

    def __init__(self, most: int, turn: asyncio.Lock) -> None:
        self._most = most
        self._turn = turn
        self.is_our_turn = False
        self._left: int | None = None
        """How many buckets the replica lacked after the last piece."""

    def __enter__(self) -> "Pieces":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_our_turn:
            self._turn.release()

    async def take_turn(self, timeout: float) -> None:
        """Waits until no other call sends pieces; at most for so many seconds."""
        async with waiting.timeout(timeout):
            await self._turn.acquire()
        self.is_our_turn = True

    def cut(self, request: v1.PlanRequest) -> tuple[v1.PlanRequest, list[Digest] | None]:
        """A copy of the request that has as many buckets inline as fit into a piece, and at least one, and the buckets
        that it brings; or the request itself, and none, when that fits as it is. Only buckets that have a digest can
        wait.
        """
        inline = [bucket for bucket in _buckets(request) if bucket.digest and bucket.HasField("data")]
        # The size is only asked for where it matters: the first bucket never waits.
        if len(inline) < 2 or (size := request.ByteSize()) <= self._most:
            return request, None
        room = max(self._most - (size - sum(len(bucket.data) for bucket in inline)), 0)
        brought: list[Digest] = []
        later: set[Digest] = set()
        for bucket in inline:
            if len(bucket.data) <= room or not brought:
                room = max(room - len(bucket.data), 0)
                brought.append(bucket.digest)
            else:
                later.add(bucket.digest)
        later.difference_update(brought)
        if not later:
            return request, None
        return without_known(request, later.__contains__), brought

    def are_kept(self, brought: int, missing: int) -> bool:
        """After a piece with so many buckets the replica lacks so many. Whether it keeps at least half of what it is
        sent: else its cache is too small, or it keeps nothing of a request that lacks buckets.
        """
        before, self._left = self._left, missing
        # The first piece says nothing: what it brought is not among what was missing then.
        return before is None or missing + (brought + 1) // 2 <= before

    def explain(self, failed: Failed, size: int) -> Failed:
        """Says what to do when a request of so many bytes, with all buckets, is too large, and pieces did not help."""
        if self._left is None or failed.fault is not Fault.SIZE:
            return failed
        advice = (
            f" (all buckets take {size} bytes in one message; the replica was sent them in pieces of {self._most} "
            "bytes, and did not keep them: raise --bucket-cache-size of the service, or its --max-message-size to more "
            f"than {size} bytes)"
        )
        return dataclasses.replace(failed, reason=failed.reason + advice)


def without_known(request: v1.PlanRequest, known: Callable[[Digest], bool]) -> v1.PlanRequest:
    """A copy of a request, of whose buckets those go by digest alone that are known."""
    slim = v1.PlanRequest()
    slim.CopyFrom(request)
    for bucket in _buckets(slim):
        if bucket.digest and known(bucket.digest):
            bucket.ClearField("data")
    return slim


def _buckets(request: v1.PlanRequest) -> Iterator[v1.Bucket]:
    yield from request.snapshot.node_buckets
    yield from request.snapshot.pod_buckets
