"""Tests traces: the spans of a reconcile, their links and headers, and that there are none without an SDK."""

import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from aiohttp import web
from kubernetes.client import Configuration
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import StatusCode

from nodewise import (
    Config,
    KubeClient,
    PlanClient,
    Reconciler,
    ServiceError,
    Unreachable,
    UnreachableError,
    Waiting,
    tracing,
    v1,
)
from nodewise.actuator import ActuatorError
from nodewise.kinds import ObjectKey, Resource
from nodewise.kube import EventRecorder, KubeActuator

from .fakes import MANIFEST, FakeService, action, batch, create, delete, phase, plan, pod_name
from .objects import owners, revision
from .polling import eventually
from .programs import CLIENT
from .servers import Behave, Server, fails
from .test_client import QUICK, home, request
from .test_kube import PATHS, Apiserver, after, answer, apiserver, lines, page, refuse

__all__ = ["apiserver"]
CREATES, DELETES, STATUS = v1.PHASE_KIND_CREATES, v1.PHASE_KIND_DELETES, v1.PHASE_KIND_STATUS
PODS = "/api/v1/namespaces/ns/pods"
FOO = "/apis/apps/v1/namespaces/ns/daemonsets/foo"
PLAN, REPORT = "nodewise.v1.ReconcileService/Plan", "nodewise.v1.ReconcileService/Report"
NOOP = plan(verdict=v1.VERDICT_NOOP)


class Switch(Sampler):
    """A sampler that a test switches on and off."""

    on = True

    def should_sample(self, *of: Any, **named: Any) -> SamplingResult:
        return (ALWAYS_ON if self.on else ALWAYS_OFF).should_sample(*of, **named)

    def get_description(self) -> str:
        return "switch"


class Traces:
    """The recorded spans."""

    def __init__(self) -> None:
        self.exporter, self.sampler = InMemorySpanExporter(), Switch()

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return sorted((span for span in self.spans if span.name == name), key=lambda span: span.start_time or 0)

    async def reconciles(self, count: int) -> list[ReadableSpan]:
        await eventually(lambda: len(self.named("reconcile")) >= count, f"{count} reconciles")
        return self.named("reconcile")

    def tree(self, root: ReadableSpan, depth: int = 0) -> list[str]:
        """The name and kind of a span, followed by those of its descendants, indented, in order of their start."""
        below = [span for span in self.spans if span.parent is not None and span.parent.span_id == span_id(root)]
        assert all(trace_id(span) == trace_id(root) for span in below)
        below.sort(key=lambda span: (span.start_time or 0, span.name))
        lines = [f"{'  ' * depth}{root.name} {root.kind.name}"]
        return lines + [line for span in below for line in self.tree(span, depth + 1)]


def span_id(span: ReadableSpan) -> int:
    return int(span.context.span_id)


def trace_id(span: ReadableSpan) -> int:
    return int(span.context.trace_id)


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def traceparent(span: ReadableSpan, *, sampled: bool = True) -> str:
    return f"00-{trace_id(span):032x}-{span_id(span):016x}-{int(sampled):02x}"


@pytest.fixture(scope="session")
def sdk() -> Traces:
    """The SDK of this process, which can be set up only once."""
    traces = Traces()
    provider = TracerProvider(sampler=ParentBased(traces.sampler))
    provider.add_span_processor(SimpleSpanProcessor(traces.exporter))
    trace.set_tracer_provider(provider)
    return traces


@pytest.fixture
def traces(sdk: Traces) -> Iterator[Traces]:
    sdk.exporter.clear()
    yield sdk
    sdk.sampler.on = True


def workload(generation: int = 1, version: str = "1", **annotations: str) -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": "foo", "uid": "u1", "resourceVersion": version, "generation": generation}
    named = {f"nodewise.dev/{name}": value for name, value in annotations.items()}
    return {"metadata": {**metadata, "annotations": named}, "spec": {"selector": {"matchLabels": {"app": "foo"}}}}


