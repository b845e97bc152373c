"""Writes to a real apiserver."""

import json
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from .. import tracing
from ..actuator import ActuatorError, Blocked, PatchType, WorkloadEvent, Written
from ..kinds import ObjectKey, Resource
from ..rawjson import UNREADABLE, Served
from ..sanitize import one_line
from .client import KubeClient
from .events import EventRecorder
from .pages import UnreadableError, lossy, page_size, pages

_IDENTITY_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
"""Responses to writes need only the metadata."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


_WRITTEN = msgspec.json.Decoder(_Object)


class _Target(NamedTuple):
    """The target of a call."""

    resource: Resource
    namespace: str
    name: str = ""
    """Empty for the collection, in which an object is created."""
    subresource: str = ""

    @property
    def path(self) -> str:
        return self._path(self.namespace, self.name)

    @property
    def template(self) -> str:
        return self._path("{namespace}", self.name and "{name}")

    def _path(self, namespace: str, name: str) -> str:
        return "/".join(filter(None, (self.resource.collection(namespace), name, self.subresource)))


class KubeActuator:
    """Writes through a client. Bodies are sent unchanged. Only name and version of a response are read. Each call has a
    timeout. No call is repeated, since a create that timed out may have happened.
    """

    def __init__(self, client: KubeClient, recorder: EventRecorder, *, call_timeout: float = 30.0) -> None:
        self._client = client
        self._recorder = recorder
        self._call_timeout = call_timeout

    @property
    def writes(self) -> bool:
        """Always true."""
        return True

    async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
        """POST."""
        return await self._write("POST", _Target(resource, namespace), manifest)

    async def patch(self, key: ObjectKey, patch_type: PatchType, patch: bytes) -> Written:
        """PATCH."""
        return await self._write("PATCH", _Target(*key), patch, patch_type.value)

    async def delete(self, key: ObjectKey, uid: str | None, resource_version: str | None = None) -> None:
        """DELETE."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        given = {name: value for name, value in preconditions.items() if value is not None}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": given}
        body = json.dumps(options).encode() if given else None
        await self._call("DELETE", _Target(*key), body=body, accept=_IDENTITY_ONLY)

    async def evict(self, key: ObjectKey, uid: str) -> Blocked | None:
        """POST of an Eviction. The causes of a refusal name the budget, and say what it needs."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        target = _Target(key.resource, key.namespace, key.name, "eviction")
        try:
            await self._call("POST", target, body=json.dumps(eviction).encode())
        except ActuatorError as error:
            if error.http_status != 429:
                raise
            return Blocked(one_line(" ".join([error.message, *error.causes])), error.retry_after or None)
        return None

    async def replace_status(self, key: ObjectKey, manifest: bytes) -> Written:
        """PUT of the status."""
        return await self._write("PUT", _Target(key.resource, key.namespace, key.name, "status"), manifest)

    async def read(self, key: ObjectKey) -> bytes:
        """GET."""
        return lossy(await self._call("GET", _Target(*key)))

    async def read_all(self, resource: Resource, namespace: str) -> AsyncIterator[bytes]:
        """GET, page by page."""
        try:
            async for page in pages(self._client, resource.collection(namespace), page_size(resource)):
                for served in page.items:
                    yield lossy(served)
        except UnreadableError as error:
            raise ActuatorError(str(error)) from error

    def emit(self, event: WorkloadEvent) -> None:
        """Passes the event to the recorder."""
        self._recorder.record(event)

    async def _write(
        self, method: str, target: _Target, body: bytes, content_type: str = "application/json"
    ) -> Written:
        answer = await self._call(
            method,
            target,
            params={"fieldManager": self._client.user_agent},
            body=body,
            content_type=content_type,
            accept=_IDENTITY_ONLY,
        )
        try:
            metadata = _WRITTEN.decode(Served(answer).without_managed_fields).metadata
        except UNREADABLE as error:
            raise ActuatorError(f"reading the apiserver's answer: {error}") from error
        return Written(metadata.name, metadata.resource_version)

    async def _call(
        self,
        method: str,
        target: _Target,
        *,
        params: dict[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        url = self._client.url(target.path) + (f"?{urlencode(params)}" if params else "")
        with tracing.api_call(tracing.ApiCall(method, url, target.template, target.namespace)) as span:
            if span.is_recording:
                span.set(_pod_attributes(target, body))
            answer = await self._client.call(
                method,
                target.path,
                params=params,
                body=body,
                content_type=content_type,
                accept=accept,
                timeout=self._call_timeout,
            )
            if span.is_recording:
                span.set({"http.response.status_code": answer.status, **_pod_attributes(target, answer.body)})
        return answer.body


def _pod_attributes(target: _Target, body: bytes | None) -> dict[str, str]:
    """The span attributes of a pod: its name, which a new pod has in its manifest or gets from the apiserver."""
    if target.resource is not Resource.PODS:
        return {}
    name = target.name
    if not name and body:
        try:
            name = _WRITTEN.decode(Served(body).without_managed_fields).metadata.name
        except UNREADABLE:
            pass
    return {"k8s.pod.name": name} if name else {}
