"""Trace context, with OpenTelemetry and without."""

import subprocess
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from nodewise import KubeClient, PlanClient, tracing

from .servers import Server
from .test_client import QUICK, request
from .test_kube import Apiserver, answer, apiserver

__all__ = ["apiserver"]


async def test_one_trace_goes_to_the_service_and_to_the_apiserver(apiserver: tuple[Apiserver, KubeClient]) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    server, kube = apiserver
    server.script["GET /x"] = [answer({})]
    replica = await Server().start()
    async with PlanClient(replica.url, config=QUICK) as client:
        with tracing.span("reconcile", nodewise__workload="ns/foo"):
            await client.plan_request(request("a"))
            await kube.call("GET", "/x")
    await replica.stop()
    spans = {span.name: span for span in exporter.get_finished_spans()}
    reconcile, plan = spans["reconcile"], spans["plan"]
    assert dict(reconcile.attributes or {}) == {"nodewise.workload": "ns/foo"}
    assert plan.parent == reconcile.context
    assert plan.kind is trace.SpanKind.CLIENT
    assert (plan.attributes or {})["nodewise.plan.verdict"] == "VERDICT_NOOP"
    assert replica.metadata[0]["traceparent"].startswith(header(plan))
    assert server.headers[0]["traceparent"].startswith(header(reconcile))


def header(span: object) -> str:
    context = span.context  # type: ignore[attr-defined]
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-"


def test_without_opentelemetry_nothing_is_missing() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from nodewise import tracing
with tracing.span("x", a=1):
    tracing.describe(b=2)
assert tracing.context() == {}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


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