def pod(name: str, **annotations: str) -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": name, "uid": f"{name}-uid", "resourceVersion": "11"}
    named = {f"nodewise.dev/{name}": value for name, value in annotations.items()}
    return {"metadata": {**metadata, "annotations": named, "ownerReferences": owners("u1")}, "spec": {"nodeName": "n"}}


def added(*objects: Any) -> list[Any]:
    return [{"type": "ADDED", "object": obj} for obj in objects]


def serve(server: Apiserver, **lists: list[Any]) -> None:
    """Serves a DaemonSet, the nodes n0 to n33, and these objects."""
    nodes = [{"metadata": {"name": f"n{number}", "resourceVersion": "5"}} for number in range(34)]
    own = json.loads(revision("foo-h1", labels={"controller-revision-hash": "h1"}).object or b"")
    lists = {"daemonsets": [workload()], "nodes": nodes, "controllerrevisions": [own], **lists}
    for resource, path in PATHS.items():
        server.script[f"GET {path}"] = [page(lists.get(resource.value, [])), lines()]
    server.script[f"POST {PODS}"] = [created]
    server.script[f"PUT {FOO}/status"] = [answer({"metadata": {"name": "foo", "resourceVersion": "50"}})]


async def created(request: web.Request) -> web.Response:
    name = (await request.json())["metadata"].get("name", "foo-generated")
    return web.json_response({"metadata": {"name": name, "resourceVersion": "50"}}, status=201)


def plans(*of: v1.Plan) -> Behave:
    """Returns one plan after the other, and then plans without actions."""
    left = list(of)

    async def behave(_: Server, asked: Any, __: Any) -> Any:
        if isinstance(asked, v1.PlanRequest):
            return v1.PlanResponse(plan=left.pop(0) if left else NOOP)
        failed = any(outcome.result == v1.RESULT_FAILED for outcome in asked.outcomes)
        return v1.ReportResponse(requeue=v1.REQUEUE_BACKOFF if failed else v1.REQUEUE_NONE, message="it failed")

    return behave


@asynccontextmanager
async def reconciling(kube: KubeClient, *of: v1.Plan, config: Config | None = None) -> AsyncIterator[Server]:
    """A running reconciler, with these plans."""
    replica = await Server().start()
    replica.behave = plans(*of)
    try:
        async with PlanClient(replica.url, config=QUICK) as service, Reconciler(kube, service, config):
            yield replica
    finally:
        await replica.stop()


def calls(server: Apiserver, path: str) -> list[str]:
    """The trace contexts of the calls to a path."""
    paired = zip(server.requests, server.headers, strict=True)
    return [headers.get("traceparent", "") for (_, asked, *_), headers in paired if asked == path]


def creates(count: int) -> v1.Plan:
    return plan(phase(CREATES, batch(*(create(pod_name(number), f"n{number}") for number in range(count)))))


