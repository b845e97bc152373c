"""One action: the call that it is, and what each refusal of that call means."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .. import tracing, v1
from ..actuator import Actuator, ActuatorError, Refusal, WorkloadEvent, Written
from ..convert import ConversionError
from ..kinds import TRACEPARENT_ANNOTATION, ObjectKey, Resource
from ..manifest import ManifestError, PodManifest, is_same_pod
from . import patching, status
from .reading import metadata_of, parse, parse_metadata

_log = tracing.logger(__name__)


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A write of ours whose trace a later snapshot must show (D-109)."""

    resource: Resource
    """Pods or DaemonSets."""
    resource_version: str
    """The resourceVersion that the write returned. Never empty."""
    is_expected_by_name: bool
    """It created a pod whose name was known before, by which an expectation waits for it, too."""


class _Fate(enum.Enum):
    """What a live read shows of an object whose deletion was not plainly accepted."""

    GONE = enum.auto()
    """It is not there, or another one is in its place."""
    GOING = enum.auto()
    """It is being deleted."""
    UNCHANGED = enum.auto()
    """It is there as before, or cannot be read."""


@dataclass(slots=True)
class Done:
    """What became of one action."""

    outcome: v1.Outcome
    write: OwnWrite | None = None
    colliding_revision: bytes | None = None
    vanished: ObjectKey | None = None
    """What an adoption did not find."""
    sealed: ObjectKey | None = None
    """The revision, or the pod to adopt, that nothing can change."""

    @classmethod
    def skipped(cls, action: v1.Action, why: str = "") -> "Done":
        """It was not attempted."""
        outcome = _outcome(action, v1.RESULT_SKIPPED)
        outcome.message = why
        return cls(outcome)

    @classmethod
    def succeeded(cls, action: v1.Action) -> "Done":
        """It was done."""
        return cls(_outcome(action, v1.RESULT_SUCCEEDED))

    @classmethod
    def failed(cls, action: v1.Action, error: ActuatorError) -> "Done":
        """It failed."""
        return cls.refused(action, v1.RESULT_FAILED, error)

    @classmethod
    def refused(cls, action: v1.Action, result: v1.Result.ValueType, error: ActuatorError) -> "Done":
        """The call did not succeed, which means this."""
        outcome = _outcome(action, result)
        outcome.message, outcome.http_status = error.message, error.http_status
        return cls(outcome)

    @classmethod
    def recorded(cls, action: v1.Action, resource: Resource, written: Written) -> "Done":
        """A success that the caches have to show before the next plan."""
        done = cls.succeeded(action)
        if written.resource_version:
            named = action.WhichOneof("kind") == "create_pod" and bool(action.create_pod.pod_name)
            done.write = OwnWrite(resource, written.resource_version, named)
        return done


def _outcome(action: v1.Action, result: v1.Result.ValueType) -> v1.Outcome:
    """An outcome, with the expectation that it settles or leaves."""
    outcome = v1.Outcome(action_id=action.id, result=result)
    match action.WhichOneof("kind"):
        case "create_pod":
            create = action.create_pod
            outcome.created_pod.CopyFrom(v1.ExpectedCreate(pod_name=create.pod_name, node_name=create.node_name))
        case "delete_pod":
            outcome.deleted_pod_uid = action.delete_pod.pod.uid
    return outcome


def is_adoption(action: v1.Action) -> bool:
    """Whether an action makes the workload the controller of an object, which only a workload that lives may become
    (D-27).
    """
    return action.WhichOneof("kind") in ("adopt_pod", "adopt_revision")


