"""How writes reach a cluster: one protocol, implemented for a real apiserver (`kube`) and for shadow mode.

It speaks the apiserver's verbs over raw JSON, so that no field is lost to an older schema. It owns no policy: what a
refused write means for a plan is decided in `apply`.
"""

import enum
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from . import tracing, v1
from .kinds import ObjectKey, Resource
from .told import in_short

_log = tracing.logger(__name__)


class PatchType(enum.Enum):
    """A patch as the apiserver takes it."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Written(NamedTuple):
    """What a successful write left behind."""

    name: str
    """metadata.name, which the apiserver may have generated."""
    resource_version: str
    """metadata.resourceVersion after the write. Empty when nothing was written (observe mode)."""


@dataclass(frozen=True, slots=True)
class WorkloadEvent:
    """A Kubernetes Event about a workload."""

    workload: v1.WorkloadReference
    type: str
    """`Normal` or `Warning`."""
    reason: str
    """CamelCase, for machines."""
    message: str
    """For people."""


class Refusal(enum.Enum):
    """Why the apiserver refused, as far as it matters to a plan."""

    ALREADY_EXISTS = enum.auto()
    """409 with reason AlreadyExists."""
    CONFLICT = enum.auto()
    """409 with any other reason: a precondition does not hold."""
    NOT_FOUND = enum.auto()
    """404."""
    INVALID = enum.auto()
    """422."""
    NAMESPACE_TERMINATING = enum.auto()
    """Any status with the cause NamespaceTerminating."""
    OTHER = enum.auto()
    """Anything else, timeouts and broken connections included: the write may have happened."""

    @classmethod
    def of(cls, code: int, reason: str, causes: Iterable[str]) -> "Refusal":
        """What a status says: its code, its reason, and the reasons of the causes in its details."""
        if "NamespaceTerminating" in causes:
            return cls.NAMESPACE_TERMINATING
        if code == 409:
            return cls.ALREADY_EXISTS if reason == "AlreadyExists" else cls.CONFLICT
        return {404: cls.NOT_FOUND, 422: cls.INVALID}.get(code, cls.OTHER)


class ActuatorError(Exception):
    """A call that did not succeed."""

    def __init__(self, message: str, refusal: Refusal = Refusal.OTHER, http_status: int = 0) -> None:
        self.message = in_short(message)
        """The apiserver's message, or what broke the call, on one line of at most 1,000 bytes."""
        super().__init__(self.message)
        self.refusal = refusal
        """What kind of refusal."""
        self.http_status = http_status
        """The HTTP status of the answer; 0 when there was none."""

    @classmethod
    def of(cls, error: BaseException) -> "ActuatorError":
        """What a call ended with. Anything else is a defect, and nobody knows how far the call had come."""
        if isinstance(error, cls):
            return error
        _log.error("a call to the apiserver ended with a defect", exc_info=error)
        return cls(f"{type(error).__name__}: {error}")

    @property
    def is_unclear(self) -> bool:
        """Whether the write may have been done all the same: there was no answer, or the apiserver gave up on it."""
        return self.http_status == 0 or self.http_status >= 500


class Actuator(Protocol):
    """The verbs that applying a plan needs. Each raises `ActuatorError` when it did not succeed.

    Implementations do not retry and bound every call in time. A call that is cancelled may have been done or not.
    """

    @property
    def writes(self) -> bool:
        """False when writes have no effect (observe mode). Then nothing that a plan expects will ever show up in a
        watch.
        """

    async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
        """POST: creates an object from its manifest."""

    async def patch(self, key: ObjectKey, patch_type: PatchType, patch: bytes) -> Written:
        """PATCH."""

    async def delete(self, key: ObjectKey, uid: str | None) -> None:
        """DELETE, gracefully; with a uid only that very object, or `Refusal.CONFLICT`."""

    async def replace_status(self, key: ObjectKey, manifest: bytes) -> Written:
        """PUT of the status subresource. The object carries its resourceVersion, so that a stale one is refused."""

    async def read(self, key: ObjectKey) -> bytes:
        """GET: the object as it is now, as JSON."""

    def read_all(self, resource: Resource, namespace: str) -> AsyncIterator[bytes]:
        """GET of a collection: each object of a namespace as it is now, as JSON. May end with an error halfway."""

    def emit(self, event: WorkloadEvent) -> None:
        """Emits a Kubernetes Event: never blocks, never fails, may be dropped."""


class ObserveActuator:
    """Shadow mode: says in the log what would be written, writes nothing and lets it succeed. Reads go to the actuator
    within.
    """

    def __init__(self, reader: Actuator) -> None:
        self._reader = reader

    @property
    def writes(self) -> bool:
        """It does not."""
        return False

    async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
        """Would create."""
        metadata = json.loads(manifest)["metadata"]
        name = metadata.get("name") or metadata.get("generateName", "")
        _log.info("would create %s %s/%s", resource.value, namespace, name)
        return Written(name, "")

    async def patch(self, key: ObjectKey, patch_type: PatchType, patch: bytes) -> Written:
        """Would patch."""
        _log.info("would patch %s with %s", key, patch.decode(errors="replace"))
        return Written(key.name, "")

    async def delete(self, key: ObjectKey, uid: str | None) -> None:
        """Would delete."""
        _log.info("would delete %s, uid %s", key, uid)

    async def replace_status(self, key: ObjectKey, manifest: bytes) -> Written:
        """Would write the status."""
        _log.info("would write the status of %s", key)
        return Written(key.name, "")

    async def read(self, key: ObjectKey) -> bytes:
        """Reads."""
        return await self._reader.read(key)

    def read_all(self, resource: Resource, namespace: str) -> AsyncIterator[bytes]:
        """Lists."""
        return self._reader.read_all(resource, namespace)

    def emit(self, event: WorkloadEvent) -> None:
        """Would emit."""
        _log.debug("would emit %s %s about %s: %s", event.type, event.reason, event.workload.name, event.message)
