"""The interface through which an executor writes to a cluster. `kube` implements it for an apiserver, `ObserveActuator`
for observe mode.

It has the verbs of the apiserver and carries raw JSON, so no field is lost to an older schema. `apply` decides what a
refused write means for a plan.
"""

import enum
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from . import tracing, v1
from .kinds import ObjectKey, Resource
from .sanitize import one_line

_log = tracing.logger(__name__)


class PatchType(enum.Enum):
    """The content type of a patch."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Written(NamedTuple):
    """The result of a successful write."""

    name: str
    """metadata.name, which the apiserver may have generated."""
    resource_version: str
    """metadata.resourceVersion after the write. Empty if nothing was written (observe mode)."""


class Blocked(NamedTuple):
    """An eviction that a PodDisruptionBudget does not allow now (429). The pod stays."""

    message: str
    """The apiserver's message, on one line. It names the budget."""
    retry_after: float | None = None
    """When to ask again, in seconds, if the apiserver says so."""


@dataclass(frozen=True, slots=True)
class WorkloadEvent:
    """A Kubernetes Event about a workload, or about a RolloutPolicy."""

    workload: v1.WorkloadReference
    """The object that the Event is about."""
    type: str
    """`Normal` or `Warning`."""
    reason: str
    """CamelCase, for machines."""
    message: str
    """For people."""


class Refusal(enum.Enum):
    """Why the apiserver refused a write, as far as it matters to a plan."""

    ALREADY_EXISTS = enum.auto()
    """409 with reason AlreadyExists."""
    CONFLICT = enum.auto()
    """409 with any other reason: a precondition failed."""
    NOT_FOUND = enum.auto()
    """404."""
    INVALID = enum.auto()
    """422."""
    NAMESPACE_TERMINATING = enum.auto()
    """Any status with the cause NamespaceTerminating."""
    OTHER = enum.auto()
    """Anything else, including timeouts and broken connections. The write may have happened."""

    @classmethod
    def of(cls, code: int, reason: str, causes: Iterable[str]) -> "Refusal":
        """Classifies a status by its code, its reason, and the reasons of the causes in its details."""
        if "NamespaceTerminating" in causes:
            return cls.NAMESPACE_TERMINATING
        if code == 409:
            return cls.ALREADY_EXISTS if reason == "AlreadyExists" else cls.CONFLICT
        return {404: cls.NOT_FOUND, 422: cls.INVALID}.get(code, cls.OTHER)


class ActuatorError(Exception):
    """A call that failed."""

    def __init__(
        self,
        message: str,
        refusal: Refusal = Refusal.OTHER,
        http_status: int = 0,
        *,
        causes: Iterable[str] = (),
        retry_after: int = 0,
    ) -> None:
        self.message = one_line(message)
        """The apiserver's message, or why the call broke off, on one line of at most 1,000 bytes."""
        super().__init__(self.message)
        self.refusal = refusal
        """The kind of refusal."""
        self.http_status = http_status
        """The HTTP status of the response, 0 if there was none."""
        self.causes = tuple(causes)
        """The messages of the causes in the response."""
        self.retry_after = retry_after
        """When to try again, in seconds, as the response says. 0 if it does not."""

    @classmethod
    def of(cls, error: BaseException) -> "ActuatorError":
        """Converts an exception of a call. Any other exception is a defect, and the write may have happened."""
        if isinstance(error, cls):
            return error
        _log.error("a call to the apiserver ended with a defect", exc_info=error)
        return cls(f"{type(error).__name__}: {error}")

    @property
    def is_unclear(self) -> bool:
        """Whether the write may have happened: there was no response, or the apiserver returned a 5xx status."""
        return self.http_status == 0 or self.http_status >= 500


class Actuator(Protocol):
    """The verbs that applying a plan needs. Each raises `ActuatorError` on failure.

    Implementations do not retry, and every call has a timeout. A cancelled call may or may not have happened.
    """

    @property
    def writes(self) -> bool:
        """False if writes have no effect (observe mode). A watch then never shows what a plan expects."""

    async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
        """POST: creates an object from its manifest."""

    async def patch(self, key: ObjectKey, patch_type: PatchType, patch: bytes) -> Written:
        """PATCH of the object, or of the subresource that the key names."""

    async def delete(self, key: ObjectKey, uid: str | None, resource_version: str | None = None) -> None:
        """DELETE with the default grace period. With a uid or a resourceVersion, deletes only the object of that uid,
        at that version, or fails with `Refusal.CONFLICT`. A resourceVersion is only given for objects of a Deployment.
        """

    async def evict(self, key: ObjectKey, uid: str) -> Blocked | None:
        """POST of an Eviction: deletes the pod of this uid, if no PodDisruptionBudget forbids it. Returns None if the
        pod is evicted, and fails as `delete` does.
        """

    async def replace_status(self, key: ObjectKey, manifest: bytes) -> Written:
        """PUT of the status subresource. The object has its resourceVersion, so the apiserver refuses a stale one."""

    async def read(self, key: ObjectKey) -> bytes:
        """GET: the current object, as JSON."""

    def read_all(self, resource: Resource, namespace: str) -> AsyncIterator[bytes]:
        """GET of a collection: each current object of a namespace, as JSON. May fail after some objects."""

    def emit(self, event: WorkloadEvent) -> None:
        """Emits a Kubernetes Event. Never blocks and never fails. The Event may be dropped."""


class ObserveActuator:
    """Observe mode: logs each write, and returns success without writing. Reads are passed to another actuator."""

    def __init__(self, reader: Actuator) -> None:
        self._reader = reader

    @property
    def writes(self) -> bool:
        """Always false."""
        return False

    async def create(self, resource: Resource, namespace: str, manifest: bytes) -> Written:
        """Logs the create."""
        metadata = json.loads(manifest)["metadata"]
        name = metadata.get("name") or metadata.get("generateName", "")
        _log.info("would create %s %s/%s", resource.value, namespace, name)
        return Written(name, "")

    async def patch(self, key: ObjectKey, patch_type: PatchType, patch: bytes) -> Written:
        """Logs the patch."""
        _log.info("would patch %s with %s", key, patch.decode(errors="replace"))
        return Written(key.name, "")

    async def delete(self, key: ObjectKey, uid: str | None, resource_version: str | None = None) -> None:
        """Logs the delete."""
        _log.info("would delete %s, uid %s", key, uid)

    async def evict(self, key: ObjectKey, uid: str) -> Blocked | None:
        """Logs the eviction."""
        _log.info("would evict %s, uid %s", key, uid)
        return None

    async def replace_status(self, key: ObjectKey, manifest: bytes) -> Written:
        """Logs the status write."""
        _log.info("would write the status of %s", key)
        return Written(key.name, "")

    async def read(self, key: ObjectKey) -> bytes:
        """Reads through the wrapped actuator."""
        return await self._reader.read(key)

    def read_all(self, resource: Resource, namespace: str) -> AsyncIterator[bytes]:
        """Lists through the wrapped actuator."""
        return self._reader.read_all(resource, namespace)

    def emit(self, event: WorkloadEvent) -> None:
        """Logs the Event."""
        _log.debug("would emit %s %s about %s: %s", event.type, event.reason, event.workload.name, event.message)
