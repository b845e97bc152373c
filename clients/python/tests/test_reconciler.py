"""Tests the reconciler with a scripted apiserver."""

import asyncio
import json
import os
import pathlib
import re
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from aiohttp import web
from kubernetes.client import Configuration

from nodewise import (
    Actuator,
    ActuatorError,
    BrokenError,
    ClientConfig,
    Config,
    EndedError,
    Failed,
    KubeClient,
    PlanClient,
    Reconciler,
    RefusedError,
    Settled,
    Unreachable,
    UnreachableError,
    execute,
    sync,
    v1,
)
from nodewise.client import target
from nodewise.kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, Resource
from nodewise.queue import RateLimits

from .fakes import FakeService, batch, create, phase, plan
from .objects import daemon_set, deployment, revision
from .polling import eventually, eventually_in_thread
from .programs import CLIENT
from .servers import Server, answers, hangs
from .test_kube import PATHS, Apiserver, Handler, answer, apiserver, lines, page, refuse

__all__ = ["apiserver"]
PODS = "POST /api/v1/namespaces/ns/pods"
STATUS = "PUT /apis/apps/v1/namespaces/ns/daemonsets/foo/status"
NOOP = plan(verdict=v1.VERDICT_NOOP)


def serve(server: Apiserver, *daemon_sets: Any) -> None:
    lists = {
        Resource.DAEMON_SETS: [json.loads(each.object) for each in daemon_sets],
        Resource.NODES: [{"metadata": {"name": name, "resourceVersion": "5"}} for name in ("n1", "n2")],
        Resource.REVISIONS: [json.loads(revision("foo-h1", labels={"controller-revision-hash": "h1"}).object or b"")],
    }
    for resource, path in PATHS.items():
        server.script[f"GET {path}"] = [page(lists.get(resource, [])), lines()]
    server.script[PODS] = [answer({"metadata": {"name": "a", "resourceVersion": "50"}})]


