"""Objects as the executor caches them.

Nodes and pods, of which there are thousands, are kept as projections. Workloads and revisions are kept as served JSON,
together with the fields that the executor reads itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from . import convert, tracing, v1
from .convert import ConversionError
from .kinds import HASH_LABEL, KINDS, TRACEPARENT_ANNOTATION, Key, Kind, ObjectKey, Resource
from .label_keys import NO_KEYS, LabelKeys
from .selector import Selector

_log = tracing.logger(__name__)

MAX_LABELS_KEPT = 64
"""Revisions with at most this many labels keep all of them. A template has fewer. Anyone who may create revisions may
give them a megabyte of labels.
"""
_MAX_NAME = 253
"""Longest name of an object."""


class Owner(NamedTuple):
    """The owner reference with `controller: true`."""

    kind: str
    name: str
    uid: str


def owner_of(controller: v1.ControllerReference) -> Owner:
    """Converts a controller reference."""
    return Owner(controller.kind, controller.name, controller.uid)


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload of any kind: what every kind has, and counts that only some kinds have."""

    key: Key
    uid: str
    resource_version: str
    selector: Selector
    min_ready_seconds: int
    object: bytes = field(repr=False)
    generation: int = 0
    traceparent: str = ""
    """The W3C traceparent of the span that created it; empty if there is none."""
    label_keys: LabelKeys = NO_KEYS
    """The label keys that the decisions about it read."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the workload itself, for the selection of owned workloads, and for its adoption."""
    controller: Owner | None = None
    created: tuple[int, int] = (0, 0)
    """metadata.creationTimestamp, in seconds and nanoseconds."""
    deleting: bool = False
    replicas: int = 1
    """spec.replicas, or its default. It means nothing for a DaemonSet."""
    recreates: bool = False
    """All old pods stop before new ones start: the strategy Recreate of a Deployment."""

    @classmethod
    def read(cls, kind: Kind, served: convert.KubernetesObject) -> "Workload":
        """Reads a workload. If its spec cannot be read, it is cached, and only its own events queue it: the service
        rejects it with a reason. Without it in the cache it would look deleted.
        """
        text, members = convert.served_with_members(served, kind.name)
        metadata = metadata_of(members)
        meta = identity_of(metadata)
        full = convert._Meta({"metadata": metadata})
        controller, created = full.controller, full.time("creationTimestamp")
        key = Key(meta.namespace, meta.name, kind.name)
        spec: Any = None
        try:
            spec = msgspec.json.decode(members.get("spec", b"null"))
        except (msgspec.MsgspecError, RecursionError) as error:
            _log.warning("the spec of %s %s cannot be read: %s", kind.name, key.path, error)
        spec = spec if isinstance(spec, dict) else {}
        generation, replicas = metadata.get("generation"), spec.get("replicas")
        seconds, strategy = spec.get("minReadySeconds"), spec.get("strategy")
        selector = Selector.parse(spec.get("selector"))
        return cls(
            key=key,
            uid=meta.uid,
            resource_version=meta.resource_version,
            selector=selector,
            min_ready_seconds=max(seconds, 0) if isinstance(seconds, int) else 0,
            object=text,
            generation=generation if isinstance(generation, int) else 0,
            traceparent=_traceparent(metadata),
            label_keys=_label_keys(kind, spec.get("template"), selector),
            labels=_labels(metadata),
            controller=None if controller is None else owner_of(controller),
            created=(0, 0) if created is None else (created.seconds, created.nanos),
            deleting=full.time("deletionTimestamp") is not None,
            replicas=replicas if isinstance(replicas, int) else 1,
            recreates=isinstance(strategy, dict) and strategy.get("type") == "Recreate",
        )

    @property
    def kind(self) -> Kind:
        """The kind of the workload."""
        return KINDS[self.key.kind]

    @property
    def namespace(self) -> str:
        """The namespace of the workload."""
        return self.key.namespace

    @property
    def name(self) -> str:
        """The name of the workload."""
        return self.key.name

    @property
    def owner(self) -> Owner:
        """The controller of the objects that this workload controls."""
        return Owner(self.key.kind, self.key.name, self.uid)

    @property
    def reference(self) -> v1.WorkloadReference:
        """The reference to this version of the workload, for Events."""
        return v1.WorkloadReference(
            kind=self.key.kind,
            namespace=self.key.namespace,
            name=self.key.name,
            uid=self.uid,
            resource_version=self.resource_version,
        )


def _label_keys(kind: Kind, template: Any, selector: Selector) -> LabelKeys:
    """The label keys that the decisions about a workload of this kind read."""
    if kind.pods is None:
        return NO_KEYS
    if kind.pods.counts_template_labels:
        return LabelKeys.of_pods(template, selector.keys())
    return LabelKeys.of(template, selector.keys())