class Context:
    """What the actions of one plan have in common."""

    def __init__(
        self,
        actuator: Actuator,
        plan: v1.Plan,
        served: bytes,
        left_out: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self.actuator = actuator
        self.left_out = left_out
        self.workload = plan.workload
        self.served = served
        """The workload as the snapshot had it, JSON."""
        self._manifest: PodManifest | ManifestError
        try:
            self._manifest = PodManifest(plan)
        except ManifestError as error:
            self._manifest = error

    def key(self, resource: Resource, name: str) -> ObjectKey:
        """An object of the workload's namespace."""
        return ObjectKey(resource, self.workload.namespace, name)

    def annotate_pods(self, traceparent: str) -> None:
        """Pods that are created from now on say that they came from this span."""
        if isinstance(self._manifest, PodManifest):
            self._manifest.annotate(TRACEPARENT_ANNOTATION, traceparent)

    @property
    def workload_key(self) -> ObjectKey:
        """The workload itself."""
        if self.workload.kind != "DaemonSet":
            raise ActuatorError(f"this executor knows no workload kind {self.workload.kind!r}")
        return self.key(Resource.DAEMON_SETS, self.workload.name)

    async def read_workload(self) -> dict[str, Any]:
        """Reads the workload live, whatever its version. It must be the object that was planned for, whatever the plan
        says: another one of that name gets neither its status nor its pods.
        """
        key = self.workload_key
        live = parse(key, await self.actuator.read(key))
        found = metadata_of(live).get("uid")
        if found != self.workload.uid:
            raise ActuatorError(f"{key} is another object now: planned for uid {self.workload.uid}, found {found}")
        return live

    async def confirm_workload(self) -> None:
        """Makes sure before an adoption that the workload still lives (D-27)."""
        since = metadata_of(await self.read_workload()).get("deletionTimestamp")
        if since is not None:
            raise ActuatorError(f"{self.workload_key} is being deleted since {since}")

    async def run(self, action: v1.Action) -> Done:
        """Carries out one action."""
        match action.WhichOneof("kind"):
            case "create_revision":
                return await self._create_revision(action)
            case "delete_revision":
                return await self._delete_revision(action)
            case "create_pod":
                return await self._create_pod(action)
            case "delete_pod":
                return await self._delete_pod(action)
            case "update_status":
                return await self._update_status(action)
            case "emit_event":
                event = action.emit_event
                self.emit(event.type, event.reason, event.message)
                return Done.succeeded(action)
            case _:
                patch = patching.of(action)
                if patch is None:
                    return Done.failed(action, ActuatorError("this executor does not know this kind of action"))
                return await self._patch(action, patch)

    def emit(self, event_type: str, reason: str, message: str) -> None:
        """Emits an Event about the workload. Whatever becomes of it, what it tells of was done."""
        try:
            self.actuator.emit(WorkloadEvent(self.workload, event_type, reason, message))
        except Exception:
            _log.exception("an event %s about %s could not be emitted", reason, self.workload.name)

    async def _update_status(self, action: v1.Action) -> Done:
        update = action.update_status
        try:
            written = await status.write(self, update)
        except ActuatorError as error:
            return Done.failed(action, error)
        # The write of a collision count is not remembered (D-109).
        if update.HasField("collision_count"):
            return Done.succeeded(action)
        return Done.recorded(action, Resource.DAEMON_SETS, written)

    async def _create_revision(self, action: v1.Action) -> Done:
        create = action.create_revision
        try:
            await self.actuator.create(Resource.REVISIONS, self.workload.namespace, create.manifest)
        except ActuatorError as error:
            done = Done.failed(action, error)
            if error.refusal is Refusal.ALREADY_EXISTS:
                # The next plan needs the object in the way; without it the next try finds it again.
                done.colliding_revision = await self._read(self.key(Resource.REVISIONS, create.name))
            return done
        return Done.succeeded(action)

    async def _patch(self, action: v1.Action, patch: patching.Patching) -> Done:
        key = self.key(patch.resource, patch.object.name)
        try:
            written = await self.actuator.patch(key, patch.type, patch.body)
        except ActuatorError as error:
            # A sealed revision is refused as invalid, too, and is not gone.
            seal = patching.seal_of(action, key, error)
            if seal is not None:
                _log.warning("%s", seal.message)
                self.emit("Warning", seal.reason, seal.message)
                done = Done.refused(action, v1.RESULT_NOT_FOUND, error)
                done.sealed = key if seal.ends_plan else None
                return done
            if error.refusal in patch.gone:
                done = Done.refused(action, v1.RESULT_NOT_FOUND, error)
                done.vanished = key if is_adoption(action) else None
                return done
            return Done.failed(action, error)
        if action.WhichOneof("kind") == "adopt_pod":
            return Done.recorded(action, patch.resource, written)
        return Done.succeeded(action)

    async def _delete_revision(self, action: v1.Action) -> Done:
        done = await self._delete(action, Resource.REVISIONS, action.delete_revision.revision, with_uid=True)
        # One that is gone already shows that the cache is behind, which may change what is to be done: the plan fails,
        # as upstream's sync does (D-56, D-63).
        if done.outcome.result == v1.RESULT_NOT_FOUND:
            done.outcome.result = v1.RESULT_FAILED
        return done

    async def _delete_pod(self, action: v1.Action) -> Done:
        delete = action.delete_pod
        done = await self._delete(action, Resource.PODS, delete.pod, with_uid=delete.uid_precondition)
        if done.outcome.result == v1.RESULT_SUCCEEDED:
            self.emit("Normal", "SuccessfulDelete", f"Deleted pod: {delete.pod.name}")
        elif done.outcome.result == v1.RESULT_FAILED:
            self.emit("Warning", "FailedDelete", f"Error deleting: {done.outcome.message}")
        return done

    async def _delete(
        self, action: v1.Action, resource: Resource, reference: v1.ObjectReference, *, with_uid: bool
    ) -> Done:
        key, uid = self.key(resource, reference.name), reference.uid if with_uid else None
        try:
            await self.actuator.delete(key, uid)
        except Exception as raised:
            error = ActuatorError.of(raised)
            if error.refusal is Refusal.NOT_FOUND:
                return Done.refused(action, v1.RESULT_NOT_FOUND, error)
            if error.refusal is Refusal.CONFLICT or error.is_unclear:
                match await self._fate(key, uid):
                    case _Fate.GONE:
                        return Done.refused(action, v1.RESULT_NOT_FOUND, error)
                    case _Fate.GOING:
                        # Done after all. Were it told as failed, nobody would wait for the watch to show it, and the
                        # next plan could take down another pod besides.
                        return Done.succeeded(action)
            return Done.failed(action, error)
        return Done.succeeded(action)

    async def _fate(self, key: ObjectKey, uid: str | None) -> _Fate:
        """What became of an object with that name and uid."""
        try:
            metadata = parse_metadata(key, await self.actuator.read(key))
        except ActuatorError as error:
            return _Fate.GONE if error.refusal is Refusal.NOT_FOUND else _Fate.UNCHANGED
        if uid is not None and metadata.get("uid", uid) != uid:
            return _Fate.GONE
        return _Fate.GOING if metadata.get("deletionTimestamp") else _Fate.UNCHANGED

    async def _create_pod(self, action: v1.Action) -> Done:
        create = action.create_pod
        if isinstance(self._manifest, ManifestError):
            return Done.failed(action, ActuatorError(str(self._manifest)))
        try:
            written = await self.actuator.create(Resource.PODS, self.workload.namespace, self._manifest.render(create))
        except ActuatorError as error:
            if error.refusal is Refusal.NAMESPACE_TERMINATING:
                return Done.refused(action, v1.RESULT_NAMESPACE_TERMINATING, error)
            if error.refusal is Refusal.ALREADY_EXISTS and create.pod_name:
                is_ours = await self._is_ours(create, self._manifest)
                if is_ours:
                    return Done.refused(action, v1.RESULT_ALREADY_EXISTS, error)
                if is_ours is not None:
                    _log.debug("the name %s of a new pod for node %s is taken", create.pod_name, create.node_name)
                    return Done.refused(action, v1.RESULT_NAME_TAKEN, error)
            self.emit("Warning", "FailedCreate", f"Error creating: {error}")
            return Done.failed(action, error)
        self.emit("Normal", "SuccessfulCreate", f"Created pod: {written.name}")
        return Done.recorded(action, Resource.PODS, written)

    async def _is_ours(self, create: v1.CreatePod, manifest: PodManifest) -> bool | None:
        """Whether the pod that has the name already is the one that the create would have made. None when it cannot be
        read: it may be, and another name would make a second pod.
        """
        key = self.key(Resource.PODS, create.pod_name)
        try:
            live = await self.actuator.read(key)
            return is_same_pod(live, self.workload.uid, create.node_name, manifest.revision_hash)
        except (ActuatorError, ConversionError) as error:
            _log.warning("%s, which has the name of a new pod, cannot be read: %s", key, error)
            return None

    async def _read(self, key: ObjectKey) -> bytes | None:
        try:
            return await self.actuator.read(key)
        except ActuatorError:
            return None
