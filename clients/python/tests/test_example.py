"""Tests the traces of the example controller: where they go, and that no collector delays it."""

import asyncio
import pathlib
import runpy
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import grpc.aio
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from nodewise import KubeClient

from .fakes import batch, create, phase, plan
from .polling import eventually
from .programs import CLIENT, Program, running
from .servers import Server
from .test_kube import Apiserver, apiserver
from .test_reconciler import kubeconfig
from .test_tracing import CREATES, PLAN, plans, serve

__all__ = ["apiserver", "kubeconfig"]
CONTROLLER = CLIENT / "examples" / "controller.py"


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """An OTLP/gRPC receiver."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []

    async def start(self) -> str:
        self.server = grpc.aio.server()
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self.server)  # type: ignore[no-untyped-call]
        port = self.server.add_insecure_port("127.0.0.1:0")
        await self.server.start()
        return f"http://127.0.0.1:{port}"

    async def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
        for of in request.resource_spans:
            self.resources.append({told.key: told.value.string_value for told in of.resource.attributes})
            self.spans += [span for scope in of.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()


async def work(program: Program, replica: Server) -> float:
    """Runs a controller until it has created a pod and reported that. Returns how long its exit took."""
    await eventually(lambda: bool(replica.reports), "the report")
    began = time.monotonic()
    assert await asyncio.to_thread(program.end) == 0, program.output
    return time.monotonic() - began


@pytest.fixture
def silent() -> Iterator[str]:
    """A collector that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def replica_with_a_plan() -> Server:
    replica = await Server().start()
    replica.behave = plans(plan(phase(CREATES, batch(create("foo-bbbbbbbbbb")))))
    return replica


def environment(replica: Server, kubeconfig: pathlib.Path, **more: str) -> dict[str, str]:
    return {"NODEWISE_SERVER": replica.url, "KUBECONFIG": str(kubeconfig), **more}


async def test_traces_go_to_the_collector_the_last_ones_at_the_end(
    apiserver: tuple[Apiserver, KubeClient], kubeconfig: pathlib.Path
) -> None:
    server, _ = apiserver
    serve(server)
    collector, replica = Collector(), await replica_with_a_plan()
    env = environment(
        replica,
        kubeconfig,
        OTEL_EXPORTER_OTLP_ENDPOINT=await collector.start(),
        OTEL_RESOURCE_ATTRIBUTES="k8s.cluster.name=here",
        OTEL_BSP_SCHEDULE_DELAY="3600000",
    )
    with running(sys.executable, CONTROLLER, env=env) as program:
        await work(program, replica)
    await replica.stop()
    await collector.server.stop(None)
    assert {resource["service.name"] for resource in collector.resources} == {"nodewise-python"}
    assert {resource["k8s.cluster.name"] for resource in collector.resources} == {"here"}
    names = {span.name for span in collector.spans}
    assert names >= {"reconcile", PLAN, "apply", "batch", "POST /api/v1/namespaces/{namespace}/pods"}


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
async def test_a_collector_that_hangs_holds_up_the_end_for_three_seconds(
    apiserver: tuple[Apiserver, KubeClient], kubeconfig: pathlib.Path, silent: str, name: str
) -> None:
    server, _ = apiserver
    serve(server)
    replica = await replica_with_a_plan()
    with running(sys.executable, CONTROLLER, env=environment(replica, kubeconfig, **{name: silent})) as program:
        took = await work(program, replica)
    await replica.stop()
    assert took < 8, "3 s for the spans, and the rest for a busy machine"


async def test_a_failed_reconcile_says_in_the_log_which_trace_to_look_at(
    apiserver: tuple[Apiserver, KubeClient], kubeconfig: pathlib.Path, silent: str
) -> None:
    server, _ = apiserver
    serve(server)
    replica = await Server().start()
    replica.behave = plans(plan(error="odd"))
    env = environment(replica, kubeconfig, OTEL_EXPORTER_OTLP_ENDPOINT=silent)
    with running(sys.executable, CONTROLLER, env=env) as program:
        said = await asyncio.to_thread(program.wait_for, r"ns/foo: odd; trying again .*")
        assert await asyncio.to_thread(program.end) == 0
    await replica.stop()
    parts = said[0].split()
    assert [part.partition("=")[0] for part in parts[-2:]] == ["trace_id", "span_id"]
    assert replica.metadata[0]["traceparent"].split("-")[1] == parts[-2].partition("=")[2]


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ""}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, None),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            "traces are not exported: OTLP goes out over grpc only, and http/protobuf is asked for",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "WITHOUT": "opentelemetry.exporter"},
            "traces are not exported: .*opentelemetry.exporter",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "WITHOUT": "opentelemetry"}, "traces are not exported"),
    ],
)
async def test_where_there_are_no_traces_it_works_all_the_same(
    apiserver: tuple[Apiserver, KubeClient], kubeconfig: pathlib.Path, env: dict[str, str], says: str | None
) -> None:
    server, _ = apiserver
    serve(server)
    replica = await replica_with_a_plan()
    start = """
import os, runpy, sys
if "WITHOUT" in os.environ:
    sys.modules[os.environ["WITHOUT"]] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    command = [sys.executable, "-c", start, CONTROLLER]
    with running(*command, env=environment(replica, kubeconfig, **env)) as program:
        if says is not None:
            await asyncio.to_thread(program.wait_for, says)
        await work(program, replica)
    await replica.stop()
    assert "traceparent" not in replica.metadata[0]


ALL = ["DaemonSet", "Deployment", "ReplicaSet"]


@pytest.mark.parametrize(
    ("given", "enabled"),
    [
        ("*", ALL),
        ("daemonset-controller", ["DaemonSet"]),
        ("deployment-controller,replicaset-controller", ["Deployment", "ReplicaSet"]),
        ("daemonset,deployment", ["DaemonSet", "Deployment"]),
        ("*,-replicaset-controller", ["DaemonSet", "Deployment"]),
        ("-replicaset,*", ["DaemonSet", "Deployment"]),
        ("deployment,-deployment", ["Deployment"]),
        ("-deployment", None),
        ("statefulset-controller", None),
        ("", None),
    ],
)
def test_controllers_are_chosen_as_in_kube_controller_manager(given: str, enabled: list[str] | None) -> None:
    controllers = runpy.run_path(str(CONTROLLER))["controllers"]
    if enabled is None:
        with pytest.raises(ValueError, match="controller"):
            controllers(given)
    else:
        assert [kind.name for kind in controllers(given)] == enabled
