"""Converts objects of the Kubernetes API to messages of the protocol.

Nodes and pods become projections of the few fields that a plan reads. Workloads and ControllerRevisions are sent as the
JSON that the apiserver served. Every function takes

* ``bytes`` or ``str``: JSON as it was served. Prefer this form: no field can get lost;
* a mapping such as ``dict``, or the body that kopf passes: parsed JSON. Unknown fields survive;
* an object of the ``kubernetes`` or ``kubernetes_asyncio`` client. Fields that are newer than that library are already
  lost. A plan for a DaemonSet with such a field would roll out a template without it.

"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from . import rawjson, times, v1
from .kinds import DAEMON_SET, REPLICA_SET
from .rawjson import Served
from .sanitize import one_line

KubernetesObject: TypeAlias = "bytes | str | Mapping[str, Any] | object"
"""An object of the Kubernetes API, in any form that this module accepts."""


class ConversionError(ValueError):
    """An object that does not have the shape that its API promises."""

    def __init__(self, path: str, message: str) -> None:
        # The message may be as long as the object.
        super().__init__(one_line(f"{path}: {message}"))
        self.path = path
        """The path in the object, for example `metadata.creationTimestamp`; `.` for the whole object."""
        self.message = message
        """What is wrong at that path."""


def node(obj: KubernetesObject) -> v1.Node:
    """Projects a v1 Node."""
    root = to_dict(obj)
    meta = _Meta(root)
    meta.require_name()
    spec = _mapping(root.get("spec"), "spec")
    taints = []
    for path, taint in _elements(spec.get("taints"), "spec.taints"):
        key = _required(taint, "key", path)
        taints.append(v1.Taint(key=key, value=_text(taint, "value", path), effect=_text(taint, "effect", path)))
    _, ready, transition = _status(root)
    return v1.Node(
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels,
        taints=taints,
        unschedulable=_flag(spec, "unschedulable", "spec"),
        ready=ready,
        ready_transition_time=transition,
        maintenance_in_progress=_is_in_maintenance(root),
    )


def pod(obj: KubernetesObject) -> v1.Pod:
    """Projects a v1 Pod."""
    root = to_dict(obj)
    meta = _Meta(root)
    meta.require_name()
    if not meta.uid:
        raise ConversionError("metadata.uid", "is missing")
    spec = _mapping(root.get("spec"), "spec")
    node_name = _text(spec, "nodeName", "spec")
    phase, ready, transition = _status(root)
    controller = meta.controller
    if controller is None or controller.kind == REPLICA_SET.name:
        rank = _deletion_rank(root, meta, spec)
    else:
        rank = _restarts_only(root) if controller.kind == DAEMON_SET.name else _NO_RANK
    return v1.Pod(
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels,
        controller=controller,
        node_name=node_name,
        target_node_name="" if node_name else _target_node_name(spec),
        phase=phase,
        ready=ready,
        ready_transition_time=transition,
        creation_time=meta.time("creationTimestamp"),
        deletion_time=meta.time("deletionTimestamp"),
        has_finalizers=bool(_list(meta.fields.get("finalizers"), "metadata.finalizers")),
        deletion_cost=rank.cost,
        restarts=rank.restarts,
        sidecar_restarts=rank.sidecar_restarts,
    )


def daemon_set(obj: KubernetesObject) -> v1.DaemonSet:
    """An apps/v1 DaemonSet as a snapshot contains it."""
    return v1.DaemonSet(object=served(obj, "DaemonSet"))


def controller_revision(obj: KubernetesObject, *, read_after_name_collision: bool = False) -> v1.ControllerRevision:
    """An apps/v1 ControllerRevision as a snapshot contains it."""
    return v1.ControllerRevision(
        object=served(obj, "ControllerRevision"), read_after_name_collision=read_after_name_collision
    )


def to_dict(obj: KubernetesObject) -> Mapping[str, Any]:
    """An object as a mapping of its JSON members."""
    if isinstance(obj, (bytes, str, memoryview)):
        obj = Served(obj.encode() if isinstance(obj, str) else bytes(obj))
    if isinstance(obj, Served):
        try:
            obj = _decode(obj.without_managed_fields)
        except (ValueError, RecursionError) as error:
            raise ConversionError(".", f"is no JSON object: {error}") from error
    elif hasattr(obj, "openapi_types"):
        obj = _serializer()(obj)
    if not isinstance(obj, Mapping):
        raise ConversionError(".", f"is no object but {type(obj).__name__}")
    return obj


def to_json(obj: KubernetesObject) -> bytes:
    """An object as JSON. Served JSON is returned unchanged. Anything else is written without changing a value."""
    if isinstance(obj, bytes):
        return obj
    if isinstance(obj, str):
        return obj.encode()
    plain = to_dict(obj)
    try:
        return _dumps(plain, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # The text has half of a surrogate pair, which only an escape can spell.
        return _dumps(plain, ensure_ascii=True).encode()


def served(obj: KubernetesObject, kind: str, api_version: str = "apps/v1") -> bytes:
    """An object as it is cached and sent: without `metadata.managedFields`, which nothing reads and which may be larger
    than the rest, and with the apiVersion and kind that lists leave out.

    Apart from that, served JSON keeps every byte, even the spelling of numbers.
    """
    return served_with_members(obj, kind, api_version)[0]


def served_with_members(
    obj: KubernetesObject, kind: str, api_version: str = "apps/v1"
) -> tuple[bytes, dict[str, bytes]]:
    """The result of `served`, and the members of the object."""
    served = obj if isinstance(obj, Served) else Served(to_json(obj))
    try:
        of = {"apiVersion": msgspec.json.encode(api_version), "kind": msgspec.json.encode(kind)}
        whole = {**of, **served.members}
        is_as_served = len(whole) == len(served.members) and not served.has_managed_fields
        return served.text if is_as_served else rawjson.write(whole), whole
    except ValueError as error:
        raise ConversionError(".", str(error)) from error


def items(served: bytes) -> list[bytes]:
    """The objects of a served list, each as served JSON."""
    try:
        return list(rawjson.read_list(served).items)
    except ValueError as error:
        raise ConversionError(".", str(error)) from error


def target_node(projection: v1.Pod) -> str:
    """The node that a pod is on or targets (D-24); empty for none."""
    return projection.node_name or projection.target_node_name


_PHASES = {
    "Pending": v1.POD_PHASE_PENDING,
    "Running": v1.POD_PHASE_RUNNING,
    "Succeeded": v1.POD_PHASE_SUCCEEDED,
    "Failed": v1.POD_PHASE_FAILED,
    "Unknown": v1.POD_PHASE_UNKNOWN,
}
_CONDITIONS = {"True": v1.CONDITION_STATUS_TRUE, "False": v1.CONDITION_STATUS_FALSE}


@functools.lru_cache(maxsize=1)
def _serializer() -> Callable[[object], Any]:
    from kubernetes.client import ApiClient

    serialize: Callable[[object], Any] = ApiClient().sanitize_for_serialization
    return serialize


def _decode(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        # Perhaps because of half of a surrogate pair, which json accepts.
        return json.loads(text)


def _dumps(obj: Mapping[str, Any], *, ensure_ascii: bool) -> str:
    return json.dumps(obj, ensure_ascii=ensure_ascii, separators=(",", ":"), allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not of JSON")


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConversionError(path, f"is no object but {type(value).__name__}")
    return value


def _list(value: Any, path: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConversionError(path, f"is no list but {type(value).__name__}")
    return value


def _elements(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list, each with its path."""
    for index, element in enumerate(_list(value, path)):
        at = f"{path}[{index}]"
        if not isinstance(element, Mapping):
            raise ConversionError(at, f"is no object but {type(element).__name__}")
        yield at, element


