"""Tests the plan client with replicas that fail in every way."""

import asyncio
import dataclasses
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
import trustme
from google.rpc import error_details_pb2

from nodewise import (
    ClientConfig,
    FieldViolation,
    PlanClient,
    RefusedError,
    ServiceError,
    UnreachableError,
    node_buckets,
    pod_buckets,
    sync,
    v1,
)
from nodewise.client import discovery, messages, target
from nodewise.client import replica as replica_module
from nodewise.client.attempts import Attempts
from nodewise.client.capabilities import Capabilities
from nodewise.client.fault import Failed, Fault
from nodewise.client.replica import GENERATION, Replica, ReplicaStatus
from nodewise.client.replicas import Replicas, weight

from .polling import eventually
from .servers import Server, details, fails, hangs, retry_info

CODE = grpc.StatusCode
QUICK = ClientConfig(timeout=60, base_pause=0.01, max_pause=0.02)
BY_NAME = dataclasses.replace(QUICK, plaintext=True)
"""The names lead to this machine, which they do not say."""
PATIENT = dataclasses.replace(BY_NAME, timeout=90)
"""For a call that a test holds up until something has happened."""


@pytest.fixture
async def servers() -> AsyncIterator[list[Server]]:
    started = [await Server().start() for _ in range(3)]
    yield started
    for server in started:
        await server.stop()


def request(*nodes: str, uid: str = "u") -> v1.PlanRequest:
    served = f'{{"metadata":{{"name":"d","uid":"{uid}"}}}}'.encode()
    snapshot = v1.Snapshot(
        workload=v1.Workload(daemon_set=v1.DaemonSet(object=served)),
        bucket_count=4,
        node_buckets=node_buckets([v1.Node(name=name) for name in nodes], 4),
        pod_buckets=pod_buckets([], 4),
        digest_function=v1.DIGEST_FUNCTION_SHA256,
    )
    return v1.PlanRequest(snapshot=snapshot)


def home(servers: list[Server], uid: str = "u") -> list[Server]:
    """The servers in the order in which the workload asks them."""
    return sorted(servers, key=lambda server: weight(uid, server.address))


def urls(servers: list[Server]) -> list[str]:
    return [server.url for server in servers]


async def test_buckets_go_by_digest_once_they_are_known(servers: list[Server]) -> None:
    async with PlanClient(servers[0].url, config=QUICK) as client:
        for _ in range(2):
            await client.plan_request(request("a", "b"))
        await client.plan_request(request("a", "b", "c"))
    inline = [
        sum(bucket.HasField("data") for bucket in (*sent.snapshot.node_buckets, *sent.snapshot.pod_buckets))
        for sent in servers[0].plans
    ]
    assert inline == [8, 0, 1]


async def test_missing_buckets_are_resent_in_the_same_call(servers: list[Server]) -> None:
    server = servers[0]
    async with PlanClient(server.url, config=QUICK) as client:
        await client.plan_request(request("a"))
        server.has.clear()
        plan = await client.plan_request(request("a"))
        assert plan.plan_id == server.address
        assert client.health() is None, "it is well, so it is not shunned"
    assert len(server.plans) == 3


async def test_a_replica_that_loses_buckets_all_the_time_gets_all_of_them(servers: list[Server]) -> None:
    server = servers[0]
    everything = []

    async def forgetful(_: Server, sent: v1.PlanRequest, context: grpc.aio.ServicerContext) -> v1.PlanResponse:  # type: ignore[type-arg]
        buckets = [*sent.snapshot.node_buckets, *sent.snapshot.pod_buckets]
        everything.append(all(bucket.HasField("data") for bucket in buckets))
        if everything.count(True) < 2:
            # The server claims to lack the first bucket, whatever is sent, and later buckets that it never got.
            missing = v1.MissingBuckets(node_bucket_indices=[0, 999])
            await fails(CODE.FAILED_PRECONDITION, "b", missing)(server, sent, context)
        return v1.PlanResponse(plan=v1.Plan())

    async with PlanClient(server.url, config=QUICK) as client:
        await client.plan_request(request("a"))
        server.behave = forgetful
        await client.plan_request(request("a"))
    assert everything == [False, False, False, True] * 2


async def test_a_workload_stays_with_its_replica(servers: list[Server]) -> None:
    async with PlanClient(*urls(servers), config=QUICK) as client:
        for uid in ("u", "v", "w", "u", "v", "w"):
            plan = await client.plan_request(request("a", uid=uid))
            assert plan.plan_id == home(servers, uid)[0].address


@pytest.mark.parametrize("code", [CODE.UNAVAILABLE, CODE.UNIMPLEMENTED, CODE.INTERNAL])
async def test_the_next_replica_is_asked_when_one_fails(
    servers: list[Server], code: CODE, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "EVICTION", 30.0)
    first, second, third = home(servers)
    first.behave = fails(code)
    async with PlanClient(*urls(servers), config=QUICK) as client:
        for _ in range(2):
            assert (await client.plan_request(request("a"))).plan_id == second.address
    assert len(first.plans) == 1, "evicted by then"
    assert not third.plans