def portals() -> list[str]:
    """The threads of the blocking clients."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("nodewise ")]


async def test_what_is_there_is_looked_at_and_again_on_demand(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb")))), NOOP, NOOP, NOOP])
    async with Reconciler(kube, service) as reconciler:
        await eventually(lambda: len(service.reported) == 1, "the first look")
        # A watch event may have queued the workload, too.
        asked = len(service.requests)
        assert await reconciler.reconcile("ns", "foo") == Settled()
        assert len(service.requests) > asked
        assert reconciler.health() == []
    created = [path for method, path, _, _ in server.requests if method == "POST"]
    assert "/api/v1/namespaces/ns/pods" in created


# Without this the call would wait forever, as no worker is left.
async def test_nothing_is_asked_of_what_has_not_started(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server)
    reconciler = Reconciler(kube, FakeService())
    with pytest.raises(RuntimeError, match=r"has not started: call reconcile inside of async with Reconciler\(...\)"):
        await reconciler.reconcile("ns", "foo")
    client = PlanClient("http://127.0.0.1:1")
    for asked in (client.plan_request(v1.PlanRequest()), client.report(v1.ReportRequest()), client.capabilities()):
        with pytest.raises(RuntimeError, match=r"context manager, async with PlanClient\(...\) as client"):
            await asked
    assert "async with PlanClient" in (client.health() or "")
    with pytest.raises(RuntimeError, match=r"context manager: async with KubeClient\(...\) as kube"):
        await Reconciler(KubeClient(Configuration()), FakeService()).run(asyncio.Event())


async def test_nothing_is_entered_twice(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    reconciler = Reconciler(kube, FakeService([NOOP, NOOP]))
    async with reconciler:
        for again in (reconciler.__aenter__(), reconciler.run(asyncio.Event())):
            with pytest.raises(RuntimeError, match=r"used once.*make a new Reconciler"):
                await again
        assert await reconciler.reconcile("ns", "foo") == Settled(), "it works on"
    with pytest.raises(RuntimeError, match=r"used once.*make a new Reconciler"):
        await reconciler.run(asyncio.Event())
    with pytest.raises(RuntimeError, match="Kubernetes client is in use already"):
        await kube.__aenter__()
    async with PlanClient("http://127.0.0.1:1") as client:
        with pytest.raises(RuntimeError, match="plan client is in use already"):
            await client.__aenter__()
    assert "CRITICAL" not in caplog.text


async def test_a_failure_backs_off(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([plan(error="odd") for _ in range(4)] + [NOOP])
    async with Reconciler(kube, service):
        await eventually(lambda: not service.plans, "it is tried until it is well")


# A raised quota or a granted right takes effect within a minute. Upstream may wait for 1000 s.
@pytest.mark.parametrize(
    ("config", "longest"),
    [
        (Config(rest=0), 60),
        (Config(rest=0, options=v1.PlanOptions(profile=v1.PROFILE_UPSTREAM_STRICT)), 1000),
        (Config(rest=0, limits=RateLimits(max_delay=7)), 7),
    ],
)
async def test_what_is_refused_again_and_again_is_tried_again_in_a_while(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture, config: Config, longest: float
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    server.script[PODS] = [refuse(403, "Forbidden", "exceeded quota")]
    # The workload is also requeued by itself while its delays are short.
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb"))))] * 100)
    service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_BACKOFF)] * 100
    async with Reconciler(kube, service, config) as reconciler:
        for _ in range(20):
            assert isinstance(await reconciler.reconcile("ns", "foo"), Failed)
    delays = [float(told) for told in re.findall(r"trying again in ([0-9.]+) s", caplog.text)]
    assert delays[-1] == max(delays) == longest


# A missing right is distinguished from an unreachable service.
async def test_why_it_failed_can_be_told_by_programs(
    apiserver: tuple[Apiserver, KubeClient], kubeconfig: pathlib.Path
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    server.script[PODS] = [refuse(403, "Forbidden", "pods is forbidden")]
    creates = plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb"))))
    service = FakeService([NOOP, creates, UnreachableError("away", grpc.StatusCode.UNAVAILABLE)])
    service.plans.append(RefusedError("wrong", grpc.StatusCode.INVALID_ARGUMENT))
    service.reports = [v1.ReportResponse(requeue=v1.REQUEUE_BACKOFF)]
    limits = RateLimits(base_delay=3600, max_delay=3600)
    async with Reconciler(kube, service, Config(limits=limits, unreachable_delay=3600, rest=0)) as reconciler:
        await eventually(lambda: len(service.requests) == 1, "the first look")
        endings = [await reconciler.reconcile("ns", "foo") for _ in range(3)]
    assert endings == [
        Failed(
            "0 of 1 actions were done, 1 failed, 0 were not tried; the first failure: pods is forbidden",
            http_status=403,
        ),
        Unreachable("away", grpc.StatusCode.UNAVAILABLE),
        Failed("wrong", code=grpc.StatusCode.INVALID_ARGUMENT, refused=True),
    ]
    with pytest.raises(ActuatorError) as error:
        await kube.call("POST", PODS.split()[1])
    assert error.value.http_status == 403


async def test_what_waits_can_be_cancelled(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    replica = await Server().start()
    replica.behave = hangs
    async with PlanClient(replica.url) as service:
        running = asyncio.create_task(Reconciler(kube, service).run(asyncio.Event()))
        await eventually(lambda: bool(replica.plans), "a plan is asked for")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        serve(server, daemon_set())
        async with Reconciler(kube, service) as reconciler:
            asking = asyncio.create_task(reconciler.reconcile("ns", "foo"))
            await eventually(lambda: len(replica.plans) > 1, "a plan is asked for")
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
    await replica.stop()


async def test_refused_plans_are_counted(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-0")))), NOOP])
    reconciler = Reconciler(kube, service)
    assert reconciler.refused_plans == 0
    async with reconciler:
        await eventually(lambda: not service.plans, "it is tried until it is well")
        assert reconciler.refused_plans == 1


async def test_a_defect_in_one_reconcile_stops_no_other(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([KeyError("a defect"), NOOP])
    async with Reconciler(kube, service):
        await eventually(lambda: not service.plans, "it is tried again")
    assert "ended with a defect" in caplog.text


@pytest.fixture
def kubeconfig(apiserver: tuple[Apiserver, KubeClient], tmp_path: pathlib.Path) -> pathlib.Path:
    """The kubeconfig through which a program finds the apiserver."""
    path, (_, kube) = tmp_path / "config", apiserver
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": kube._configuration.host}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(config))
    return path


async def test_why_it_is_not_ready(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server)
    slow = Slow(page([]))
    server.script[f"GET {PATHS[Resource.PODS]}"] = [slow, lines()]
    service = FakeService(unwell="nobody answers")
    reconciler = Reconciler(kube, service)
    assert reconciler.health() == ["the reconciler has not started"]
    async with reconciler:
        expected = ["service: nobody answers", "pods: waiting for the first list"]
        await eventually(lambda: reconciler.health() == expected, "all but the pods are listed")
        slow.goes_on.set()
        await eventually(lambda: reconciler.health() == expected[:1], "the pods are, too")
        service.unwell = None
        assert reconciler.health() == []
    assert reconciler.health() == ["the reconciler has ended"]


async def test_without_asyncio_there_are_the_same_options(
    apiserver: tuple[Apiserver, KubeClient], kubeconfig: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    server, _ = apiserver
    serve(server, daemon_set())
    replica = await Server().start()
    replica.behave = hangs
    quick, wrapped = ClientConfig(timeout=0.2, min_attempts=1), []

    def wrap(actuator: Actuator) -> Actuator:
        wrapped.append(actuator)
        return actuator

    def use() -> None:
        client = sync.Reconciler(replica.url, client_config=quick, actuator=wrap, config=Config(unreachable_delay=0.01))
        with client as reconciler:
            with pytest.raises(RuntimeError, match="in use already"):
                client.__enter__()
            assert isinstance(reconciler.reconcile("ns", "foo"), Unreachable), "by its own timeout"
            replica.behave = answers
            eventually_in_thread(lambda: reconciler.reconcile("ns", "foo") == Settled(), "it settles")
            eventually_in_thread(lambda: reconciler.health() == [], "it is ready")
            assert portals() == ["nodewise reconciler"]
        assert portals() == []
        with pytest.raises(RuntimeError, match="as a context manager"):
            reconciler.health()

    await asyncio.wait_for(asyncio.to_thread(use), 90)
    assert len(wrapped) == 1
    await replica.stop()


async def test_what_fails_to_start_leaves_no_thread_behind(
    kubeconfig: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with pytest.raises(target.TargetError):
        sync.Reconciler("nothing").__enter__()
    with pytest.raises(target.TargetError):
        sync.PlanClient("nothing").__enter__()
    assert portals() == []


async def test_whoever_waits_in_another_thread_is_told_of_the_end() -> None:
    replica = await Server().start()
    replica.behave = hangs

    def use() -> None:
        with sync.PlanClient(replica.url, config=ClientConfig(timeout=1.0, min_attempts=1000)) as client:
            waits = pool.submit(client.plan, "u", lambda _: v1.PlanRequest())
            eventually_in_thread(lambda: bool(replica.plans), "a plan is asked for")
        with pytest.raises((UnreachableError, CancelledError)):
            waits.result(20)

    with ThreadPoolExecutor() as pool:
        await asyncio.wait_for(asyncio.to_thread(use), 60)
    await replica.stop()


# Without this the call would wait forever, as no loop is left.
def test_nobody_may_call_once_it_is_being_left() -> None:
    leaves, goes_on = threading.Event(), threading.Event()

    @asynccontextmanager
    async def slow_to_leave() -> AsyncIterator[None]:
        yield
        leaves.set()
        await asyncio.to_thread(goes_on.wait, 20)

    portal = sync._Portal("test", slow_to_leave)
    portal.open()
    with ThreadPoolExecutor() as pool:
        closing = pool.submit(portal.close)
        assert leaves.wait(20)
        called = pool.submit(portal.call, lambda _: asyncio.Event().wait())
        try:
            with pytest.raises(RuntimeError, match="as a context manager"):
                called.result(10)
        finally:
            goes_on.set()
        closing.result(20)


@pytest.mark.parametrize("fails", [False, True])
def test_what_goes_on_at_the_end_is_ended_and_what_it_begins_then(fails: bool) -> None:
    ended: list[str] = []
    tasks = []

    async def go_on(then: tuple[str, ...], name: str = "first") -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
            if then:
                tasks.append(asyncio.create_task(go_on(then[1:], then[0])))

    @asynccontextmanager
    async def busy() -> AsyncIterator[None]:
        tasks.append(asyncio.create_task(go_on(("second", "third"))))
        await asyncio.sleep(0)
        if fails:
            raise KeyError("a defect")
        yield

    portal = sync._Portal("test", busy)
    if fails:
        with pytest.raises(KeyError):
            portal.open()
    else:
        portal.open()
        portal.close()
    assert portals() == []
    assert ended == ["first", "second", "third"]
    assert all(task.done() for task in tasks)


class Slow:
    """A response of the apiserver that waits until the test releases it."""

    def __init__(self, then: Handler) -> None:
        self.asked, self.goes_on = asyncio.Event(), asyncio.Event()
        self._then = then

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.asked.set()
        await self.goes_on.wait()
        return await self._then(request)


async def test_a_stop_lets_writes_end_and_tells_of_them(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    slow = Slow(server.script[PODS][0])
    server.script[PODS] = [slow]
    stop = asyncio.Event()
    batches = [batch(create("foo-bbbbbbbbbb")), batch(create("foo-cccccccccc", "n2"))]
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, *batches)), NOOP])
    running = asyncio.create_task(Reconciler(kube, service).run(stop))
    await asyncio.wait_for(slow.asked.wait(), 20)
    stop.set()
    done, _ = await asyncio.wait({running}, timeout=0.1)
    assert not done, "it waits for what is in hand"
    slow.goes_on.set()
    await running
    assert [len(report.outcomes) for report in service.reported] == [2]
    assert len(service.requests) == 1, "nothing new is begun"


# The stop must be quick, also if the service hangs.
async def test_a_stop_waits_for_no_plan(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service, asked = FakeService(), asyncio.Event()

    async def hangs(*_: Any) -> v1.Plan:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    service.plan = hangs  # type: ignore[method-assign, assignment]
    async with Reconciler(kube, service, Config(drain_timeout=1000)) as reconciler:
        asking = asyncio.create_task(reconciler.reconcile("ns", "foo"))
        await asyncio.wait_for(asked.wait(), 20)
    with pytest.raises(EndedError):
        await asking


# Writes are reported if the service answers. A service that does not must not use up the whole drain time.
async def test_a_stop_does_not_wait_for_a_report_that_hangs(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(execute.executor, "REPORT_GRACE", 0.1)
    server, kube = apiserver
    serve(server, daemon_set())
    service, telling = (
        FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb"))))]),
        asyncio.Event(),
    )

    async def hangs(_: v1.ReportRequest) -> v1.ReportResponse:
        telling.set()
        await asyncio.Event().wait()
        raise AssertionError

    service.report = hangs  # type: ignore[method-assign, assignment]
    async with Reconciler(kube, service, Config(drain_timeout=1000)):
        await asyncio.wait_for(telling.wait(), 20)
    assert "rides on the next plan" in caplog.text
    assert "did not end in time" not in caplog.text


async def test_sigterm_ends_the_example_though_the_service_hangs(
    apiserver: tuple[Apiserver, KubeClient], kubeconfig: pathlib.Path
) -> None:
    server, _ = apiserver
    serve(server, daemon_set())
    replica = await Server().start()
    replica.behave = hangs
    env = {**os.environ, "KUBECONFIG": str(kubeconfig), "NODEWISE_SERVER": replica.url}
    example = str(CLIENT / "examples" / "controller.py")
    controller = await asyncio.create_subprocess_exec(sys.executable, example, env=env, stderr=asyncio.subprocess.PIPE)
    try:
        await eventually(lambda: bool(replica.plans), "a plan is asked for")
        began = time.monotonic()
        controller.terminate()
        _, said = await asyncio.wait_for(controller.communicate(), 30)
        assert controller.returncode == 0, said
        assert time.monotonic() - began < Config().drain_timeout, said
    finally:
        if controller.returncode is None:
            controller.kill()
            await controller.communicate()
        await replica.stop()


async def test_a_stop_does_not_wait_for_ever(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    slow = Slow(server.script[PODS][0])
    server.script[PODS] = [slow]
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb"))))])
    async with Reconciler(kube, service, Config(drain_timeout=0.05)) as reconciler:
        await asyncio.wait_for(slow.asked.wait(), 20)
        asked = asyncio.create_task(reconciler.reconcile("ns", "foo"))
        await asyncio.sleep(0)
    with pytest.raises(EndedError):
        await asked
    with pytest.raises(EndedError):
        await reconciler.reconcile("ns", "foo")
    assert "did not end in time" in caplog.text
    slow.goes_on.set()


async def test_it_ends_before_anything_is_listed(apiserver: tuple[Apiserver, KubeClient]) -> None:
    stop = asyncio.Event()
    stop.set()
    await Reconciler(apiserver[1], FakeService()).run(stop)


# The reconciler must not plan from a cache that no watch updates.
async def test_a_watch_that_ends_ends_everything(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([NOOP])
    reconciler = Reconciler(kube, service)

    def defect(*_: Any) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(reconciler._state, "apply_event", defect)
    with pytest.raises(BrokenError, match="a defect"):
        await reconciler.run(asyncio.Event())
    with pytest.raises(BrokenError):
        await reconciler.reconcile("ns", "foo")
    assert any("a defect" in reason for reason in reconciler.health())
    assert not service.requests


# The service is older than the controller.
async def test_a_kind_that_the_service_does_not_plan_does_not_stop_the_others(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    lists = {Resource.DEPLOYMENTS: [json.loads(deployment().object)], Resource.REPLICA_SETS: []}
    for resource, objects in lists.items():
        server.script[f"GET /apis/apps/v1/{resource.value}"] = [page(objects), lines()]
    replica = await Server().start()
    async with PlanClient(replica.url, config=ClientConfig(min_attempts=1)) as service:
        config = Config(unreachable_delay=3600, rest=0)
        async with Reconciler(kube, service, config, kinds=[DAEMON_SET, DEPLOYMENT]) as reconciler:
            for _ in range(3):
                ending = await reconciler.reconcile("ns", "web", DEPLOYMENT)
                assert isinstance(ending, Unreachable)
                assert "not for Deployment; upgrade it" in ending.reason
                assert await reconciler.reconcile("ns", "foo") == Settled()
            assert reconciler.health() == []
            owned = r"pass reconcile a kind that it owns \(DAEMON_SET, DEPLOYMENT\), or make it"
            with pytest.raises(ValueError, match=f"does not own ReplicaSets: {owned}"):
                await reconciler.reconcile("ns", "web-1", REPLICA_SET)
    await replica.stop()
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == 1, "once a minute"
    assert told[0].startswith("no Deployment is reconciled: ")
    assert {request.snapshot.workload.WhichOneof("kind") for request in replica.plans} == {"daemon_set"}
    assert replica.asked_for_kinds > 0


async def test_at_least_one_kind_is_owned(apiserver: tuple[Apiserver, KubeClient]) -> None:
    with pytest.raises(ValueError, match="at least one is needed"):
        Reconciler(apiserver[1], FakeService(), kinds=[])


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ("deployment", "kinds is a collection of kinds"),
        (DEPLOYMENT, "kinds is a collection of kinds"),
        (("Deployment",), "'Deployment' is no kind of workload"),
        ((), "no kind of workload is given"),
    ],
)
def test_kinds_are_a_collection_of_kinds(kinds: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Reconciler(KubeClient(Configuration()), FakeService(), kinds=kinds)