def _text(obj: Mapping[str, Any], field: str, path: str) -> str:
    value = obj.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConversionError(f"{path}.{field}", f"is no string but {type(value).__name__}")
    return value


def _required(obj: Mapping[str, Any], field: str, path: str) -> str:
    if obj.get(field) is None:
        raise ConversionError(path, f"{field} is missing")
    return _text(obj, field, path)


def _flag(obj: Mapping[str, Any], field: str, path: str) -> bool:
    value = obj.get(field)
    if value is not None and not isinstance(value, bool):
        raise ConversionError(f"{path}.{field}", f"is no boolean but {type(value).__name__}")
    return bool(value)


def _time(obj: Mapping[str, Any], field: str, path: str) -> Timestamp | None:
    text = _text(obj, field, path)
    if not text and obj.get(field) is None:
        return None
    try:
        return times.timestamp(text)
    except ValueError as error:
        raise ConversionError(f"{path}.{field}", str(error)) from error


class _Meta:
    """The fields of ObjectMeta that are read."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.fields = _mapping(root.get("metadata"), "metadata")
        self.name = _text(self.fields, "name", "metadata")
        self.uid = _text(self.fields, "uid", "metadata")

    def require_name(self) -> None:
        if not self.name:
            raise ConversionError("metadata.name", "is missing")

    @property
    def labels(self) -> list[v1.Label]:
        """The labels as the protocol has them, ordered by key."""
        labels = _mapping(self.fields.get("labels"), "metadata.labels")
        path = "metadata.labels"
        return [v1.Label(key=key, value=_required(labels, key, path)) for key in sorted(labels)]

    @property
    def controller(self) -> v1.ControllerReference | None:
        """The owner reference with `controller: true`."""
        for path, owner in _elements(self.fields.get("ownerReferences"), "metadata.ownerReferences"):
            if _flag(owner, "controller", path):
                return v1.ControllerReference(
                    kind=_text(owner, "kind", path), name=_text(owner, "name", path), uid=_text(owner, "uid", path)
                )
        return None

    def time(self, field: str) -> Timestamp | None:
        return _time(self.fields, field, "metadata")


def _status(
    root: Mapping[str, Any],
) -> tuple[v1.PodPhase.ValueType, v1.ConditionStatus.ValueType, Timestamp | None]:
    """The phase, and the status and transition time of the first Ready condition."""
    status = _mapping(root.get("status"), "status")
    phase = _PHASES.get(_text(status, "phase", "status"), v1.POD_PHASE_UNSPECIFIED)
    for path, condition in _elements(status.get("conditions"), "status.conditions"):
        if _required(condition, "type", path) == "Ready":
            ready = _CONDITIONS.get(_required(condition, "status", path), v1.CONDITION_STATUS_UNKNOWN)
            return phase, ready, _time(condition, "lastTransitionTime", path)
    return phase, v1.CONDITION_STATUS_UNSPECIFIED, None


def _is_in_maintenance(root: Mapping[str, Any]) -> bool:
    """Whether the first condition MaintenanceInProgress of a node is True."""
    status = _mapping(root.get("status"), "status")
    for path, condition in _elements(status.get("conditions"), "status.conditions"):
        if _required(condition, "type", path) == "MaintenanceInProgress":
            return _required(condition, "status", path) == "True"
    return False


_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_MAX_COST_LENGTH = 64
"""Longest deletion cost that is sent. No longer text is a cost, and anyone who may create pods chooses it."""


class _DeletionRank(NamedTuple):
    """What decides which pod of a ReplicaSet is deleted first. Of it, RolloutPolicies read the restarts."""

    cost: str = ""
    restarts: int = 0
    sidecar_restarts: int = 0


_NO_RANK = _DeletionRank()
"""For pods of other controllers, so that a restart of their containers changes nothing."""


def _deletion_rank(root: Mapping[str, Any], meta: "_Meta", spec: Mapping[str, Any]) -> _DeletionRank:
    annotations = _mapping(meta.fields.get("annotations"), "metadata.annotations")
    cost = annotations.get(_DELETION_COST)
    status = _mapping(root.get("status"), "status")
    sidecars = {
        _text(container, "name", path)
        for path, container in _elements(spec.get("initContainers"), "spec.initContainers")
        if container.get("restartPolicy") == "Always"
    }
    regular = _restarts(status, "containerStatuses")
    initial = _restarts(status, "initContainerStatuses")
    return _DeletionRank(
        cost if isinstance(cost, str) and len(cost) <= _MAX_COST_LENGTH else "",
        max((count for _, count in regular), default=0),
        max((count for name, count in initial if name in sidecars), default=0),
    )


def _restarts_only(root: Mapping[str, Any]) -> _DeletionRank:
    """What is read of a pod of a DaemonSet."""
    regular = _restarts(_mapping(root.get("status"), "status"), "containerStatuses")
    return _DeletionRank(restarts=max((count for _, count in regular), default=0))


def _restarts(status: Mapping[str, Any], field: str) -> Iterator[tuple[str, int]]:
    """The name and the number of restarts of each container."""
    for path, container in _elements(status.get(field), f"status.{field}"):
        count = container.get("restartCount")
        if isinstance(count, int) and 0 <= count < 1 << 32:
            yield _text(container, "name", path), int(count)


def _target_node_name(spec: Mapping[str, Any]) -> str:
    """The node that required node affinity names. The first matchFields entry with key `metadata.name` and operator
    `In` decides, over the terms in their order. With any other number of values than one there is no target (D-24).
    """
    at = "spec"
    selector = spec
    for field in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        at = f"{at}.{field}"
        selector = _mapping(selector.get(field), at)
    for path, term in _elements(selector.get("nodeSelectorTerms"), f"{at}.nodeSelectorTerms"):
        for below, requirement in _elements(term.get("matchFields"), f"{path}.matchFields"):
            key, operator = _required(requirement, "key", below), _required(requirement, "operator", below)
            if key == "metadata.name" and operator == "In":
                values = _list(requirement.get("values"), f"{below}.values")
                return values[0] if len(values) == 1 and isinstance(values[0], str) else ""
    return ""
