"""The loop around reconciles, with an apiserver that says what a test tells it to."""

import asyncio
import json
from typing import Any

import pytest

from nodewise import Config, KubeClient, Reconciler, Settled, v1
from nodewise.kinds import Resource
from nodewise.reconciler import BrokenError, EndedError

from .fakes import FakeService, batch, create, phase, plan
from .objects import daemon_set
from .test_kube import PATHS, Apiserver, answer, apiserver, eventually, lines, page

__all__ = ["apiserver"]
PODS = "POST /api/v1/namespaces/ns/pods"
STATUS = "PUT /apis/apps/v1/namespaces/ns/daemonsets/foo/status"
NOOP = plan(verdict=v1.VERDICT_NOOP)


def serve(server: Apiserver, *daemon_sets: Any) -> None:
    for resource, path in PATHS.items():
        items = [json.loads(each.object) for each in daemon_sets] if resource is Resource.DAEMON_SETS else []
        server.script[f"GET {path}"] = [page(items), lines()]
    server.script[PODS] = [answer({"metadata": {"name": "a", "resourceVersion": "50"}})]


async def test_what_is_there_is_looked_at_and_again_on_demand(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("a")))), NOOP, NOOP, NOOP])
    async with Reconciler(kube, service) as reconciler:
        await eventually(lambda: len(service.reported) == 1, "the first look")
        assert await reconciler.reconcile("ns", "foo") == Settled()
        assert len(service.requests) == 2
        assert reconciler.health() == []
    created = [path for method, path, _, _ in server.requests if method == "POST"]
    assert "/api/v1/namespaces/ns/pods" in created


async def test_a_failure_backs_off(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([plan(error="odd") for _ in range(4)] + [NOOP])
    async with Reconciler(kube, service):
        await eventually(lambda: not service.plans, "it is tried until it is well")


async def test_a_defect_in_one_reconcile_stops_no_other(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([KeyError("a defect"), NOOP])
    async with Reconciler(kube, service):
        await eventually(lambda: not service.plans, "it is tried again")
    assert "ended with a defect" in caplog.text


async def test_a_stop_lets_workers_finish(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    stop, began, goes_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("a"))))])
    real = service.plan

    async def slow(uid: str, build: Any) -> v1.Plan:
        began.set()
        await goes_on.wait()
        return await real(uid, build)

    service.plan = slow  # type: ignore[method-assign]
    running = asyncio.create_task(Reconciler(kube, service).run(stop))
    await began.wait()
    stop.set()
    done, _ = await asyncio.wait({running}, timeout=0.1)
    assert not done, "it waits for what is in hand"
    goes_on.set()
    await running
    assert len(service.reported) == 1


async def test_a_stop_does_not_wait_for_ever(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service, began = FakeService(), asyncio.Event()

    async def hangs(*_: Any) -> v1.Plan:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    service.plan = hangs  # type: ignore[method-assign, assignment]
    async with Reconciler(kube, service, Config(drain_timeout=0.05)) as reconciler:
        await began.wait()
        asked = asyncio.create_task(reconciler.reconcile("ns", "foo"))
        await asyncio.sleep(0)
    with pytest.raises(EndedError):
        await asked
    with pytest.raises(EndedError):
        await reconciler.reconcile("ns", "foo")
    assert "did not end in time" in caplog.text


async def test_it_ends_before_anything_is_listed(apiserver: tuple[Apiserver, KubeClient]) -> None:
    stop = asyncio.Event()
    stop.set()
    await Reconciler(apiserver[1], FakeService()).run(stop)


# A cache that is followed no more must not be planned from.
async def test_a_watch_that_ends_ends_everything(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    service = FakeService([NOOP])
    reconciler = Reconciler(kube, service)

    def defect(_: Any) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(reconciler._state, "take_in", defect)
    with pytest.raises(BrokenError, match="a defect"):
        await reconciler.run(asyncio.Event())
    with pytest.raises(BrokenError):
        await reconciler.reconcile("ns", "foo")
    assert any("a defect" in reason for reason in reconciler.health())
    assert not service.requests