@dataclass(frozen=True, slots=True)
class Revision:
    """An apps/v1 ControllerRevision."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    controller: Owner | None
    deleting: bool
    object: bytes | None = field(repr=False)
    """The served JSON. None if it is not cached; it has to be read live then."""
    size: int
    """The size of the object in bytes, also if it is not cached."""
    number: int = 0
    """The revision number, higher for newer ones; 0 if it cannot be read."""
    known_labels: frozenset[str] | None = None
    """The label keys that are cached if the revision has too many labels; None if all are."""
    changed: int = field(default=0, compare=False)
    """The number of its last change in the caches."""

    @classmethod
    def read(cls, served: convert.KubernetesObject) -> "Revision":
        """Reads a revision. Its data is not parsed, as Python may be unable to represent it."""
        text, members = convert.served_with_members(served, "ControllerRevision")
        metadata = metadata_of(members)
        meta = identity_of(metadata)
        full = convert._Meta({"metadata": metadata})
        controller = full.controller
        return cls(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
            labels=_labels(metadata),
            controller=None if controller is None else owner_of(controller),
            deleting=full.time("deletionTimestamp") is not None,
            object=text,
            size=len(text),
            number=_number(members.get("revision", b"0")),
        )

    @property
    def hash(self) -> str:
        """The hash label; empty if there is none."""
        return self.labels.get(HASH_LABEL, "")

    @property
    def kept_bytes(self) -> int:
        """The size of the cached JSON, in bytes."""
        return len(self.object or b"")

    def with_labels_of(self, keys: frozenset[str]) -> "Revision":
        """A copy with all labels, or with only these keys if there are too many labels."""
        if len(self.labels) <= MAX_LABELS_KEPT:
            return self
        labels = {key: self.labels[key] for key in keys if key in self.labels}
        return replace(self, labels=labels, known_labels=keys)

    def without_object(self) -> "Revision":
        """A copy without the JSON. Names in an owner reference may have any length; they are cut to more than the
        length of a valid name.
        """
        owner = None if self.controller is None else Owner(*(text[: _MAX_NAME + 1] for text in self.controller))
        return replace(self, object=None, controller=owner)

    def is_known_to(self, selector: Selector) -> bool:
        """Whether all labels that a selector reads are cached."""
        return self.known_labels is None or self.known_labels.issuperset(selector.keys())


def _number(text: bytes) -> int:
    """The revision number. It only ranks revisions, so an invalid one must not hide the object."""
    try:
        return msgspec.json.decode(text, type=int)
    except msgspec.MsgspecError:
        return 0


@dataclass(frozen=True, slots=True)
class Pod:
    """A v1 Pod."""

    namespace: str
    resource_version: str
    projection: v1.Pod
    traceparent: str = ""
    """The W3C traceparent of the span that created it; empty if there is none."""

    @classmethod
    def read(cls, served: convert.KubernetesObject) -> "Pod":
        """Reads one."""
        obj = convert.to_dict(served)
        projection = convert.pod(obj)
        meta = identity_of(obj["metadata"])
        return cls(meta.namespace, meta.resource_version, projection, _traceparent(obj["metadata"]))

    @property
    def object_key(self) -> ObjectKey:
        """The key of the pod."""
        return ObjectKey(Resource.PODS, self.namespace, self.projection.name)


@dataclass(frozen=True, slots=True)
class Node:
    """A v1 Node."""

    resource_version: str
    projection: v1.Node

    @classmethod
    def read(cls, served: convert.KubernetesObject) -> "Node":
        """Reads one."""
        obj = convert.to_dict(served)
        projection = convert.node(obj)
        return cls(identity_of(obj["metadata"]).resource_version, projection)


class Identity(NamedTuple):
    """What every object has in its metadata."""

    namespace: str
    name: str
    uid: str
    resource_version: str


def identity_of(metadata: Mapping[str, Any]) -> Identity:
    """Reads the identity of an object. It must have a name."""
    fields = (convert._text(metadata, field, "metadata") for field in ("namespace", "name", "uid", "resourceVersion"))
    identity = Identity(*fields)
    if not identity.name:
        raise ConversionError("metadata.name", "is missing")
    return identity


def _traceparent(metadata: Mapping[str, Any]) -> str:
    """The annotation is optional: an invalid value is ignored."""
    annotations = metadata.get("annotations")
    found = annotations.get(TRACEPARENT_ANNOTATION) if isinstance(annotations, Mapping) else None
    return found if isinstance(found, str) else ""


def _labels(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {label.key: label.value for label in convert._Meta({"metadata": metadata}).labels}


def metadata_of(members: Mapping[str, bytes]) -> Mapping[str, Any]:
    """The metadata among the members of a served object."""
    try:
        metadata = convert._decode(members.get("metadata", b"null"))
    except (ValueError, RecursionError) as error:
        raise ConversionError("metadata", str(error)) from error
    return convert._mapping(metadata, "metadata")