async def test_the_shape_of_a_reconcile(apiserver: tuple[Apiserver, KubeClient], traces: Traces) -> None:
    server, kube = apiserver
    serve(server, pods=[pod("gone")])
    server.script[f"DELETE {PODS}/gone"] = [answer({})]
    applied = plan(
        phase(CREATES, batch(create("foo-bbbbbbbbbb"), create("", "n2")), batch(create("foo-cccccccccc", "n3"))),
        phase(DELETES, batch(delete("gone"))),
        phase(STATUS, batch(action(update_status=v1.UpdateStatus(status=v1.DaemonSetStatus(number_ready=1))))),
    )
    with tracing.span("the program"):
        async with reconciling(kube, applied) as replica:
            (reconcile,) = await traces.reconciles(1)
    post = "POST /api/v1/namespaces/{namespace}/pods CLIENT"
    assert traces.tree(reconcile) == [
        "reconcile INTERNAL",
        "  snapshot INTERNAL",
        # Once for each replica: whether it reads shared labels.
        "  nodewise.v1.ReconcileService/GetCapabilities CLIENT",
        f"  {PLAN} CLIENT",
        "  apply INTERNAL",
        "    batch INTERNAL",
        f"      {post}",
        f"      {post}",
        "    batch INTERNAL",
        f"      {post}",
        "    batch INTERNAL",
        "      DELETE /api/v1/namespaces/{namespace}/pods/{name} CLIENT",
        "    batch INTERNAL",
        "      PUT /apis/apps/v1/namespaces/{namespace}/daemonsets/{name}/status CLIENT",
        f"  {REPORT} CLIENT",
    ]
    assert reconcile.parent is None, "whoever began to work is over long before"
    assert len(traces.spans) == 16, "no other call has a span"
    attributes = told(reconcile)
    assert 0 <= attributes.pop("nodewise.queue.duration") < 60
    assert attributes == {
        "k8s.namespace.name": "ns",
        "k8s.daemonset.name": "foo",
        "k8s.daemonset.uid": "u1",
        "nodewise.reconcile.outcome": "settled",
    }
    assert {event.name for event in reconcile.events} == {"trigger"}
    triggers = [dict(event.attributes or {}) for event in reconcile.events]
    assert {"nodewise.trigger.resource": "daemonsets", "nodewise.trigger.name": "ns/foo"} in triggers
    assert not reconcile.links
    host, port = replica.address.split(":")
    asked: dict[str, Any] = {"rpc.system.name": "grpc", "rpc.response.status_code": "OK"}
    asked |= {"server.address": host, "server.port": int(port)}
    (planned,), (reported,) = traces.named(PLAN), traces.named(REPORT)
    assert told(planned) == {
        **asked,
        "rpc.method": PLAN,
        "nodewise.request.bytes": replica.plans[0].ByteSize(),
        "nodewise.plan.actions": 5,
        "nodewise.plan.verdict": "APPLY",
    }
    assert told(reported) == {**asked, "rpc.method": REPORT}
    assert replica.metadata[0]["traceparent"].startswith(f"00-{trace_id(planned):032x}-{span_id(planned):016x}-")
    (apply,) = traces.named("apply")
    assert told(apply) == {
        "nodewise.plan.id": "plan",
        "nodewise.apply.actions": 5,
        "nodewise.apply.failed": 0,
        "nodewise.apply.batches": 4,
    }
    assert [told(one) for one in traces.named("batch")] == [
        attempted("CREATES", 2, create_pod=2),
        attempted("CREATES", 1, create_pod=1),
        attempted("DELETES", 1, delete_pod=1),
        attempted("STATUS", 1, update_status=1),
    ]
    assert all(span.status.status_code is StatusCode.UNSET for span in traces.spans)


def attempted(kind: str, actions: int, failed: int = 0, **kinds: int) -> dict[str, Any]:
    return {
        "nodewise.phase": kind,
        "nodewise.batch.actions": actions,
        "nodewise.batch.succeeded": actions - failed,
        "nodewise.batch.failed": failed,
        **{f"nodewise.batch.{name}": count for name, count in kinds.items()},
    }


