"""Tests requests that are sent in pieces."""

import asyncio
import dataclasses
import hashlib
from collections.abc import AsyncIterator, Callable

import grpc
import pytest

from nodewise import ClientConfig, PlanClient, RefusedError, UnreachableError, v1

from .servers import Behave, Server, fails

CODE = grpc.StatusCode
LETTERS = "abcdefghij"
BYTES = 1_000
"""The size of a bucket, in bytes."""


def whole(letters: str = LETTERS) -> v1.PlanRequest:
    """A request with one node bucket for each letter."""
    contents = [letter.encode() * BYTES for letter in letters]
    buckets = [v1.Bucket(data=content, digest=hashlib.sha256(content).digest()) for content in contents]
    served = b'{"metadata":{"uid":"u"}}'
    return v1.PlanRequest(
        snapshot=v1.Snapshot(workload=v1.Workload(daemon_set=v1.DaemonSet(object=served)), node_buckets=buckets)
    )


def pieces_of(buckets: int) -> ClientConfig:
    """A client with this number of buckets in a piece."""
    return ClientConfig(timeout=20, base_pause=0.01, max_pause=0.02, max_piece_bytes=buckets * BYTES + 500)


def brought(server: Server) -> list[str]:
    """The buckets with bytes in each request, by their letters."""
    return [
        "".join(bucket.data[:1].decode() for bucket in request.snapshot.node_buckets if bucket.HasField("data"))
        for request in server.plans
    ]


def keeps(most: int, largest: int) -> Behave:
    """A replica that keeps this number of the last buckets, and accepts messages of this size."""
    kept: list[bytes] = []

    async def behave(server: Server, sent: v1.PlanRequest, context: grpc.aio.ServicerContext) -> v1.PlanResponse:  # type: ignore[type-arg]
        if sent.ByteSize() > largest:
            await fails(CODE.RESOURCE_EXHAUSTED, "a message is too large")(server, sent, context)
        before = list(kept)
        buckets = sent.snapshot.node_buckets
        lacks = [i for i, b in enumerate(buckets) if not b.HasField("data") and b.digest not in before]
        kept.extend(bucket.digest for bucket in buckets if bucket.HasField("data"))
        del kept[: max(len(kept) - most, 0)]
        if lacks:
            missing = v1.MissingBuckets(node_bucket_indices=lacks)
            await fails(CODE.FAILED_PRECONDITION, "buckets", missing)(server, sent, context)
        return v1.PlanResponse(plan=v1.Plan(plan_id="whole"))

    return behave


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    started = await Server().start()
    yield started
    await started.stop()


@pytest.mark.parametrize(
    ("buckets", "kept", "taken", "expected"),
    [
        pytest.param(2, 10, 3, ["ab", "cd", "ef", "gh", "ij"], id="more pieces than corrections"),
        pytest.param(0, 10, 3, list(LETTERS), id="buckets larger than a piece"),
        pytest.param(4, 0, 11, ["abcd", "efgh", LETTERS], id="nothing is kept"),
        pytest.param(10, 0, 11, [LETTERS], id="as much as fits into a piece"),
    ],
)
async def test_what_is_too_large_for_one_message_comes_in_pieces(
    server: Server, buckets: int, kept: int, taken: int, expected: list[str]
) -> None:
    server.behave = keeps(kept, taken * BYTES + 700)
    async with PlanClient(server.url, config=pieces_of(buckets)) as client:
        assert (await client.plan_request(whole())).plan_id == "whole"
    assert brought(server) == expected


async def test_what_fits_neither_in_a_message_nor_in_the_cache_is_an_error_that_says_so(server: Server) -> None:
    server.behave = keeps(5, 6 * BYTES)
    async with PlanClient(server.url, config=pieces_of(4)) as client:
        with pytest.raises(RefusedError) as refused:
            await client.plan_request(whole())
    assert brought(server) == ["abcd", "efgh", "ij", "abci", LETTERS]
    for said in (
        "a message is too large (all buckets take 10",
        "in pieces of 4500 bytes",
        "--bucket-cache-size",
        "--max-message-size",
    ):
        assert said in str(refused.value)


# Pieces that a replica has are not sent again, neither by the next attempt nor for another workload.
async def test_an_attempt_goes_on_where_the_last_one_ended(server: Server) -> None:
    keeping = keeps(10, 1 << 20)

    async def behave(server: Server, sent: v1.PlanRequest, context: grpc.aio.ServicerContext) -> v1.PlanResponse:  # type: ignore[type-arg]
        if len(server.plans) == 2:
            await fails(CODE.INTERNAL, "a defect")(server, sent, context)
        answer = await keeping(server, sent, context)
        assert isinstance(answer, v1.PlanResponse)
        return answer

    server.behave = behave
    async with PlanClient(server.url, config=pieces_of(2)) as client:
        await client.plan_request(whole("abcdef"))
    assert brought(server) == ["ab", "cd", "cd", "ef"]


# All workloads share the nodes, and all of them ask a new replica at the same time.
async def test_calls_do_not_send_the_same_pieces(server: Server) -> None:
    server.behave = keeps(10, 1 << 20)
    async with PlanClient(server.url, config=pieces_of(2)) as client:
        await asyncio.gather(*(client.plan_request(whole("abcdef")) for _ in range(2)))
    assert brought(server) == ["ab", "cd", "ef", ""]


async def test_who_waits_in_vain_for_another_call_says_so(server: Server) -> None:
    config = dataclasses.replace(pieces_of(2), timeout=0.2, min_attempts=1)
    async with PlanClient(server.url, config=config) as client:
        await client._replicas.members[0].pieces.acquire()
        with pytest.raises(UnreachableError, match="another call sends it buckets in pieces"):
            await client.plan_request(whole())
    assert not server.plans


# The caller may reuse its request.
async def test_the_request_of_the_caller_stays_as_it_is(server: Server) -> None:
    server.behave = keeps(0, 1 << 20)
    request, build = whole("abcd"), whole("abcd")

    def always(_: Callable[[bytes], bool]) -> v1.PlanRequest:
        return build

    async with PlanClient(server.url, config=pieces_of(2)) as client:
        await client.plan("u", always)
    assert build == request
    assert brought(server)[0] == "ab"
    assert brought(server)[-1] == "abcd"


# A bucket without a digest is always sent with its bytes.
async def test_buckets_without_digests_come_in_one_message(server: Server) -> None:
    server.behave = keeps(0, 1 << 20)
    request = whole("abcd")
    for bucket in request.snapshot.node_buckets:
        bucket.ClearField("digest")
    config = dataclasses.replace(pieces_of(2), min_attempts=1)
    async with PlanClient(server.url, config=config) as client:
        await client.plan_request(request)
    assert brought(server) == ["abcd"]
