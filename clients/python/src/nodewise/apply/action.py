"""Carries out one action, and decides what each refusal of its call means."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from .. import tracing, v1
from ..actuator import Actuator, ActuatorError, Refusal, WorkloadEvent, Written
from ..convert import ConversionError
from ..kinds import DAEMON_SET, TRACEPARENT_ANNOTATION, Kind, ObjectKey, Resource
from ..manifest import ManifestError, PodManifest, is_same_pod
from . import patching, status
from .reading import metadata_of, parse, parse_metadata

_log = tracing.logger(__name__)


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A write of the executor that a later snapshot must show (D-109)."""

    resource: Resource
    """Pods, the resource of the workload, or that of an object that an action names."""
    resource_version: str
    """The resourceVersion that the write returned. Never empty."""
    created_pod: str = ""
    """The name of the created pod, if it was in the plan. An expectation also waits for that name."""


class Colliding(NamedTuple):
    """A live object whose name a create found taken."""

    resource: Resource
    object: bytes
    """The object as JSON."""


class _DeletedState(enum.Enum):
    """What a live read shows of an object whose delete was refused or had no clear response."""

    GONE = enum.auto()
    """It does not exist, or another object has its name."""
    DELETING = enum.auto()
    """It is being deleted."""
    UNCHANGED = enum.auto()
    """It exists and is not being deleted, or the read failed."""


@dataclass(slots=True)
class ActionResult:
    """The result of one action."""

    outcome: v1.Outcome
    write: OwnWrite | None = None
    colliding: Colliding | None = None
    vanished: ObjectKey | None = None
    """The object that an adoption did not find."""
    sealed: ObjectKey | None = None
    """The revision, or the pod to adopt, that the apiserver refuses to change."""
    ends_plan: bool = False
    """The rest of the plan must not be carried out, whether or not the action failed."""

    @classmethod
    def skipped(cls, action: v1.Action, why: str = "", *, ignored: bool = False) -> "ActionResult":
        """The action was not attempted. If that is `ignored`, it is no reason to retry."""
        outcome = _outcome(action, v1.RESULT_SKIPPED)
        outcome.message, outcome.ignored = why, ignored
        return cls(outcome)

    @classmethod
    def succeeded(cls, action: v1.Action) -> "ActionResult":
        """The action succeeded."""
        return cls(_outcome(action, v1.RESULT_SUCCEEDED))

    @classmethod
    def failed(cls, action: v1.Action, error: ActuatorError) -> "ActionResult":
        """The action failed."""
        return cls.refused(action, v1.RESULT_FAILED, error)

    @classmethod
    def refused(cls, action: v1.Action, result: v1.Result.ValueType, error: ActuatorError) -> "ActionResult":
        """The call failed, with this result for the plan."""
        outcome = _outcome(action, result)
        outcome.message, outcome.http_status = error.message, error.http_status
        return cls(outcome)

    @classmethod
    def recorded(cls, action: v1.Action, resource: Resource, written: Written) -> "ActionResult":
        """A success that the caches must show before the next plan."""
        result = cls.succeeded(action)
        if written.resource_version:
            result.write = OwnWrite(resource, written.resource_version, action.create_pod.pod_name)
        return result


def _outcome(action: v1.Action, result: v1.Result.ValueType) -> v1.Outcome:
    """An outcome, with the pod or uid of the expectation that it concerns."""
    outcome = v1.Outcome(action_id=action.id, result=result)
    match action.WhichOneof("kind"):
        case "create_pod":
            create = action.create_pod
            outcome.created_pod.CopyFrom(v1.ExpectedCreate(pod_name=create.pod_name, node_name=create.node_name))
        case "delete_pod":
            outcome.deleted_pod_uid = action.delete_pod.pod.uid
    return outcome


