"""Tests which DaemonSets are owned: the selector syntax, and that others are left alone."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import Config, KubeClient, Reconciler, Settled, sync, v1
from nodewise.buckets import Digest
from nodewise.kinds import Resource
from nodewise.objects import Workload
from nodewise.receiver import Receiver
from nodewise.selection import Selection
from nodewise.store import Applied

from .fakes import FakeService, batch, create, phase, plan
from .objects import KEY, daemon_set
from .polling import eventually
from .test_execute import Rig
from .test_kube import CLOSING, PATHS, Apiserver, apiserver, page
from .test_reconciler import PODS, serve

__all__ = ["apiserver"]
NOOP = plan(verdict=v1.VERDICT_NOOP)
OURS = {"tier": "a"}


# As `kubectl get --selector` selects.
@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {}, True),
        ("", {}, True),
        (" ", {}, True),
        ("tier=a", {"tier": "a"}, True),
        (" tier == a ", {"tier": "a"}, True),
        ("tier=a", {"tier": "b"}, False),
        ("tier=a", {}, False),
        ("tier!=a", {"tier": "b"}, True),
        ("tier!=a", {}, True),
        ("tier!=a", {"tier": "a"}, False),
        ("tier=", {"tier": ""}, True),
        ("tier=,app", {"tier": "", "app": "x"}, True),
        ("tier in (a,b)", {"tier": "b"}, True),
        ("tier in(a, b)", {"tier": "c"}, False),
        ("tier in (a,)", {"tier": ""}, True),
        ("tier in (,a)", {"tier": "a"}, True),
        ("tier in ()", {"tier": ""}, True),
        ("tier notin (a,b)", {"tier": "c"}, True),
        ("tier notin (a,b)", {}, True),
        ("tier notin (a,b)", {"tier": "a"}, False),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("tier", {"tier": ""}, True),
        ("tier", {}, False),
        ("!tier", {}, True),
        ("! tier", {"tier": "a"}, False),
        ("example.com/tier=a", {"example.com/tier": "a"}, True),
        ("tier=a,app=x", {"tier": "a", "app": "x"}, True),
        ("tier=a,app=x", {"tier": "a", "app": "y"}, False),
        ("weight>3", {"weight": "10"}, True),
        ("weight>3", {"weight": "3"}, False),
        ("weight < 3", {"weight": "2"}, True),
        ("weight<3", {"weight": "x"}, False),
        ("weight<3", {}, False),
    ],
)
def test_selectors_mean_what_they_mean_to_kubectl(selector: str | None, labels: dict[str, str], expected: bool) -> None:
    assert Config(selector=selector).selection().includes(daemon_set(labels=labels)) is expected


@pytest.mark.parametrize(
    ("selector", "wrong"),
    [
        ("tier=a,", "it ends with a comma"),
        (",tier=a", "',' stands where the key of a label is expected"),
        ("tier=a app=x", "'app' stands where ',' is expected"),
        ("tier a", "'a' stands where an operator is expected"),
        ("tier=(a)", "'(' stands where a value is expected"),
        ("tier in a", "'a' stands where '(' is expected"),
        ("tier in (a", "'the end' stands where ')' is expected"),
        ("tier in", "'the end' stands where '(' is expected"),
        ("!", "it ends where the key of a label is expected"),
        ("!tier=a", "'=' stands where ',' is expected"),
        ("weight>", "'' is none"),
        ("weight>x", "'x' is none"),
        ("-tier=a", "'-tier' cannot be the key"),
        ("Example/tier", "'Example/tier' cannot be the key"),
        ("/tier", "'/tier' cannot be the key"),
        ("tier=a/b", "'a/b' cannot be the value"),
        (f"tier={64 * 'a'}", "cannot be the value"),
        ('{"matchLabels": {}}', "cannot be the key"),
    ],
)
def test_a_selector_that_cannot_be_read_is_refused_where_it_is_written(selector: str, wrong: str) -> None:
    with pytest.raises(ValueError, match="kubectl --selector") as refused:
        Config(selector=selector)
    assert str(refused.value).startswith(f"the label selector {selector!r} cannot be read: ")
    assert wrong in str(refused.value)


def test_namespaces_are_a_collection_of_names() -> None:
    def includes(namespace: str, **config: Any) -> bool:
        return Config(**config).selection().includes(daemon_set(namespace=namespace))

    assert includes("a")
    assert includes("a", namespaces=["a", "b"])
    assert not includes("c", namespaces=iter(["a", "b"]))
    assert not includes("a", namespaces=())
    with pytest.raises(ValueError, match=r"write namespaces=\['monitoring'\]"):
        Config(namespaces="monitoring")


class Shown:
    """A watch of DaemonSets whose events the test makes."""

    def __init__(self, server: Apiserver) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        server.script[f"GET {PATHS[Resource.DAEMON_SETS]}"].append(self._handle)

    def now(self, obj: Workload) -> None:
        """Changes the DaemonSet."""
        self._lines.put_nowait(json.dumps({"type": "MODIFIED", "object": json.loads(obj.object)}).encode() + b"\n")

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        closing = asyncio.create_task(request.app[CLOSING].wait())
        while not closing.done():
            line = asyncio.create_task(self._lines.get())
            await asyncio.wait({closing, line}, return_when=asyncio.FIRST_COMPLETED)
            if line.done():
                await stream.write(line.result())
            line.cancel()
        return stream


async def test_what_is_not_selected_is_left_alone_and_taken_up_when_it_is(
    apiserver: tuple[Apiserver, KubeClient],
) -> None:
    server, kube = apiserver
    serve(server, daemon_set())
    server.script[f"GET {PATHS[Resource.DAEMON_SETS]}"].pop()
    shown = Shown(server)
    service = FakeService([plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb")))), NOOP, NOOP])
    async with Reconciler(kube, service, Config(selector="tier=a", rest=0)) as reconciler:
        assert await reconciler.reconcile("ns", "foo") == Settled(), "as one that is not there"
        assert not service.requests
        shown.now(daemon_set(version="20", labels=OURS))
        await eventually(lambda: bool(service.reported), "it is taken up")
        asked = len(service.requests)
        shown.now(daemon_set(version="30"))
        await eventually(lambda: reconciler._state.store.reached(Resource.DAEMON_SETS) == "30", "it is shown")
        assert await reconciler.reconcile("ns", "foo") == Settled()
        assert len(service.requests) == asked
        assert reconciler.health() == []
    assert [path for method, path, _, _ in server.requests if f"{method} {path}" == PODS] == [PODS.split()[1]]


async def test_only_daemon_sets_of_these_namespaces_are_owned(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    serve(server, daemon_set(), daemon_set(uid="u2", namespace="other"))
    service = FakeService([NOOP])
    async with Reconciler(kube, service, Config(namespaces=["ns", "third"])) as reconciler:
        await eventually(lambda: bool(service.requests), "the one is planned")
        assert await reconciler.reconcile("other", "foo") == Settled()
    (request,) = service.requests
    assert json.loads(request.snapshot.workload.daemon_set.object)["metadata"]["namespace"] == "ns"


# A Role of that namespace is then enough.
async def test_a_single_namespace_is_all_that_is_watched(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, kube = apiserver
    for path in ("/apis/apps/v1/namespaces/ns/daemonsets", "/api/v1/namespaces/ns/pods"):
        server.script[f"GET {path}"] = [page([])]
    async with Reconciler(kube, FakeService(), Config(namespaces={"ns"})):
        await eventually(lambda: len({path for _, path, _, _ in server.requests}) == 6, "everything is listed")
    paths = {path for _, path, _, _ in server.requests}
    assert paths >= {"/apis/apps/v1/namespaces/ns/daemonsets", "/api/v1/namespaces/ns/pods", "/api/v1/nodes"}
    assert PATHS[Resource.PODS] not in paths


def selecting(*plans: v1.Plan) -> Rig:
    """An executor that owns DaemonSets with the label, and one of them."""
    rig = Rig(*plans, selection=Selection.of("tier=a", None))
    rig.state.apply_event(Applied(daemon_set(version="2", labels=OURS)))
    return rig


def unselect(rig: Rig) -> None:
    """Removes the label."""
    rig.state.apply_event(Applied(daemon_set(version="3")))


async def test_what_is_unselected_while_it_is_planned_is_not_written() -> None:
    rig = selecting(plan(phase(v1.PHASE_KIND_CREATES, batch(create("foo-bbbbbbbbbb"))), state=v1.ReconcileState()))
    rig.service.on_plan = lambda: unselect(rig)
    assert await rig.reconcile() == Settled()
    assert rig.actuator.calls == []
    assert rig.service.reported == []


# The request is built anew for each replica, from the current DaemonSet.
async def test_no_request_is_built_from_what_is_not_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, built = selecting(), []

    async def asks_twice(_: str, build: Callable[[Callable[[Digest], bool]], v1.PlanRequest]) -> v1.Plan:
        for _attempt in range(2):
            built.append(build(Receiver()))
            unselect(rig)
        return NOOP

    monkeypatch.setattr(rig.service, "plan", asks_twice)
    assert await rig.reconcile() == Settled()
    assert len(built) == 1


async def test_the_state_of_what_is_unselected_is_forgotten() -> None:
    rig = selecting(NOOP)
    held = v1.ReconcileState(expectations=v1.Expectations(set_at=Timestamp(seconds=1), delete_uids=["gone"]))
    pod_view = rig.state.store.pod_view(KEY, "u1")
    rig.state.reconcile_states.replace(KEY, "u1", held, v1.ReconcileState(), pod_view)
    rig.state.gate.record(KEY, "u1", Resource.PODS, "99")
    unselect(rig)
    assert await rig.reconcile() == Settled()
    assert not rig.executor.waits_for_watches(KEY)
    rig.state.apply_event(Applied(daemon_set(version="4", labels=OURS)))
    assert await rig.reconcile() == Settled()
    (request,) = rig.service.requests
    assert not request.snapshot.state.HasField("expectations")


def test_a_program_without_asyncio_is_told_of_a_wrong_selector() -> None:
    with pytest.raises(ValueError, match="kubectl --selector"):
        sync.Reconciler("http://127.0.0.1:1", config=Config(selector="tier in a"))
