"""Sends Kubernetes Events, asynchronously and best effort. Recording an event never blocks and never fails."""

import asyncio
import datetime
import json
import time
from types import TracebackType
from typing import Any

from .. import tracing, waiting
from ..actuator import ActuatorError, Refusal, WorkloadEvent
from ..kinds import DAEMON_SET, KINDS, OBJECT_KINDS, Resource
from .client import KubeClient
from .correlate import Correlator, Create, Identity, Patch

_log = tracing.logger(__name__)

_QUEUE = 1_000
"""Most queued events. Further ones are dropped."""
_CALL_TIMEOUT = 5.0
_TRIES = 3
_LAST_EVENTS = 2.0
"""How long queued events may delay the shutdown, in seconds."""


class EventRecorder:
    """Sends recorded events, as an async context manager."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._queue: asyncio.Queue[WorkloadEvent] = asyncio.Queue(_QUEUE)
        self._correlator = Correlator()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "EventRecorder":
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._task is None:
            return
        try:
            async with waiting.timeout(_LAST_EVENTS):
                await self._queue.join()
        except asyncio.TimeoutError:
            _log.warning("some Kubernetes Events could not be sent before the end")
        await waiting.cancel_all([self._task])

    def record(self, event: WorkloadEvent) -> None:
        """Queues an event. Drops it if the queue is full."""
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            _log.debug("an event was dropped, too many wait: %s", event.reason)

    async def _run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._send(event)
            except ActuatorError as error:
                of = event.workload
                _log.debug("an event %s about %s/%s could not be sent: %s", event.reason, of.namespace, of.name, error)
            except Exception:
                # The next event may succeed.
                _log.exception("sending an event ended with a defect")
            finally:
                self._queue.task_done()

    async def _send(self, event: WorkloadEvent) -> None:
        identity, verdict = self._correlator.correlate(_component(event), event, time.monotonic())
        match verdict:
            case Create(message):
                await self._create(event, identity, message)
            case Patch(name, message, count):
                patch = {"count": count, "message": message, "lastTimestamp": _now()}
                try:
                    await self._call("PATCH", f"{_collection(event)}/{name}", "application/merge-patch+json", patch)
                except ActuatorError as error:
                    if error.refusal is not Refusal.NOT_FOUND:
                        raise
                    # Events are deleted after an hour or so. The count restarts with a new one.
                    self._correlator.sent(identity, "")
                    await self._create(event, identity, message)

    async def _create(self, event: WorkloadEvent, identity: Identity, message: str) -> None:
        manifest = _manifest(event, message)
        await self._call("POST", _collection(event), "application/json", manifest)
        self._correlator.sent(identity, manifest["metadata"]["name"])

    async def _call(self, method: str, path: str, content_type: str, body: dict[str, Any]) -> None:
        encoded = json.dumps(body).encode()
        for left in reversed(range(_TRIES)):
            try:
                await self._client.call(method, path, body=encoded, content_type=content_type, timeout=_CALL_TIMEOUT)
                return
            except ActuatorError as error:
                if error.http_status or not left:
                    raise
            await asyncio.sleep(2.0 ** (_TRIES - 1 - left))


def _component(event: WorkloadEvent) -> str:
    """The source component of an Event: the name of the built-in controller, which people and tools look for. Plans for
    DaemonSets emit those about RolloutPolicies.
    """
    return KINDS.get(event.workload.kind, DAEMON_SET).controller


_API_VERSIONS = {OBJECT_KINDS[Resource.POLICIES]: Resource.POLICIES.api_version}
"""The apiVersions of the kinds that are not in `apps/v1`."""


def _collection(event: WorkloadEvent) -> str:
    return f"/api/v1/namespaces/{event.workload.namespace}/events"


def _manifest(event: WorkloadEvent, message: str) -> dict[str, Any]:
    """A v1 Event."""
    workload, now = event.workload, _now()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        # As in all of Kubernetes: the object and the time in nanoseconds, which is unique enough.
        "metadata": {"name": f"{workload.name}.{time.time_ns():x}", "namespace": workload.namespace},
        "involvedObject": {
            "apiVersion": _API_VERSIONS.get(workload.kind, "apps/v1"),
            "kind": workload.kind,
            "namespace": workload.namespace,
            "name": workload.name,
            "uid": workload.uid,
            "resourceVersion": workload.resource_version,
        },
        "type": event.type,
        "reason": event.reason,
        "message": message,
        "source": {"component": _component(event)},
        "reportingComponent": _component(event),
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _now() -> str:
    """The current time as a metav1.Time: whole seconds."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