class Context:
    """The state that the actions of one plan share."""

    def __init__(
        self,
        actuator: Actuator,
        plan: v1.Plan,
        served: bytes,
        left_out: Mapping[int, str] = MappingProxyType({}),
        kind: Kind = DAEMON_SET,
    ) -> None:
        self.actuator = actuator
        self._kind = kind
        self.left_out = left_out
        self.failure = ""
        """The first error of earlier batches; empty if there is none."""
        self.workload = plan.workload
        self.served = served
        """The JSON of the workload in the snapshot."""
        self._manifest: PodManifest | ManifestError
        try:
            self._manifest = PodManifest(plan)
        except ManifestError as error:
            self._manifest = error

    def key(self, resource: Resource, name: str) -> ObjectKey:
        """The key of an object in the workload's namespace."""
        return ObjectKey(resource, self.workload.namespace, name)

    def annotate_pods(self, traceparent: str) -> None:
        """Annotates pods that are created from now on with this span."""
        if isinstance(self._manifest, PodManifest):
            self._manifest.annotate(TRACEPARENT_ANNOTATION, traceparent)

    @property
    def kind(self) -> Kind:
        """The kind of the workload. Raises `ActuatorError` if the plan names another one."""
        if self.workload.kind != self._kind.name:
            raise ActuatorError(f"this plan is for a {self._kind}, and names the workload kind {self.workload.kind!r}")
        return self._kind

    @property
    def workload_key(self) -> ObjectKey:
        """The key of the workload."""
        return self.key(self.kind.resource, self.workload.name)

    def resource_of(self, name: v1.GroupVersionResource) -> Resource:
        """The resource that an action on an object names: the workload's, or that of what it controls. Raises
        `ActuatorError` for any other one.
        """
        for kind in (self.kind, self.kind.controls):
            if kind is not None and (name.group, name.version, name.resource) == kind.resource.identity:
                return kind.resource
        what = f"{name.resource!r} of {name.group}/{name.version}"
        raise ActuatorError(f"this executor does not write the resource {what}")

    async def read_workload(self) -> dict[str, Any]:
        """Reads the current workload. Raises `ActuatorError` if its uid is not the one that was planned for: another
        object of that name gets neither the status nor the pods.
        """
        key = self.workload_key
        live = parse(key, await self.actuator.read(key))
        found = metadata_of(live).get("uid")
        if found != self.workload.uid:
            raise ActuatorError(f"{key} is another object now: planned for uid {self.workload.uid}, found {found}")
        return live

    async def confirm_workload(self) -> None:
        """Checks before adoptions (D-27) and creates that the workload is not being deleted."""
        since = metadata_of(await self.read_workload()).get("deletionTimestamp")
        if since is not None:
            raise ActuatorError(f"{self.workload_key} is being deleted since {since}")

    async def run(self, action: v1.Action) -> ActionResult:
        """Carries out one action, and emits the Events that follow it."""
        result = await self._carry_out(action)
        if result.outcome.result == v1.RESULT_SUCCEEDED:
            for event in action.success_events:
                self.emit(event.type, event.reason, event.message)
        elif result.outcome.result == v1.RESULT_FAILED and not result.ends_plan and action.HasField("failure_event"):
            # An action that ends the plan says nothing about the object, and the next plan decides anew.
            event = action.failure_event
            self.emit(event.type, event.reason, f"{event.message}: {result.outcome.message}")
        return result

    async def _carry_out(self, action: v1.Action) -> ActionResult:
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
                return ActionResult.succeeded(action)
            case "create_object":
                return await self._create_object(action)
            case "patch_object":
                return await self._patch_object(action)
            case "delete_object":
                return await self._delete_object(action)
            case _:
                patch = patching.of(action)
                if patch is None:
                    return ActionResult.failed(action, ActuatorError("this executor does not know this kind of action"))
                return await self._patch(action, patch)

    def emit(self, event_type: str, reason: str, message: str) -> None:
        """Emits an Event about the workload. A failure is logged only: the action was done."""
        try:
            self.actuator.emit(WorkloadEvent(self.workload, event_type, reason, message))
        except Exception:
            _log.exception("an event %s about %s could not be emitted", reason, self.workload.name)

    async def _update_status(self, action: v1.Action) -> ActionResult:
        update = action.update_status
        try:
            written = await status.write(self.actuator, self.workload_key, self.served, self.read_workload, update)
        except ActuatorError as error:
            return ActionResult.failed(action, error)
        # The own-write record leaves out the write of a collision count (D-109).
        if update.HasField("collision_count"):
            return ActionResult.succeeded(action)
        return ActionResult.recorded(action, self.kind.resource, written)

    async def _create_revision(self, action: v1.Action) -> ActionResult:
        create = action.create_revision
        try:
            await self.actuator.create(Resource.REVISIONS, self.workload.namespace, create.manifest)
        except ActuatorError as error:
            result = ActionResult.failed(action, error)
            if error.refusal is Refusal.ALREADY_EXISTS:
                # The next plan needs the existing object. If this read fails, the next attempt collides again.
                result.colliding = await self._colliding(Resource.REVISIONS, create.name)
            return result
        return ActionResult.succeeded(action)

    async def _create_object(self, action: v1.Action) -> ActionResult:
        """Creates an object. A taken name and a terminating namespace end the plan (P-27, P-28): its other actions
        assume that the object exists.
        """
        create = action.create_object
        try:
            resource = self.resource_of(create.resource)
            written = await self.actuator.create(resource, self.workload.namespace, create.manifest)
        except ActuatorError as error:
            if error.refusal is Refusal.NAMESPACE_TERMINATING:
                result = ActionResult.refused(action, v1.RESULT_NAMESPACE_TERMINATING, error)
            elif error.refusal is Refusal.ALREADY_EXISTS:
                # The next plan needs the object that has the name.
                colliding = await self._colliding(resource, create.name)
                taken = v1.RESULT_FAILED if colliding is None else v1.RESULT_NAME_TAKEN
                result = ActionResult.refused(action, taken, error)
                result.colliding = colliding
            else:
                return ActionResult.failed(action, error)
            result.ends_plan = True
            return result
        return ActionResult.recorded(action, resource, written)

    async def _patch_object(self, action: v1.Action) -> ActionResult:
        """Patches an object once. A conflict is a failure: the plan after the next watch event decides anew."""
        try:
            resource = self.resource_of(action.patch_object.resource)
            patch = patching.of_object(resource, action.patch_object, self.failure)
        except ActuatorError as error:
            return ActionResult.failed(action, error)
        return await self._patch(action, patch)

    async def _delete_object(self, action: v1.Action) -> ActionResult:
        delete = action.delete_object
        try:
            resource = self.resource_of(delete.resource)
        except ActuatorError as error:
            return ActionResult.failed(action, error)
        version = delete.resource_version or None
        return await self._delete(action, resource, delete.object, with_uid=True, resource_version=version)

    async def _patch(self, action: v1.Action, patch: patching.PatchRequest) -> ActionResult:
        key = ObjectKey(patch.resource, self.workload.namespace, patch.object.name, patch.subresource)
        try:
            written = await self.actuator.patch(key, patch.type, patch.body)
        except ActuatorError as error:
            # The apiserver answers 422 for a sealed revision, too. That does not mean that the object is gone.
            seal = patching.seal_of(action, key, error)
            if seal is not None:
                _log.warning("%s", seal.message)
                self.emit("Warning", seal.reason, seal.message)
                result = ActionResult.refused(action, v1.RESULT_NOT_FOUND, error)
                result.sealed = key if seal.ends_plan else None
                return result
            if error.refusal in patch.gone:
                result = ActionResult.refused(action, v1.RESULT_NOT_FOUND, error)
                result.vanished = key if patching.is_adoption(action) else None
                return result
            return ActionResult.failed(action, error)
        if patch.is_recorded:
            return ActionResult.recorded(action, patch.resource, written)
        return ActionResult.succeeded(action)

    async def _delete_revision(self, action: v1.Action) -> ActionResult:
        result = await self._delete(action, Resource.REVISIONS, action.delete_revision.revision, with_uid=True)
        # If the revision is gone already, the cache is behind, which may change the plan. The plan fails, as upstream's
        # sync does (D-56, D-63).
        if result.outcome.result == v1.RESULT_NOT_FOUND:
            result.outcome.result = v1.RESULT_FAILED
        return result

    async def _delete_pod(self, action: v1.Action) -> ActionResult:
        delete = action.delete_pod
        result = await self._delete(action, Resource.PODS, delete.pod, with_uid=delete.uid_precondition)
        if result.outcome.result == v1.RESULT_SUCCEEDED:
            self.emit("Normal", "SuccessfulDelete", f"Deleted pod: {delete.pod.name}")
        elif result.outcome.result == v1.RESULT_FAILED:
            self.emit("Warning", "FailedDelete", f"Error deleting: {result.outcome.message}")
        return result

    async def _delete(
        self,
        action: v1.Action,
        resource: Resource,
        reference: v1.ObjectReference,
        *,
        with_uid: bool,
        resource_version: str | None = None,
    ) -> ActionResult:
        key, uid = self.key(resource, reference.name), reference.uid if with_uid else None
        try:
            if resource_version is None:
                await self.actuator.delete(key, uid)
            else:
                await self.actuator.delete(key, uid, resource_version)
        except Exception as raised:
            error = ActuatorError.of(raised)
            if error.refusal is Refusal.NOT_FOUND:
                return ActionResult.refused(action, v1.RESULT_NOT_FOUND, error)
            if error.refusal is Refusal.CONFLICT or error.is_unclear:
                match await self._state_after_delete(key, uid):
                    case _DeletedState.GONE:
                        return ActionResult.refused(action, v1.RESULT_NOT_FOUND, error)
                    case _DeletedState.DELETING:
                        # The pod is being deleted, so the delete happened. Reported as failed, the expectation would be
                        # dropped, and the next plan could take down another pod.
                        return ActionResult.succeeded(action)
            return ActionResult.failed(action, error)
        return ActionResult.succeeded(action)

    async def _state_after_delete(self, key: ObjectKey, uid: str | None) -> _DeletedState:
        """Reads what happened to an object of that name and uid."""
        try:
            metadata = parse_metadata(key, await self.actuator.read(key))
        except ActuatorError as error:
            return _DeletedState.GONE if error.refusal is Refusal.NOT_FOUND else _DeletedState.UNCHANGED
        if uid is not None and metadata.get("uid", uid) != uid:
            return _DeletedState.GONE
        return _DeletedState.DELETING if metadata.get("deletionTimestamp") else _DeletedState.UNCHANGED

    async def _create_pod(self, action: v1.Action) -> ActionResult:
        create = action.create_pod
        if isinstance(self._manifest, ManifestError):
            return ActionResult.failed(action, ActuatorError(str(self._manifest)))
        try:
            written = await self.actuator.create(Resource.PODS, self.workload.namespace, self._manifest.render(create))
        except ActuatorError as error:
            if error.refusal is Refusal.NAMESPACE_TERMINATING:
                return ActionResult.refused(action, v1.RESULT_NAMESPACE_TERMINATING, error)
            if error.refusal is Refusal.ALREADY_EXISTS and create.pod_name:
                is_ours = await self._is_ours(create, self._manifest)
                if is_ours:
                    return ActionResult.refused(action, v1.RESULT_ALREADY_EXISTS, error)
                if is_ours is not None:
                    _log.debug("the name %s of a new pod for node %s is taken", create.pod_name, create.node_name)
                    return ActionResult.refused(action, v1.RESULT_NAME_TAKEN, error)
            self.emit("Warning", "FailedCreate", f"Error creating: {error}")
            return ActionResult.failed(action, error)
        self.emit("Normal", "SuccessfulCreate", f"Created pod: {written.name}")
        return ActionResult.recorded(action, Resource.PODS, written)

    async def _is_ours(self, create: v1.CreatePod, manifest: PodManifest) -> bool | None:
        """Whether the existing pod of that name is the one that this create would have made. None if it cannot be read:
        it may be that pod, and a create with another name could make a second one.
        """
        key = self.key(Resource.PODS, create.pod_name)
        try:
            live = await self.actuator.read(key)
            return is_same_pod(live, self.workload, create.node_name, manifest.revision_hash)
        except (ActuatorError, ConversionError) as error:
            _log.warning("%s, which has the name of a new pod, cannot be read: %s", key, error)
            return None

    async def _colliding(self, resource: Resource, name: str) -> Colliding | None:
        """The live object that has the name of one to create; None if it cannot be read."""
        try:
            return Colliding(resource, await self.actuator.read(self.key(resource, name)))
        except ActuatorError:
            return None