async def test_what_is_told_of_calls_to_the_apiserver(apiserver: tuple[Apiserver, KubeClient], traces: Traces) -> None:
    server, kube = apiserver
    serve(server)
    server.script[f"PUT {FOO}/status"] = [refuse(409, "Conflict", "changed meanwhile")]
    server.script[f"GET {FOO}"] = [answer(workload())]
    update = action(update_status=v1.UpdateStatus(status=v1.DaemonSetStatus(number_ready=1)))
    both = plan(phase(CREATES, batch(create(""))), phase(STATUS, batch(update)))
    async with reconciling(kube, both):
        await traces.reconciles(1)
    base = kube.url("")
    host, port = base.removeprefix("http://").split(":")
    at = {"server.address": host, "server.port": int(port), "k8s.namespace.name": "ns"}
    (post,) = traces.named("POST /api/v1/namespaces/{namespace}/pods")
    assert told(post) == {
        **at,
        "http.request.method": "POST",
        "url.template": "/api/v1/namespaces/{namespace}/pods",
        "url.full": f"{base}{PODS}?fieldManager=tests",
        "http.response.status_code": 201,
        "k8s.pod.name": "foo-generated",
    }
    template = "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"
    refused, again = traces.named(f"PUT {template}/status")
    expected = {
        **at,
        "http.request.method": "PUT",
        "url.template": f"{template}/status",
        "url.full": f"{base}{FOO}/status?fieldManager=tests",
        "http.response.status_code": 409,
        "error.type": "409",
    }
    assert told(refused) == told(again) == expected
    assert (refused.status.status_code, refused.status.description) == (StatusCode.ERROR, "changed meanwhile")
    (read,) = traces.named(f"GET {template}")
    assert told(read) == {
        **at,
        "http.request.method": "GET",
        "url.template": template,
        "url.full": f"{base}{FOO}",
        "http.response.status_code": 200,
    }
    assert told(traces.named("batch")[1]) == attempted("STATUS", 1, failed=1, update_status=1)
    assert told(traces.named("apply")[0])["nodewise.apply.failed"] == 1
    reconcile = traces.named("reconcile")[0]
    assert told(reconcile)["nodewise.reconcile.outcome"] == "failed"
    assert reconcile.status.status_code is StatusCode.ERROR
    assert "1 failed, 0 were not tried; the first failure: changed meanwhile" in (reconcile.status.description or "")
    assert calls(server, PODS) == [traceparent(post)]
    assert calls(server, f"{FOO}/status")[:2] == [traceparent(refused), traceparent(again)]


async def test_calls_without_an_answer(apiserver: tuple[Apiserver, KubeClient], traces: Traces) -> None:
    server, kube = apiserver
    began, never = asyncio.Event(), asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        began.set()
        await never.wait()
        return web.Response()

    server.script[f"GET {PODS}/slow"] = [hang]
    slow = ObjectKey(Resource.PODS, "ns", "slow")
    nobody = KubeClient(Configuration(host="http://127.0.0.1:1"))
    with tracing.span("a program"):
        with pytest.raises(ActuatorError, match="no answer"):
            await KubeActuator(kube, EventRecorder(kube), call_timeout=0.05).read(slow)
        async with nobody:
            with pytest.raises(ActuatorError):
                await KubeActuator(nobody, EventRecorder(nobody)).read(slow)
        began.clear()
        cancelled = asyncio.create_task(KubeActuator(kube, EventRecorder(kube)).read(slow))
        await began.wait()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    never.set()
    spans = traces.named("GET /api/v1/namespaces/{namespace}/pods/{name}")
    assert [told(span)["error.type"] for span in spans] == ["timeout", "connection", "cancelled"]
    assert all(span.status.status_code is StatusCode.ERROR for span in spans)
    assert not any("http.response.status_code" in told(span) for span in spans)
    assert {told(span)["k8s.pod.name"] for span in spans} == {"slow"}


async def test_a_call_of_the_service_that_fails(traces: Traces) -> None:
    replicas = [await Server().start() for _ in range(2)]
    first, second = home(replicas)
    first.behave = fails(grpc.StatusCode.UNAVAILABLE, "not now")
    second.behave = plans()
    async with PlanClient(*(replica.url for replica in replicas), config=QUICK) as client:
        await client.plan_request(request("a"))
        second.behave = fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large")
        with pytest.raises(ServiceError):
            await client.report(v1.ReportRequest(workload=v1.WorkloadReference(uid="u")))
    for replica in replicas:
        await replica.stop()
    failed, answered = traces.named(PLAN)
    assert told(failed)["rpc.response.status_code"] == told(failed)["error.type"] == "UNAVAILABLE"
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "not now")
    assert "nodewise.plan.verdict" not in told(failed)
    assert told(failed)["nodewise.request.bytes"] > 0
    assert told(answered)["nodewise.plan.verdict"] == "NOOP"
    assert answered.status.status_code is StatusCode.UNSET
    assert {told(span)["error.type"] for span in traces.named(REPORT)} >= {"RESOURCE_EXHAUSTED"}