async def test_a_replica_that_is_gone_comes_back(servers: list[Server]) -> None:
    first, second, _ = home(servers)
    async with PlanClient(*urls(servers), config=QUICK) as client:
        await first.stop()
        assert (await client.plan_request(request("a"))).plan_id == second.address
        await first.start()
        members = client._replicas.members
        replica = next(replica for replica in members if replica.address == first.address)
        await eventually(lambda: replica.status is ReplicaStatus.READY, "a probe is answered")
        assert (await client.plan_request(request("a"))).plan_id == first.address


async def test_a_replica_that_drains_is_asked_no_more(servers: list[Server]) -> None:
    first, second, _ = home(servers)
    async with PlanClient(*urls(servers), config=QUICK) as client:
        replica = next(r for r in client._replicas.members if r.address == first.address)
        await eventually(lambda: replica.status is ReplicaStatus.READY, "health is told")
        await first.says("NOT_SERVING")
        await eventually(lambda: replica.status is ReplicaStatus.DRAINING, "draining is told")
        assert (await client.plan_request(request("a"))).plan_id == second.address
        await first.says("SERVING")
        await eventually(lambda: replica.status is ReplicaStatus.READY, "it serves again")
        assert (await client.plan_request(request("a"))).plan_id == first.address
    assert len(first.plans) == 1


