"""Writes to a real apiserver."""

import json

import msgspec

from ..actuator import ActuatorError, PatchType, WorkloadEvent, Written
from ..kinds import ObjectKey, Resource
from .client import KubeClient
from .events import EventRecorder

_IDENTITY_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
"""Of what was written only the metadata is of interest."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata


_WRITTEN = msgspec.json.Decoder(_Object)


class KubeActuator:
    """Writes through a client: bodies go out as they are given, answers are read no further than their identity. Each
    call has so many seconds; none is repeated, since a create that timed out may have happened.
    """

    def __init__(self, client: KubeClient, recorder: EventRecorder, *, call_timeout: float = 30.0) -> None:
        self._client = client
        self._recorder = recorder
        self._call_timeout = call_timeout

    @property
    def writes(self) -> bool:
        """It does."""
        return True

    async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
        """POST."""
        return await self._write("POST", resource.collection(namespace), manifest)

    async def patch(self, key: ObjectKey, patch_type: PatchType, patch: bytes) -> Written:
        """PATCH."""
        return await self._write("PATCH", key.path, patch, patch_type.value)

    async def delete(self, key: ObjectKey, uid: str | None) -> None:
        """DELETE."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        await self._client.call(
            "DELETE",
            key.path,
            body=None if uid is None else json.dumps(options).encode(),
            accept=_IDENTITY_ONLY,
            timeout=self._call_timeout,
        )

    async def replace_status(self, key: ObjectKey, manifest: bytes) -> Written:
        """PUT of the status."""
        return await self._write("PUT", f"{key.path}/status", manifest)

    async def read(self, key: ObjectKey) -> bytes:
        """GET."""
        return await self._client.call("GET", key.path, timeout=self._call_timeout)

    def emit(self, event: WorkloadEvent) -> None:
        """Leaves it to the recorder."""
        self._recorder.record(event)

    async def _write(self, method: str, path: str, body: bytes, content_type: str = "application/json") -> Written:
        answer = await self._client.call(
            method,
            path,
            params={"fieldManager": self._client.user_agent},
            body=body,
            content_type=content_type,
            accept=_IDENTITY_ONLY,
            timeout=self._call_timeout,
        )
        try:
            metadata = _WRITTEN.decode(answer).metadata
        except msgspec.MsgspecError as error:
            raise ActuatorError(f"reading the apiserver's answer: {error}") from error
        return Written(metadata.name, metadata.resource_version)
