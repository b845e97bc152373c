"""Carries out one action, and decides what each refusal of its call means."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .. import tracing, v1
from ..actuator import Actuator, ActuatorError, Refusal, WorkloadEvent
from ..convert import ConversionError
from ..kinds import DAEMON_SET, OBJECT_KINDS, TRACEPARENT_ANNOTATION, Kind, ObjectKey, Resource
from ..manifest import ManifestError, PodManifest, is_same_pod
from . import patching, removing, status
from .reading import metadata_of, parse
from .result import ActionResult, Colliding

_log = tracing.logger(__name__)


class Context:
    """The state that the actions of one plan share."""

    def __init__(
        self,
        actuator: Actuator,
        plan: v1.Plan,
        served: bytes,
        left_out: Mapping[int, str] = MappingProxyType({}),
        *,
        kind: Kind = DAEMON_SET,
        start: Callable[[v1.Measure], None] = lambda _: None,
    ) -> None:
        self.actuator = actuator
        self._start = start
        """Starts a measurement."""
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
        """The resource that an action on an object names: the workload's, that of what it controls, or that of
        RolloutPolicies. Raises `ActuatorError` for any other one.
        """
        controls = [] if self.kind.controls is None else [self.kind.controls.resource]
        # Which plans may write a policy is checked before.
        for resource in (self.kind.resource, *controls, Resource.POLICIES):
            if (name.group, name.version, name.resource) == resource.identity:
                return resource
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
            policy = self._patched_policy(action)
            for event in action.success_events:
                self.emit(event.type, event.reason, event.message)
                if policy is not None:
                    self.emit(event.type, event.reason, event.message, policy)
        elif result.outcome.result == v1.RESULT_FAILED and not result.ends_plan and action.HasField("failure_event"):
            # An action that ends the plan says nothing about the object, and the next plan decides anew.
            event = action.failure_event
            self.emit(event.type, event.reason, f"{event.message}: {result.outcome.message}")
        return result

    def _patched_policy(self, action: v1.Action) -> v1.WorkloadReference | None:
        """The RolloutPolicy that an action patches."""
        if not action.HasField("patch_object"):
            return None
        patched = action.patch_object.object
        if self.resource_of(action.patch_object.resource) is not Resource.POLICIES:
            return None
        kind, namespace = OBJECT_KINDS[Resource.POLICIES], self.workload.namespace
        return v1.WorkloadReference(kind=kind, namespace=namespace, name=patched.name, uid=patched.uid)

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
            case "evict_pod":
                return await self._evict_pod(action)
            case "measure":
                # An observer starts nothing.
                if self.actuator.writes:
                    self._start(action.measure)
                return ActionResult.succeeded(action)
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

    def emit(self, event_type: str, reason: str, message: str, about: v1.WorkloadReference | None = None) -> None:
        """Emits an Event about the workload, or about another object. A failure is logged only: the action was done."""
        about = self.workload if about is None else about
        try:
            self.actuator.emit(WorkloadEvent(about, event_type, reason, message))
        except Exception:
            _log.exception("an event %s about %s could not be emitted", reason, about.name)

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
        key, version = self.key(resource, delete.object.name), delete.resource_version or None
        return await removing.delete(self.actuator, action, key, delete.object.uid, version)

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
        revision = action.delete_revision.revision
        key = self.key(Resource.REVISIONS, revision.name)
        result = await removing.delete(self.actuator, action, key, revision.uid)
        # If the revision is gone already, the cache is behind, which may change the plan. The plan fails, as upstream's
        # sync does (D-56, D-63).
        if result.outcome.result == v1.RESULT_NOT_FOUND:
            result.outcome.result = v1.RESULT_FAILED
        return result

    async def _delete_pod(self, action: v1.Action) -> ActionResult:
        pod, with_uid = action.delete_pod.pod, action.delete_pod.uid_precondition
        key = self.key(Resource.PODS, pod.name)
        result = await removing.delete(self.actuator, action, key, pod.uid if with_uid else None)
        self._tell(result, f"Deleted pod: {pod.name}", "Error deleting")
        return result

    async def _evict_pod(self, action: v1.Action) -> ActionResult:
        pod = action.evict_pod.pod
        result = await removing.evict(self.actuator, action, self.key(Resource.PODS, pod.name), pod.uid)
        self._tell(result, f"Evicted pod: {pod.name}", "Error evicting")
        return result

    def _tell(self, result: ActionResult, done: str, failed: str) -> None:
        """Emits the Event about a pod that was deleted, or that could not be deleted."""
        if result.outcome.result == v1.RESULT_SUCCEEDED:
            self.emit("Normal", "SuccessfulDelete", done)
        elif result.outcome.result == v1.RESULT_FAILED:
            self.emit("Warning", "FailedDelete", f"{failed}: {result.outcome.message}")

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