# A slow connection, for example with TLS, over a long distance, or to an overloaded machine. The delay is the input of
# this test.
async def test_a_connection_may_take_a_moment(servers: list[Server]) -> None:
    host, port = servers[0].address.split(":")
    pipes: list[asyncio.Task[None]] = []

    async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            sink.write(data)
        sink.close()

    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.7)
        their_reader, their_writer = await asyncio.open_connection(host, int(port))
        pipes.extend(asyncio.create_task(pipe(*ends)) for ends in ((reader, their_writer), (their_reader, writer)))

    proxy = await asyncio.start_server(slowly, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with PlanClient(url, config=ClientConfig(timeout=20, min_attempts=1)) as client:
        assert (await client.plan_request(request("a"))).plan_id == servers[0].address
    proxy.close()
    await asyncio.gather(*pipes, return_exceptions=True)


async def test_one_that_hangs_costs_a_part_of_the_time(servers: list[Server]) -> None:
    first, second, _ = home(servers)
    first.behave = hangs
    began = time.monotonic()
    async with PlanClient(*urls(servers), config=ClientConfig(timeout=6)) as client:
        assert (await client.plan_request(request("a"))).plan_id == second.address
    assert 1.9 < time.monotonic() - began < 6
    # gRPC rounds the deadline up, by up to a hundredth of a second.
    assert first.remaining[0] < 2.1, "it is told its deadline"


async def test_a_wrong_request_is_not_asked_again(servers: list[Server]) -> None:
    for server in servers:
        server.behave = fails(CODE.INVALID_ARGUMENT, "snapshot.now: is missing")
    async with PlanClient(*urls(servers), config=QUICK) as client:
        with pytest.raises(RefusedError, match=r"snapshot\.now") as refused:
            await client.plan_request(request("a"))
        assert refused.value.code is CODE.INVALID_ARGUMENT
    assert sum(len(server.plans) for server in servers) == 1


async def test_a_refusal_names_the_rejected_fields(servers: list[Server]) -> None:
    rejected = error_details_pb2.BadRequest(
        field_violations=[
            error_details_pb2.BadRequest.FieldViolation(field="snapshot.state.slow_start", description="no")
        ]
    )
    servers[0].behave = fails(CODE.INVALID_ARGUMENT, "wrong", rejected)
    async with PlanClient(servers[0].url, config=QUICK) as client:
        for call in (
            client.plan_request(request("a")),
            client.explain(v1.ExplainRequest(snapshot=request("a").snapshot)),
            client.report(v1.ReportRequest()),
        ):
            with pytest.raises(RefusedError) as refused:
                await call
            assert refused.value.violations == (FieldViolation("snapshot.state.slow_start", "no"),)
            assert refused.value.may_concern("snapshot.state")
            assert not refused.value.may_concern("snapshot.workload")
    assert RefusedError("too large").may_concern("snapshot.state"), "nothing says which field is wrong"


@pytest.mark.parametrize("count", [0, -1])
def test_a_snapshot_has_a_bucket(count: int) -> None:
    for buckets in (node_buckets, pod_buckets):
        with pytest.raises(ValueError, match=f"count is {count}; a snapshot has at least 1 bucket"):
            buckets([], count)


async def test_explain_sends_known_buckets_by_digest_and_lacking_ones_again(servers: list[Server]) -> None:
    explain = v1.ExplainRequest(snapshot=request("a", "b").snapshot, node_name="n1")
    inline = sum(bucket.HasField("data") for bucket in (*explain.snapshot.node_buckets, *explain.snapshot.pod_buckets))
    async with PlanClient(servers[0].url, config=QUICK) as client:
        await client.explain(explain)
        await client.explain(explain)
        servers[0].has.clear()
        assert (await client.explain(explain)).nodes[0].node_name == "n1"
    assert [
        sum(bucket.HasField("data") for bucket in (*sent.snapshot.node_buckets, *sent.snapshot.pod_buckets))
        for sent in servers[0].explains
    ] == [inline, 0, 0, inline]


async def test_explain_is_retried_as_often_as_plan(servers: list[Server]) -> None:
    servers[0].behave = fails(CODE.RESOURCE_EXHAUSTED, "saturated", retry_info(0))
    async with PlanClient(servers[0].url, config=QUICK) as client:
        with pytest.raises(UnreachableError, match="saturated"):
            await client.explain(v1.ExplainRequest(snapshot=request("a").snapshot))
    assert len(servers[0].explains) == QUICK.min_attempts


async def test_one_other_is_asked_about_a_request_that_is_too_large(servers: list[Server]) -> None:
    for server in servers:
        server.behave = fails(CODE.RESOURCE_EXHAUSTED, "too large")
    async with PlanClient(*urls(servers), config=QUICK) as client:
        with pytest.raises(RefusedError, match="too large"):
            await client.plan_request(request("a"))
        assert client.health() is None
    assert sum(len(server.plans) for server in servers) == 2


async def test_a_request_that_fails_everywhere_evicts_nobody(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "EVICTION", 30.0)
    for server in servers:
        server.behave = fails(CODE.INTERNAL, "a defect")
    async with PlanClient(*urls(servers), config=QUICK) as client:
        with pytest.raises(UnreachableError, match="a defect"):
            await client.plan_request(request("a"))
        statuses = {replica.status for replica in client._replicas.members}
        assert ReplicaStatus.EVICTED not in statuses
        assert sum(len(server.plans) for server in servers) == 2
        # A replica that also fails another workload is at fault.
        with pytest.raises(UnreachableError):
            await client.plan_request(request("a", uid="v"))
        assert ReplicaStatus.EVICTED in {replica.status for replica in client._replicas.members}


async def test_a_call_can_be_cancelled(servers: list[Server]) -> None:
    servers[0].behave = hangs
    async with PlanClient(servers[0].url, config=QUICK) as client:
        calling = asyncio.create_task(client.plan_request(request("a")))
        await eventually(lambda: bool(servers[0].plans), "a plan is asked for")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling


async def test_a_saturated_replica_keeps_its_workloads(servers: list[Server]) -> None:
    first, second, _ = home(servers)
    first.behave = fails(CODE.RESOURCE_EXHAUSTED, "saturated", retry_info(1))
    async with PlanClient(*urls(servers), config=QUICK) as client:
        for _ in range(2):
            assert (await client.plan_request(request("a"))).plan_id == second.address
    assert len(first.plans) == 2


async def test_a_report_is_tried_once_at_each(servers: list[Server]) -> None:
    report = v1.ReportRequest(workload=v1.WorkloadReference(uid="u"), plan_id="p")
    first, second, third = home(servers)
    first.behave = fails(CODE.UNAVAILABLE)
    async with PlanClient(*urls(servers), config=QUICK) as client:
        assert (await client.report(report)).requeue == v1.REQUEUE_NONE
        assert second.reports == [report]
        second.behave = third.behave = fails(CODE.UNAVAILABLE)
        with pytest.raises(UnreachableError):
            await client.report(report)
    assert [len(server.reports) for server in (first, second, third)] == [2, 2, 1]


async def test_nobody_there() -> None:
    async with PlanClient("http://127.0.0.1:1", config=QUICK) as client:
        with pytest.raises(UnreachableError, match="UNAVAILABLE"):
            await client.plan_request(request("a"))
        health = client.health()
        assert health is not None
        assert health.startswith("no replica of the planning service answers")
    with pytest.raises(ValueError, match="at least one"):
        PlanClient()


async def said(url: str, config: ClientConfig = QUICK) -> tuple[UnreachableError, str, str]:
    """The error of a client that gets no plan, its text, and the client's health."""
    async with PlanClient(url, config=config) as client:
        with pytest.raises(UnreachableError) as error:
            await client.plan_request(request("a"))
        return error.value, str(error.value), client.health() or ""


# Each of these messages says what to change.
async def test_what_to_change_is_said_where_a_port_speaks_tls() -> None:
    replica = await Server().start(certified()[1])
    error, text, health = await said(replica.url)
    advice = (
        "; what listens there does not speak gRPC in plain text: check the port, and if it speaks TLS, write "
        f"https://{replica.address} and give credentials with ClientConfig(credentials=grpc.ssl_channel_credentials())"
    )
    assert text.startswith(f"no replica of the planning service answered: {replica.address}: UNAVAILABLE: ")
    assert text.endswith(advice)
    assert health.endswith(advice)
    assert error.code is CODE.UNAVAILABLE
    _, text, _ = await said(f"dns:///{replica.address}")
    assert text.endswith(
        "if it speaks TLS, give credentials with ClientConfig(credentials=grpc.ssl_channel_credentials())"
    )
    await replica.stop()


async def test_what_to_change_is_said_where_a_port_speaks_plain_text(servers: list[Server]) -> None:
    config, address = dataclasses.replace(QUICK, credentials=grpc.ssl_channel_credentials()), servers[0].address
    _, text, _ = await said(f"https://{address}", config)
    assert text.endswith(
        "; what listens there does not speak TLS: check the port, and if it speaks plain text, "
        f"write http://{address} and leave ClientConfig.credentials out"
    )


async def test_what_to_change_is_said_where_another_server_listens() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    error, text, health = await said(f"http://127.0.0.1:{port}")
    sentence = (
        f"127.0.0.1:{port}: UNIMPLEMENTED: Method not found!; what listens there is no nodewise-server, or one of "
        "another version: check the address, and the version of the server"
    )
    assert text == f"no replica of the planning service answered: {sentence}"
    assert health == f"no replica of the planning service answers: {sentence}"
    assert error.code is CODE.UNIMPLEMENTED
    await server.stop(None)


async def test_what_to_change_is_said_where_no_port_was_written() -> None:
    written = target.parse("http://127.0.0.1")
    replica = Replica("127.0.0.1:80", 1 << 20, target=written)
    details = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:80: Connection refused"
    empty = grpc.aio.Metadata()
    text = messages.of_failure(replica, grpc.aio.AioRpcError(CODE.UNAVAILABLE, empty, empty, details))
    assert text.startswith("127.0.0.1:80: UNAVAILABLE: Connection refused; ")
    assert text.endswith(
        "; no port was written, so this was 80: write that of the planning service, which is 7443 where nothing else "
        "was set"
    )
    await replica.close()


async def test_nothing_is_said_twice() -> None:
    _, text, health = await said("http://127.0.0.1:1")
    for told, beginning in ((text, "answered"), (health, "answers")):
        assert told.startswith(f"no replica of the planning service {beginning}: 127.0.0.1:1: UNAVAILABLE: ")
        assert told.endswith(
            "Connection refused; nothing listens there: check the address and the port, and that nodewise-server is "
            "running"
        )
        assert told.count("127.0.0.1:1") == told.count("UNAVAILABLE") == told.count("connect") == 1

    async def lookup(_: str, __: int) -> list[str]:
        raise OSError("no such host")

    config = dataclasses.replace(BY_NAME, timeout=0.2)
    unknown = "no replica of the planning service is known: dns:///planner:1: no such host"
    async with PlanClient("dns:///planner:1", config=config, lookup=lookup) as client:
        with pytest.raises(UnreachableError) as error:
            await client.plan_request(request("a"))
        assert str(error.value) == client.health() == unknown
        assert error.value.code is None


async def test_names_are_looked_up_again_when_a_replica_fails(servers: list[Server]) -> None:
    found = [servers[0].address]

    async def lookup(host: str, port: int) -> list[str]:
        assert (host, port) == ("planner.example", 7443)
        return found

    async with PlanClient("dns:///planner.example:7443", config=BY_NAME, lookup=lookup) as client:
        assert (await client.plan_request(request("a"))).plan_id == servers[0].address
        found = [servers[1].address, servers[2].address]
        await servers[0].stop()

        async def moved() -> str:
            try:
                return (await client.plan_request(request("a"))).plan_id
            except UnreachableError:
                return ""

        until = time.monotonic() + discovery.PERIOD / 2
        while await moved() not in found:
            assert time.monotonic() < until, "sooner than by the period"
        assert [replica.address for replica in client._replicas.members] == sorted(found)


async def test_look_ups_that_fail_change_nothing() -> None:
    script = itertools.chain([["b:1", "a:1", "a:1"], [], OSError("no such host")], itertools.repeat(["c:1"]))

    async def lookup(_: str, __: int) -> list[str]:
        answer = next(script)
        if isinstance(answer, OSError):
            raise answer
        assert isinstance(answer, list)
        return answer

    doubt = asyncio.Event()
    told: list[list[str] | str] = []
    async for answer in discovery.addresses(target.Dns("h", 1), lookup, doubt):
        told.append(answer)
        doubt.set()
        if len(told) == 4:
            break
    assert told == [["a:1", "b:1"], "dns:///h:1: the name has no address", "dns:///h:1: no such host", ["c:1"]]


class Moves:
    """A name whose addresses a test changes."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)

    async def __call__(self, host: str, port: int) -> list[str]:
        return self.addresses


def at(client: PlanClient, server: Server) -> Replica:
    return next(replica for replica in client._replicas.members if replica.address == server.address)


async def test_a_call_goes_on_though_its_replica_is_none_any_more(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "SHORTEST", 0.01)
    asked, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(server: Server, *_: object) -> v1.PlanResponse:
        asked.set()
        await goes_on.wait()
        return v1.PlanResponse(plan=v1.Plan(plan_id=server.address))

    servers[0].behave = slow
    lookup = Moves(servers[0].address)
    async with PlanClient("dns:///planner:1", config=PATIENT, lookup=lookup) as client:
        calling = asyncio.create_task(client.plan_request(request("a")))
        await asyncio.wait_for(asked.wait(), 20)
        replica = at(client, servers[0])
        close = replica._channel.close
        # However long the call takes: closing the channel would cancel calls that wait for a connection.
        monkeypatch.setattr(replica._channel, "close", lambda grace=None: close())
        lookup.addresses = [servers[1].address]
        client._replicas._request_lookup()
        await eventually(lambda: replica not in client._replicas.members, "it is gone")
        goes_on.set()
        assert (await calling).plan_id == servers[0].address
        await eventually(lambda: replica.is_closed, "nobody needs it any more")


async def test_replicas_that_come_and_go_are_logged_but_not_the_first_ones(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="nodewise.client.replicas")
    made: list[Replica] = []

    def connect(address: str) -> Replica:
        made.append(Replica(address, 1 << 20))
        return made[-1]

    replicas = Replicas(connect)
    for addresses in (["a:1"], ["a:1"], ["a:1", "b:1"], ["b:1", "c:1"], ["c:1"]):
        replicas.replace(addresses)
    assert [record.getMessage() for record in caplog.records] == [
        "the planning service has 2 replicas now: 1 new, 0 gone",
        "the planning service has 2 replicas now: 1 new, 1 gone",
        "the planning service has 1 replica now: 0 new, 1 gone",
    ]
    for replica in made:
        await replica.close()


async def test_a_call_that_begins_as_the_last_one_ends_is_waited_for_too() -> None:
    replica = Replica("127.0.0.1:1", 1 << 20)
    with replica.in_use():
        closing = asyncio.create_task(replica.close())
        await asyncio.sleep(0)
    with replica.in_use():
        done, _ = await asyncio.wait({closing}, timeout=0.1)
        assert not done
        assert not replica.is_closed
    await asyncio.wait_for(closing, 20)
    assert replica.is_closed


async def test_replicas_that_went_meanwhile_have_not_answered(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "SHORTEST", 0.01)
    first, second, third = home(servers)
    lookup = Moves(first.address, second.address)
    report = v1.ReportRequest(workload=v1.WorkloadReference(uid="u"), plan_id="p")

    async def everybody_moves(_: Server, sent: object, context: grpc.aio.ServicerContext) -> None:  # type: ignore[type-arg]
        lookup.addresses = [third.address]
        client._replicas._request_lookup()
        await eventually(lambda: other.is_closed, "the other one is gone")
        await context.abort(CODE.UNAVAILABLE, "and so am I")

    async with PlanClient("dns:///planner:1", config=PATIENT, lookup=lookup) as client:
        await client.plan_request(request("a"))
        other = at(client, second)
        first.behave = everybody_moves
        with pytest.raises(UnreachableError, match="a replica no more"):
            await client.report(report)
        assert (await client.report(report)).requeue == v1.REQUEUE_NONE
    assert third.reports == [report]


# A slow look-up must not miss a request for a new look-up that another one handled.
async def test_each_name_is_looked_up_again_when_a_replica_fails(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "SHORTEST", 0.0)
    monkeypatch.setattr(discovery, "PERIOD", 1000.0)
    counts, answers = {"quick": 0, "slow": 0}, asyncio.Event()

    async def lookup(host: str, _: int) -> list[str]:
        counts[host] += 1
        if host == "slow":
            await answers.wait()
        return [servers[host == "slow"].address]

    async with PlanClient("dns:///quick:1", "dns:///slow:1", config=BY_NAME, lookup=lookup) as client:
        await eventually(lambda: counts == {"quick": 1, "slow": 1} and bool(client._replicas.members), "both")
        client._replicas.failed(at(client, servers[0]), "a call failed")
        await eventually(lambda: counts["quick"] >= 2, "one is looked up again")
        answers.set()
        await eventually(lambda: counts["slow"] >= 2, "and the other as well")


async def test_a_client_may_be_used_again(servers: list[Server]) -> None:
    client = PlanClient(servers[0].url, config=QUICK)
    for _ in range(2):
        async with client:
            await client.plan_request(request("a"))
    assert len(servers[0].plans) == 2


async def test_this_machine_is_found() -> None:
    assert "127.0.0.1:80" in await discovery.system_lookup("localhost", 80)


async def test_two_generations_of_digests_are_remembered() -> None:
    replica = Replica("127.0.0.1:1", 1 << 20)
    in_use = [b"used-%d" % number for number in range(1000)]
    for generation in range(20):
        replica.known.used(in_use)
        replica.known.used(b"%d-%d" % (generation, number) for number in range(10_000))
        assert all(digest in replica.known for digest in in_use)
    assert b"0-0" not in replica.known
    known = sum(
        b"%d-%d" % (generation, number) in replica.known for generation in range(20) for number in range(10_000)
    )
    assert GENERATION <= known + len(in_use) < 3 * GENERATION
    await replica.close()


async def test_failed_calls_evict_for_longer_each_time() -> None:
    replica = Replica("127.0.0.1:1", 1 << 20)
    pauses = []
    for _ in range(9):
        assert replica.failed("no answer")
        assert not replica.failed("no answer"), "one failure evicts, others add nothing"
        pauses.append(replica.eviction_left)
        replica.serves()
    assert pauses == pytest.approx([0.5, 1, 2, 4, 8, 16, 30, 30, 30], abs=0.3)
    replica.answered()
    assert replica.eviction_left == 0
    await replica.close()


# An additional replica takes an equal share of all workloads, and no other workload moves.
def test_only_the_workloads_of_who_comes_move() -> None:
    addresses = [f"10.0.0.{last}:7443" for last in range(1, 6)]

    def homes(of: list[str]) -> dict[str, str]:
        return {uid: min(of, key=lambda address: weight(uid, address)) for uid in map(str, range(400))}

    before, after = homes(addresses[:4]), homes(addresses)
    moved = {uid for uid in before if before[uid] != after[uid]}
    assert moved == {uid for uid in after if after[uid] == addresses[4]}
    assert 40 < len(moved) < 130


async def test_attempts_share_the_time_of_the_call() -> None:
    clock = {"now": 0.0}
    for count, expected in ((1, [10, 10, 10]), (3, [10, 10, 10]), (6, [10, 6.67, 4.44, 2.96, 2.96, 2.96])):
        order = [Replica(f"127.0.0.1:{port}", 1 << 20) for port in range(1, count + 1)]
        clock["now"] = 0.0
        attempts, shares = Attempts(ClientConfig(), lambda: clock["now"]), []
        while (attempt := attempts.next(order)) is not None:
            shares.append(attempt.timeout)
            clock["now"] += attempt.timeout
        assert shares == pytest.approx(expected, abs=0.01)
        for replica in order:
            await replica.close()


@pytest.mark.parametrize(
    ("failed", "fault"),
    [
        (Failed(CODE.INVALID_ARGUMENT, ""), Fault.REQUEST),
        (Failed(CODE.RESOURCE_EXHAUSTED, ""), Fault.SIZE),
        (Failed(CODE.OUT_OF_RANGE, ""), Fault.SIZE),
        (
            Failed(CODE.RESOURCE_EXHAUSTED, "", details(CODE.RESOURCE_EXHAUSTED, "", retry_info(1))[0][1]),
            Fault.TRANSIENT,
        ),
        (Failed(CODE.RESOURCE_EXHAUSTED, "", b"\xff"), Fault.SIZE),
        (Failed(CODE.FAILED_PRECONDITION, ""), Fault.TRANSIENT),
        (Failed(CODE.UNAVAILABLE, ""), Fault.REPLICA),
        (Failed(CODE.UNIMPLEMENTED, ""), Fault.REPLICA),
        (Failed(CODE.PERMISSION_DENIED, ""), Fault.REPLICA),
        (Failed(CODE.UNAUTHENTICATED, ""), Fault.REPLICA),
        (Failed(CODE.DEADLINE_EXCEEDED, ""), Fault.UNCLEAR),
        (Failed(CODE.INTERNAL, ""), Fault.UNCLEAR),
        (Failed(CODE.UNKNOWN, ""), Fault.UNCLEAR),
    ],
)
def test_who_is_at_fault(failed: Failed, fault: Fault) -> None:
    assert failed.fault is fault


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("http://127.0.0.1:7443", "http://127.0.0.1:7443"),
        ("http://planner.example:7443/", "http://planner.example:7443"),
        ("http://[::1]:7443", "http://[::1]:7443"),
        ("http://planner.example", "http://planner.example:80"),
        ("https://planner.example:7443", "https://planner.example:7443"),
        ("https://planner.example", "https://planner.example:443"),
        ("dns:///planner.example:7443", "dns:///planner.example:7443"),
        ("dns:planner.example:7443", "dns:///planner.example:7443"),
        ("dns:///[::1]:7443", "dns:///[::1]:7443"),
    ],
)
def test_targets(text: str, read: str) -> None:
    assert str(target.parse(text, secure=text.startswith("https"), plaintext=True)) == read


# A client that asks for TLS never uses plain text, and the other way round.
def test_targets_go_with_credentials() -> None:
    with pytest.raises(target.TargetError, match=r"'https://h:1' asks for TLS.*credentials=.*http://HOST:PORT"):
        PlanClient("dns:///localhost:1", "https://h:1")
    credentials = grpc.ssl_channel_credentials()
    with pytest.raises(target.TargetError, match=r"'http://h:1' is plain text.*https://HOST:PORT"):
        PlanClient("dns:///h:1", "http://h:1", config=ClientConfig(credentials=credentials))


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("http://127.0.0.1:7443", True),
        ("http://127.8.9.1:7443", True),
        ("http://[::1]:7443", True),
        ("http://localhost:7443", True),
        ("http://LocalHost", True),
        ("dns:///127.0.0.1:7443", True),
        ("dns:///[::1]:7443", True),
        ("dns:LocalHost:7443", True),
        ("http://10.0.0.1:7443", False),
        ("http://0.0.0.0:7443", False),
        ("http://[fd00::1]:7443", False),
        ("http://[::ffff:127.0.0.1]:7443", False),
        ("http://planner:7443", False),
        ("http://localhost.example:7443", False),
        ("http://127.0.0.1.example:7443", False),
        ("dns:///10.0.0.1:7443", False),
        ("dns:///planner.tools.svc:7443", False),
    ],
)
def test_plain_text_is_spoken_on_loopback_or_when_asked_for(text: str, local: bool) -> None:
    PlanClient(text, config=ClientConfig(plaintext=True))
    if local:
        PlanClient(text)
    else:
        with pytest.raises(target.TargetError, match=r"is not on loopback.*plaintext=True") as refused:
            PlanClient("http://127.0.0.1:1", text)
        assert str(refused.value).startswith(repr(text))


# The error names the server, the cause, and what to write.
def test_what_is_refused_is_said_in_full() -> None:
    advice = (
        "give credentials with ClientConfig(credentials=grpc.ssl_channel_credentials()), or "
        "ClientConfig(plaintext=True) where something else protects it"
    )
    for text, wrong in (
        ("http://h:1", "'http://h:1' is not on loopback, and would be asked in plain text: write https://h:1 and "),
        ("dns:///h:1", "'dns:///h:1' is not on loopback, and would be asked in plain text: "),
    ):
        with pytest.raises(target.TargetError) as refused:
            PlanClient(text)
        assert str(refused.value) == wrong + advice


def test_plain_text_and_tls_at_the_same_time_are_refused() -> None:
    credentials = grpc.ssl_channel_credentials()
    PlanClient("dns:///planner.tools.svc:7443", config=ClientConfig(credentials=credentials))
    with pytest.raises(ValueError, match="plaintext=True means no TLS"):
        ClientConfig(credentials=credentials, plaintext=True)


def certified() -> tuple[trustme.CA, grpc.ServerCredentials]:
    """What a replica shows, and the authority that it comes from."""
    authority = trustme.CA()
    issued = authority.issue_cert("planner.example", "127.0.0.1")
    pair = issued.private_key_pem.bytes(), b"".join(part.bytes() for part in issued.cert_chain_pems)
    return authority, grpc.ssl_server_credentials([pair])


async def test_tls() -> None:
    authority, credentials = certified()
    server = await Server().start(credentials)
    trusting = dataclasses.replace(QUICK, credentials=grpc.ssl_channel_credentials(authority.cert_pem.bytes()))

    async def lookup(_: str, __: int) -> list[str]:
        return [server.address]

    for url in (f"https://{server.address}", "dns:///planner.example:7443"):
        async with PlanClient(url, config=trusting, lookup=lookup) as client:
            assert (await client.plan_request(request("a"))).plan_id == server.address
            await eventually(lambda: client._replicas.members[0].status is ReplicaStatus.READY, "health is told")
    asked = len(server.plans)
    distrusting = dataclasses.replace(QUICK, credentials=grpc.ssl_channel_credentials())
    for url, config in (
        (f"https://{server.address}", distrusting),
        ("dns:///another.example:7443", trusting),
        (server.url, QUICK),
    ):
        async with PlanClient(url, config=config, lookup=lookup) as client:
            with pytest.raises(UnreachableError):
                await client.plan_request(request("a"))
    assert len(server.plans) == asked
    await server.stop()


@pytest.mark.parametrize(
    ("text", "write"),
    [
        ("dns:///planner.example", "dns:///planner.example:7443"),
        ("dns:planner.example", "dns:///planner.example:7443"),
        ("dns:///[::1]", "dns:///[::1]:7443"),
    ],
)
def test_a_name_without_a_port_is_refused_with_what_to_write(text: str, write: str) -> None:
    with pytest.raises(target.TargetError) as refused:
        PlanClient(text)
    assert str(refused.value) == (
        f"{text!r} has no port: write {write}, or another port where the planning service listens there"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:7443",
        "https://127.0.0.1:7443",
        "http://",
        "http://user@host:7443",
        "http://host:port",
        "http://host:7443/path",
        "http://host:7443?query",
        "dns:///planner.example",
        "dns:///:7443",
        "dns:///planner.example:grpc",
        "dns:///planner.example:0",
        "dns:///planner.example:70000",
        "dns:///planner.example/x:7443",
        "dns://8.8.8.8/planner.example:7443",
    ],
)
def test_targets_that_mean_nothing(text: str) -> None:
    with pytest.raises(target.TargetError):
        target.parse(text, plaintext=True)


async def test_the_same_without_asyncio(servers: list[Server]) -> None:
    def use() -> tuple[str, str, str | None]:
        report = v1.ReportRequest(workload=v1.WorkloadReference(uid="u"))
        with sync.PlanClient(*urls(servers), config=QUICK) as client:
            plan = client.plan_request(request("a"))
            assert client.plan("u", lambda _: request("a")).plan_id == plan.plan_id
            assert client.report(report).requeue == v1.REQUEUE_NONE
            version = client.capabilities().engine_version
            home(servers)[0].behave = fails(CODE.INVALID_ARGUMENT, "wrong")
            with pytest.raises(RefusedError, match="wrong"):
                client.plan_request(request("a"))
            return plan.plan_id, version, client.health()

    plan_id, version, health = await asyncio.to_thread(use)
    assert plan_id == home(servers)[0].address
    assert version == home(servers, "")[0].address
    assert health is None
    with pytest.raises(RuntimeError, match="context manager"):
        sync.PlanClient("http://127.0.0.1:1").health()


def of_a_deployment(_: Any) -> v1.PlanRequest:
    served = json.dumps({"metadata": {"namespace": "ns", "name": "web", "uid": "d1"}}).encode()
    workload = v1.Workload(deployment=v1.Deployment(object=served))
    return v1.PlanRequest(snapshot=v1.Snapshot(workload=workload))


# A replica of an older version would refuse the request, and the workload would back off.
async def test_a_replica_is_not_asked_about_a_kind_that_it_does_not_plan_for(servers: list[Server]) -> None:
    old, new = servers[:2]
    new.kinds = ["DaemonSet", "ReplicaSet", "Deployment"]
    async with PlanClient(old.url, new.url) as client:
        for _ in range(3):
            plan = await client.plan("d1", of_a_deployment)
            assert (plan.plan_id, plan.workload.kind) == (new.address, "Deployment")
        assert old.plans == []
        assert await client.plan_request(v1.PlanRequest())
        new.kinds = ["DaemonSet"]
    async with PlanClient(old.url, new.url) as client:
        with pytest.raises(UnreachableError, match="plans for DaemonSet, and not for Deployment; upgrade it") as error:
            await client.plan("d1", of_a_deployment)
        assert error.value.code is grpc.StatusCode.UNIMPLEMENTED
        assert client.health() is None, "it answers other calls"


# It may be another version after each restart.
async def test_a_replica_is_asked_for_its_kinds_again_after_a_probe(servers: list[Server]) -> None:
    server = servers[0]
    async with PlanClient(server.url, config=ClientConfig(min_attempts=1)) as client:
        with pytest.raises(UnreachableError, match="upgrade it"):
            await client.plan("d1", of_a_deployment)
        server.kinds = ["DaemonSet", "Deployment"]
        await server.says("NOT_SERVING")
        await eventually(lambda: client.health() is not None, "it drains")
        await server.says("SERVING")
        await eventually(lambda: client.health() is None, "it serves")
        plan = await client.plan("d1", of_a_deployment)
        assert plan.workload.kind == "Deployment"


def with_a_policy(_: Callable[[bytes], bool]) -> v1.PlanRequest:
    """A request for a DaemonSet that has a RolloutPolicy."""
    request = v1.PlanRequest()
    request.snapshot.workload.daemon_set.object = b'{"metadata":{"namespace":"ns","name":"foo","uid":"d1"}}'
    request.snapshot.workload.daemon_set.rollout_policies.add(object=b'{"metadata":{"namespace":"ns","name":"p"}}')
    return request


async def require_too_old(client: PlanClient) -> None:
    """Checks that the client asks nobody for a plan of a workload that has a policy, and says why."""
    reason = (
        'the planning service is too old: .*: its version "0.9.0" does not know RolloutPolicies, and DaemonSet ns/foo '
        "has RolloutPolicy ns/p; upgrade it"
    )
    with pytest.raises(RefusedError, match=reason) as error:
        await client.plan("d1", with_a_policy)
    assert (error.value.lacks, error.value.code) == ("RolloutPolicies", grpc.StatusCode.UNIMPLEMENTED)


# L-44: a replica that does not know policies would ignore them.
async def test_only_a_replica_that_knows_policies_is_asked_about_a_workload_that_has_one(servers: list[Server]) -> None:
    old, new = servers[:2]
    old.version, new.features = "0.9.0", ["Another", "RolloutPolicies"]
    async with PlanClient(old.url, new.url) as client:
        for _ in range(3):
            assert (await client.plan("d1", with_a_policy)).plan_id == new.address
    assert old.plans == []
    async with PlanClient(old.url) as client:
        await require_too_old(client)
        assert client.health() is None, "it answers other calls"
        assert old.plans == []
        asked = old.asked_for_kinds
        assert await client.plan_request(v1.PlanRequest()), "it plans for workloads without a policy"
        assert old.asked_for_kinds == asked


# L-44: what the newer version has said does not count for the older one that replaces it while the executor runs.
async def test_a_replica_that_comes_back_as_an_older_version_is_asked_again_what_it_knows() -> None:
    newer = Server()
    newer.features = ["RolloutPolicies"]
    await newer.start()
    async with PlanClient(newer.url, config=QUICK) as client:
        await client.plan("d1", with_a_policy)
        await newer.stop()
        await eventually(lambda: client.health() is not None, "it is gone")
        older = Server()
        older.version, older.address = "0.9.0", newer.address
        await older.start()
        try:
            while client.health() is not None:
                # It is also asked before a probe finds that it is back.
                with pytest.raises(ServiceError):
                    await client.plan("d1", with_a_policy)
                await asyncio.sleep(0.05)
            await require_too_old(client)
            assert older.plans == []
        finally:
            await older.stop()


# A call may find that the replica was replaced before a probe does.
async def test_a_failure_forgets_what_a_replica_knows() -> None:
    replica = Replica("127.0.0.1:1", 1 << 20)
    replica.capabilities = Capabilities("1", ("DaemonSet",), ("RolloutPolicies",))
    before = replica.incarnation
    replica.failed("no answer")
    assert replica.capabilities is None
    assert replica.incarnation > before, "an answer that is on its way is of the version before"
    await replica.close()