async def test_a_call_of_the_service_that_is_given_up(traces: Traces) -> None:
    replica, asked = await Server().start(), asyncio.Event()

    async def hang(*_: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    replica.behave = hang
    async with PlanClient(replica.url, config=QUICK) as client:
        call = asyncio.create_task(client.plan_request(request("a")))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    await replica.stop()
    (span,) = traces.named(PLAN)
    assert told(span)["rpc.response.status_code"] == told(span)["error.type"] == "CANCELLED"
    assert span.status.status_code is StatusCode.ERROR


async def test_how_reconciles_end(apiserver: tuple[Apiserver, KubeClient], traces: Traces) -> None:
    server, kube = apiserver
    serve(server)
    update = action(update_status=v1.UpdateStatus(status=v1.DaemonSetStatus(number_ready=1)))
    service = FakeService([NOOP, UnreachableError("away"), KeyError("odd"), plan(phase(STATUS, batch(update)))])
    async with Reconciler(kube, service, Config(unreachable_delay=3600, rest=0)) as reconciler:
        await traces.reconciles(1)
        assert isinstance(await reconciler.reconcile("ns", "foo"), Unreachable)
        with pytest.raises(KeyError):
            await reconciler.reconcile("ns", "foo")
        # The reconcile is retried, by itself or by this test. After that its write must be seen.
        while not isinstance(await reconciler.reconcile("ns", "foo"), Waiting):
            pass
    outcomes = [told(span)["nodewise.reconcile.outcome"] for span in traces.named("reconcile")]
    assert outcomes[:5] == ["settled", "unreachable", "failed", "settled", "behind"]
    statuses = [span.status for span in traces.named("reconcile")]
    assert [status.is_ok for status in statuses[:5]] == [True, True, False, True, True]
    assert statuses[2].description == "KeyError: 'odd'"


async def test_reconciles_are_linked_to_what_woke_them_and_to_the_one_before(
    apiserver: tuple[Apiserver, KubeClient], traces: Traces
) -> None:
    server, kube = apiserver
    came, ids = asyncio.Event(), [f"00-{number:032x}-{number:016x}-01" for number in range(1, 20)]
    serve(server, daemonsets=[workload(traceparent=ids[0])], nodes=[])
    # Two pods of one trace, one with an invalid annotation, one without.
    pods = [pod("a", traceparent=ids[1]), pod("b", traceparent=ids[1]), pod("c", traceparent="odd"), pod("d")]
    server.script[f"GET {PATHS[Resource.PODS]}"] = [page([]), after(came, *added(*pods)), lines()]
    changed = asyncio.Event()
    renewed = [{"type": "MODIFIED", "object": workload(2, "20", traceparent=ids[0])}]
    server.script[f"GET {PATHS[Resource.DAEMON_SETS]}"] = [
        page([workload(traceparent=ids[0])]),
        after(changed, *renewed),
    ]
    async with reconciling(kube, config=Config(rest=0)) as _:
        (first,) = await traces.reconciles(1)
        came.set()
        await eventually(lambda: len(triggers(traces)) == 5, "the pods are seen")
        pods_seen = traces.named("reconcile")[1:]
        changed.set()
        await eventually(lambda: len(triggers(traces)) == 6, "the DaemonSet is seen")
    last = traces.named("reconcile")[-1]
    assert links(first) == [("trigger", ids[0])]
    before = first
    seen: list[str] = []
    for one in pods_seen:
        assert links(one)[0] == ("previous", traceparent(before))
        assert links(one)[1] == ("trigger", ids[0])
        seen += [of for kind, of in links(one)[2:] if kind == "trigger"]
        before = one
    assert set(seen) == {ids[1]}
    assert links(last) == [("trigger", ids[0])], "of another generation"


def links(span: ReadableSpan) -> list[tuple[str, str]]:
    return [
        (str((link.attributes or {})["nodewise.link"]), f"00-{of.trace_id:032x}-{of.span_id:016x}-01")
        for link in span.links
        for of in [link.context]
    ]


def triggers(traces: Traces) -> list[tuple[str, str]]:
    return [
        (str(told["nodewise.trigger.resource"]), str(told["nodewise.trigger.name"]))
        for span in traces.named("reconcile")
        for event in span.events
        for told in [event.attributes or {}]
    ]


async def test_eight_triggers_and_links_to_eight_of_them_are_enough(
    apiserver: tuple[Apiserver, KubeClient], traces: Traces
) -> None:
    server, kube = apiserver
    came, ids = asyncio.Event(), [f"00-{number:032x}-{number:016x}-01" for number in range(1, 20)]
    serve(server, daemonsets=[workload(traceparent=ids[0])], nodes=[])
    pods = [pod(f"p{number:02}", traceparent=ids[number]) for number in range(1, 19)]
    burst = b"\n".join(json.dumps(event).encode() for event in added(*pods))
    server.script[f"GET {PATHS[Resource.PODS]}"] = [page([]), after(came, burst), lines()]
    async with reconciling(kube):
        await traces.reconciles(1)
        began = time.time_ns()
        came.set()
        _, second, *_ = await traces.reconciles(2)
    assert triggers(traces)[1:] == [("pods", f"ns/p{number:02}") for number in range(1, 9)]
    assert [of for kind, of in links(second) if kind == "trigger"] == ids[:8]
    assert all(began <= event.timestamp <= (second.start_time or 0) for event in second.events)


async def test_every_kind_of_object_triggers(apiserver: tuple[Apiserver, KubeClient], traces: Traces) -> None:
    server, kube = apiserver
    came = {resource: asyncio.Event() for resource in Resource}
    serve(server)
    node = {"metadata": {"name": "n1", "resourceVersion": "12"}}
    revision = {"metadata": {"namespace": "ns", "name": "r", "resourceVersion": "13", "labels": {"app": "foo"}}}
    for resource, obj in {Resource.PODS: pod("a"), Resource.NODES: node, Resource.REVISIONS: revision}.items():
        server.script[f"GET {PATHS[resource]}"] = [page([]), after(came[resource], *added(obj)), lines()]
    async with reconciling(kube):
        for number, resource in enumerate((Resource.PODS, Resource.NODES, Resource.REVISIONS), 2):
            await traces.reconciles(number - 1)
            came[resource].set()
            await traces.reconciles(number)
    expected = [("daemonsets", "ns/foo"), ("pods", "ns/a"), ("nodes", "n1"), ("controllerrevisions", "ns/r")]
    assert triggers(traces) == expected


@pytest.mark.parametrize(("actions", "config"), [(32, Config()), (33, Config()), (1, Config(max_traced_calls=0))])
async def test_large_batches_have_one_span(
    apiserver: tuple[Apiserver, KubeClient], traces: Traces, actions: int, config: Config
) -> None:
    server, kube = apiserver
    serve(server)
    async with reconciling(kube, creates(actions), config=config):
        await traces.reconciles(1)
    (own,) = traces.named("batch")
    assert told(own) == attempted("CREATES", actions, create_pod=actions)
    posts = traces.named("POST /api/v1/namespaces/{namespace}/pods")
    if actions <= config.max_traced_calls:
        assert len(posts) == actions
        assert sorted(calls(server, PODS)) == sorted(map(traceparent, posts))
    else:
        assert not posts
        assert calls(server, PODS) == [traceparent(own, sampled=False)] * actions


async def test_pods_tell_on_demand_which_batch_created_them(
    apiserver: tuple[Apiserver, KubeClient], traces: Traces
) -> None:
    server, kube = apiserver
    daemon_set = workload()
    daemon_set["spec"]["template"] = {"metadata": {"annotations": {"theirs": "stays"}}}
    serve(server, daemonsets=[daemon_set])
    manifest = {**MANIFEST, "metadata": {**MANIFEST["metadata"], "annotations": {"theirs": "stays"}}}
    applied = plan(phase(CREATES, batch(create("foo-bbbbbbbbbb", "n33")), *creates(33).phases[0].batches))
    applied.pod_manifest = json.dumps(manifest).encode()
    async with reconciling(kube, applied, config=Config(traceparent_annotation=True)):
        await traces.reconciles(1)
    first, second = traces.named("batch")
    sent = [json.loads(body)["metadata"] for method, path, _, body in server.requests if path == PODS]
    annotations = {metadata["name"]: metadata["annotations"] for metadata in sent}
    assert annotations.pop("foo-bbbbbbbbbb") == {"theirs": "stays", "nodewise.dev/traceparent": traceparent(first)}
    assert len(annotations) == 33
    expected = {"theirs": "stays", "nodewise.dev/traceparent": traceparent(second)}
    assert all(found == expected for found in annotations.values())


async def test_what_is_not_sampled_is_not_recorded_by_anybody(
    apiserver: tuple[Apiserver, KubeClient], traces: Traces
) -> None:
    traces.sampler.on = False
    server, kube = apiserver
    serve(server)
    async with reconciling(kube, creates(3), config=Config(traceparent_annotation=True)) as replica:
        await eventually(lambda: bool(replica.reports), "the report")
    assert not traces.spans
    assert int(replica.metadata[0]["traceparent"][-2:], 16) & 1 == 0
    assert [header.endswith("-00") for header in calls(server, PODS)] == [True] * 3
    assert not any("nodewise.dev/traceparent" in body for *_, body in server.requests)


async def test_without_the_option_pods_tell_nothing(apiserver: tuple[Apiserver, KubeClient], traces: Traces) -> None:
    server, kube = apiserver
    serve(server)
    async with reconciling(kube, creates(1)):
        await traces.reconciles(1)
    assert not any("nodewise.dev/traceparent" in body for *_, body in server.requests)


async def test_log_records_name_their_trace(
    apiserver: tuple[Apiserver, KubeClient], traces: Traces, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "nodewise")
    server, kube = apiserver
    serve(server)
    server.script[f"PUT {FOO}/status"] = [refuse(500)]
    update = action(update_status=v1.UpdateStatus(status=v1.DaemonSetStatus(number_ready=1)))
    async with reconciling(kube, plan(phase(STATUS, batch(update)))):
        reconcile, *_ = await traces.reconciles(1)
    (own,) = traces.named("batch")
    records = {record.getMessage().partition(":")[0]: record for record in reversed(caplog.records)}
    for start, span in {
        "ns/foo": reconcile,
        "the status write of daemonsets ns/foo was refused; reading it and trying once more": own,
    }.items():
        assert records[start].__dict__["trace_id"] == f"{trace_id(span):032x}"
        assert records[start].__dict__["span_id"] == f"{span_id(span):016x}"
    assert "trace_id" not in records["all caches are filled; starting to work"].__dict__


# A complete reconciler, which must need no memory for traces.
@pytest.mark.parametrize("there", ["no package", "no SDK"])
def test_where_nobody_takes_spans_nothing_is_done(there: str) -> None:
    code = f"""
import sys
if {there!r} == "no package":
    sys.modules["opentelemetry"] = None
import logging, pytest
from nodewise import reconcile_traces, reconciler, tracing
from nodewise.kinds import Key

assert not tracing.is_set_up()
with tracing.span("x", {{"a": 1}}) as span:
    span.set({{"b": 2}})
    span.fail("no")
    assert not span.is_recording and span.traceparent == "" and span.context is None
    assert tracing.headers() == tracing.w3c_headers() == {{}}
kept = []
noting = reconcile_traces.ReconcileTraces.noting

def watched(self, *of):
    kept.append(self)
    assert noting(self, *of) is None

reconcile_traces.ReconcileTraces.noting = watched
tests = ["tests/test_reconciler.py", "-k", "looked_at or backs_off or defect"]
status = pytest.main(["-q", "-p", "no:cacheprovider", *tests])
assert status == 0, status
assert kept and not any(each._triggers or each._previous for each in kept)
assert "opentelemetry.sdk" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=CLIENT)


# The plan client alone needs neither aiohttp nor the kubernetes package.
def test_the_plan_client_needs_no_kubernetes() -> None:
    code = """
import sys
sys.modules["aiohttp"] = sys.modules["kubernetes"] = None
import nodewise, nodewise.sync
nodewise.convert.pod({"metadata": {"name": "p", "uid": "u"}})
nodewise.PlanClient("http://127.0.0.1:1")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
