"""Tests which form of nodes a replica gets: with shared labels, or the one that every version reads."""

import hashlib
from typing import Any

import pytest

from nodewise import v1
from nodewise.client import ClientConfig, PlanClient, Receiver

from .polling import eventually
from .servers import Server


def sharing(receiver: Receiver) -> v1.PlanRequest:
    """A request of one bucket, in which nodes share labels if the replica reads that."""
    form = "data_with_shared_labels" if receiver.reads_shared_labels else "data"
    content = form.encode()
    bucket = v1.Bucket(digest=hashlib.sha256(content).digest())
    if not receiver(bucket.digest):
        setattr(bucket, form, content)
    return v1.PlanRequest(snapshot=v1.Snapshot(node_buckets=[bucket]))


def forms(server: Server) -> list[str]:
    """The forms in which the bucket was sent."""

    def form(request: v1.PlanRequest) -> str:
        (bucket,) = request.snapshot.node_buckets
        sent = [field.name for field, _ in bucket.ListFields() if field.name != "digest"]
        return sent[0] if sent else "digest"

    return [form(request) for request in server.plans]


async def probed(client: PlanClient) -> None:
    """Waits for the first probe, after which the client forgets what a replica knows."""
    await eventually(lambda: client.health() is None, "it serves")


SHARED = "data_with_shared_labels"


@pytest.fixture(name="server")
async def _server() -> Any:
    server = await Server().start()
    yield server
    await server.stop()


@pytest.mark.parametrize("reads", [False, True])
async def test_only_a_replica_that_announces_it_gets_shared_labels(server: Server, reads: bool) -> None:
    server.reads_shared_labels = reads
    server.features = ["RolloutPolicies", *(["SharedLabels"] if reads else [])]
    async with PlanClient(server.url) as client:
        await probed(client)
        for _ in range(2):
            await client.plan("d1", sharing)
    assert forms(server) == [SHARED if reads else "data", "digest"]
    assert server.asked_for_kinds == 1


# Every version reads the plain form, so a gateway that refuses the question stops nothing.
async def test_a_replica_that_may_not_be_asked_gets_the_plain_form(server: Server) -> None:
    server.hides_capabilities = True
    async with PlanClient(server.url) as client:
        await probed(client)
        for _ in range(2):
            await client.plan("d1", sharing)
    assert forms(server) == ["data", "digest"]


# During an upgrade an earlier version may answer behind the address of a newer one.
async def test_a_replica_that_does_not_read_shared_labels_gets_the_plain_form(server: Server) -> None:
    server.features = ["SharedLabels"]
    async with PlanClient(server.url) as client:
        await probed(client)
        await client.plan("d1", sharing)
        assert forms(server) == [SHARED, "data"]
        # What was announced is forgotten.
        server.features = []
        await client.plan("d1", sharing)
    assert forms(server)[2:] == ["digest"]
    assert server.asked_for_kinds == 2


# Buckets that were evicted do not mean that another version answers.
async def test_a_replica_that_lacks_other_buckets_still_gets_shared_labels(server: Server) -> None:
    server.reads_shared_labels, server.features = True, ["SharedLabels"]
    async with PlanClient(server.url) as client:
        await probed(client)
        await client.plan("d1", sharing)
        server.has.clear()
        await client.plan("d1", sharing)
    assert forms(server) == [SHARED, "digest", SHARED]
    assert server.asked_for_kinds == 1


async def test_buckets_with_shared_labels_are_sent_in_pieces(server: Server) -> None:
    server.reads_shared_labels, server.features = True, ["SharedLabels"]

    def build(receiver: Receiver) -> v1.PlanRequest:
        def bucket(content: bytes) -> v1.Bucket:
            digest = hashlib.sha256(content).digest()
            if receiver(digest):
                return v1.Bucket(digest=digest)
            if receiver.reads_shared_labels:
                return v1.Bucket(digest=digest, data_with_shared_labels=content)
            return v1.Bucket(digest=digest, data=content)

        return v1.PlanRequest(snapshot=v1.Snapshot(node_buckets=[bucket(b"a" * 150), bucket(b"b" * 150)]))

    async with PlanClient(server.url, config=ClientConfig(max_piece_bytes=250)) as client:
        await client.plan("d1", build)
    sent = [
        [bucket.HasField("data_with_shared_labels") for bucket in request.snapshot.node_buckets]
        for request in server.plans
    ]
    assert sent == [[True, False], [False, True]]
