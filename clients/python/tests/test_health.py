"""Tests the health watch of a replica, whose messages a test controls."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2

from nodewise.client import health
from nodewise.client import replica as replica_module
from nodewise.client.replica import Replica, ReplicaStatus
from nodewise.client.replicas import Replicas

SERVING = health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


class FakeWatch:
    """A call of `grpc.health.v1.Health/Watch`."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Any] = asyncio.Queue()

    async def read(self) -> Any:
        return await self.told.get()

    def cancel(self) -> None: ...


class Told:
    """A replica with a health follower."""

    def __init__(self) -> None:
        self.replica = Replica("127.0.0.1:1", 1 << 20)
        self.replica.health = self
        self.replicas = Replicas(lambda _: self.replica)
        self.replicas.replace([self.replica.address])
        self.watches: asyncio.Queue[FakeWatch] = asyncio.Queue()
        self.following = asyncio.create_task(health.follow_health(self.replicas, self.replica))

    def Watch(self, _: object) -> FakeWatch:  # noqa: N802
        watch = FakeWatch()
        self.watches.put_nowait(watch)
        return watch

    async def watch(self) -> FakeWatch:
        """Returns the next probe."""
        return await asyncio.wait_for(self.watches.get(), 20)

    def is_evicted(self) -> bool:
        return self.replica.status is ReplicaStatus.EVICTED

    async def settle(self) -> None:
        """Runs all tasks that are ready."""
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def told() -> AsyncIterator[Told]:
    told = Told()
    yield told
    told.following.cancel()
    await told.replica.close()


# The health message is on its way to the follower, over some iterations of the event loop, when the call fails.
@pytest.mark.parametrize("turns", range(8))
async def test_an_answer_from_before_a_failed_call_lets_nobody_in_again(told: Told, turns: int) -> None:
    watch = await told.watch()
    await told.settle()
    watch.told.put_nowait(SERVING)
    for _ in range(turns):
        await asyncio.sleep(0)
    told.replicas.failed(told.replica, "a call failed")
    await told.settle()
    assert told.is_evicted()


async def test_a_call_that_fails_while_an_evicted_replica_is_probed_counts(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "EVICTION", 0.01)
    await told.watch()
    told.replicas.failed(told.replica, "a call failed")
    probe = await told.watch()
    told.replicas.failed(told.replica, "another failed")
    probe.told.put_nowait(SERVING)
    await told.settle()
    assert told.is_evicted()
    (await told.watch()).told.put_nowait(SERVING)
    await told.settle()
    assert not told.is_evicted(), "by a probe that began later"


async def test_a_replica_that_fails_in_a_pause_gets_its_own_pause(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PROBE_PAUSE", 0.05)
    (await told.watch()).told.put_nowait(grpc.aio.EOF)
    await told.settle()
    assert told.is_evicted(), "its health is told no more"
    told.replicas.answered(told.replica)
    while not told.watches.empty():
        # The pause is short, and this machine may be slow.
        told.watches.get_nowait()
    before = time.monotonic()
    told.replicas.failed(told.replica, "a call failed")
    await told.watch()
    assert time.monotonic() - before >= replica_module.EVICTION
