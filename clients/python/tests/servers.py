"""A scripted planning service, on a free port of this machine."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from nodewise import v1
from nodewise.client.health import SERVICE
from nodewise.v1 import reconcile_service_pb2_grpc

Behave = Callable[["Server", Any, grpc.aio.ServicerContext[Any, Any]], Awaitable[Any]]


def details(code: grpc.StatusCode, message: str, *of: Message) -> tuple[tuple[str, bytes]]:
    packed = []
    for detail in of:
        packed.append(AnyMessage())
        packed[-1].Pack(detail)
    status = status_pb2.Status(code=code.value[0], message=message, details=packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)


def retry_info(seconds: int) -> Message:
    info: Message = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=seconds))
    return info


def fails(code: grpc.StatusCode, message: str = "no", *of: Message) -> Behave:
    async def behave(_: "Server", __: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        await context.abort(code, message, details(code, message, *of) if of else ())

    return behave


async def answers(server: "Server", request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
    """Answers with a plan once it has all buckets."""
    snapshot = request.snapshot
    lacks = []
    for buckets in (snapshot.node_buckets, snapshot.pod_buckets):
        for bucket in buckets:
            shares = server.reads_shared_labels and bucket.HasField("data_with_shared_labels")
            if shares or bucket.HasField("data"):
                data = bucket.data_with_shared_labels if shares else bucket.data
                assert hashlib.sha256(data).digest() == bucket.digest
                server.has.add(bucket.digest)
        lacks.append([index for index, bucket in enumerate(buckets) if bucket.digest not in server.has])
    if any(lacks):
        missing = v1.MissingBuckets(node_bucket_indices=lacks[0], pod_bucket_indices=lacks[1])
        await fails(grpc.StatusCode.FAILED_PRECONDITION, "buckets", missing)(server, request, context)
    plan = v1.Plan(plan_id=server.address, verdict=v1.VERDICT_NOOP, workload=asked_about(snapshot))
    return v1.PlanResponse(plan=plan)


def asked_about(snapshot: v1.Snapshot) -> v1.WorkloadReference:
    """The workload of a snapshot; an empty reference if there is none."""
    member = snapshot.workload.WhichOneof("kind") or "daemon_set"
    metadata = json.loads(getattr(snapshot.workload, member).object or b"{}").get("metadata", {})
    named = {field: metadata.get(field, "") for field in ("namespace", "name", "uid")}
    kind = {"daemon_set": "DaemonSet", "replica_set": "ReplicaSet", "deployment": "Deployment"}[member]
    return v1.WorkloadReference(kind=kind, **named)


async def hangs(*_: Any) -> Any:
    await asyncio.Event().wait()


class Server(reconcile_service_pb2_grpc.ReconcileServiceServicer):
    """One replica."""

    def __init__(self) -> None:
        self.behave: Behave = answers
        self.has: set[bytes] = set()
        self.plans: list[v1.PlanRequest] = []
        self.reports: list[v1.ReportRequest] = []
        self.explains: list[v1.ExplainRequest] = []
        self.metadata: list[dict[str, Any]] = []
        self.remaining: list[float] = []
        self.kinds = ["DaemonSet"]
        """The kinds of workload that it plans for."""
        self.features: list[str] = []
        """What it knows besides."""
        self.reads_shared_labels = False
        """Whether it reads buckets with shared labels. To an earlier version they have no bytes."""
        self.version: str | None = None
        """Its version; by default its address."""
        self.asked_for_kinds = 0
        self.hides_capabilities = False
        self.address = "127.0.0.1:0"
        self._server: grpc.aio.Server | None = None
        self.health = health.aio.HealthServicer()

    async def start(self, credentials: grpc.ServerCredentials | None = None) -> "Server":
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        reconcile_service_pb2_grpc.add_ReconcileServiceServicer_to_server(self, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        if credentials is None:
            port = self._server.add_insecure_port(self.address)
        else:
            port = self._server.add_secure_port(self.address, credentials)
        self.address = f"127.0.0.1:{port}"
        await self.says("SERVING")
        await self._server.start()
        return self

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def says(self, status: Literal["SERVING", "NOT_SERVING"]) -> None:
        await self.health.set(SERVICE, health_pb2.HealthCheckResponse.ServingStatus.Value(status))

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    async def Plan(self, request: Any, context: Any) -> Any:
        self.plans.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self.remaining.append(context.time_remaining())
        return await self.behave(self, request, context)

    async def Report(self, request: Any, context: Any) -> Any:
        self.reports.append(request)
        if self.behave is answers:
            return v1.ReportResponse(requeue=v1.REQUEUE_NONE)
        return await self.behave(self, request, context)

    async def Explain(self, request: Any, context: Any) -> Any:
        self.explains.append(request)
        await self.behave(self, request, context)
        return v1.ExplainResponse(nodes=[v1.NodeExplanation(node_name=request.node_name)])

    async def Simulate(self, request: Any, context: Any) -> Any:
        await self.behave(self, request, context)
        yield v1.SimulateResponse(end=v1.SimulationEnd(result=v1.SimulationEnd.RESULT_DONE))

    async def EvaluateNodes(self, request: Any, context: Any) -> Any:
        await fails(grpc.StatusCode.UNIMPLEMENTED, "as a server of an older version")(self, request, context)

    def PlanStream(self, request_iterator: Any, context: Any) -> Any:
        raise NotImplementedError

    async def GetCapabilities(self, request: Any, context: Any) -> Any:
        self.asked_for_kinds += 1
        if self.hides_capabilities:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "as a gateway that lets only some methods pass")
        version = self.address if self.version is None else self.version
        return v1.GetCapabilitiesResponse(engine_version=version, workload_kinds=self.kinds, features=self.features)
