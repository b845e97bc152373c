"""The objects as an executor keeps them.

Nodes and pods, of which there are thousands, are kept as projections. DaemonSets and revisions, of which there are few,
are kept as the JSON that was served, besides the fields that the executor reads itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from . import convert, tracing, v1
from .convert import ConversionError
from .kinds import HASH_LABEL, TRACEPARENT_ANNOTATION, Key, ObjectKey, Resource
from .reads import NOTHING, Reads
from .selector import Selector

_log = tracing.logger(__name__)

MAX_LABELS_KEPT = 64
"""Labels of a revision that are kept whatever they are. A template has fewer; whoever may create revisions may give
them a megabyte.
"""
_MAX_NAME = 253
"""Longest name of an object."""


class Owner(NamedTuple):
    """The owner reference with `controller: true`."""

    kind: str
    name: str
    uid: str


def owner_of(controller: v1.ControllerReference) -> Owner:
    """A controller reference as a value."""
    return Owner(controller.kind, controller.name, controller.uid)


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """An apps/v1 DaemonSet."""

    key: Key
    uid: str
    resource_version: str
    selector: Selector
    min_ready_seconds: int
    object: bytes = field(repr=False)
    generation: int = 0
    traceparent: str = ""
    """Of the span that it came from, if it says so."""
    reads: Reads = NOTHING
    """What the decisions about it read of nodes and pods."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its own, by which it may be selected."""

    @classmethod
    def read(cls, served: convert.KubernetesObject) -> "DaemonSet":
        """Reads one. One whose spec cannot be read is kept as it is, and nothing wakes it but itself: the service
        refuses it and says why. Left out, it would look deleted.
        """
        text, members = convert.served_with_members(served, "DaemonSet")
        metadata = _metadata(members)
        meta = _Identity.of(metadata)
        key = Key(meta.namespace, meta.name)
        spec: Any = None
        try:
            spec = msgspec.json.decode(members.get("spec", b"null"))
        except (msgspec.MsgspecError, RecursionError) as error:
            _log.warning("the spec of DaemonSet %s cannot be read: %s", key, error)
        spec = spec if isinstance(spec, dict) else {}
        seconds, generation = spec.get("minReadySeconds"), metadata.get("generation")
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
            reads=Reads.of(spec.get("template"), selector.keys()),
            labels=_labels(metadata),
        )


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
    """As it was served; None where that is not kept, so that it has to be read live."""
    size: int
    """Bytes of the object, also where it is not kept."""
    number: int = 0
    """The higher the newer it is; 0 where it has none that can be read."""
    known_labels: frozenset[str] | None = None
    """The keys of which the labels are kept where it has very many; None where all of them are."""
    changed: int = field(default=0, compare=False)
    """The number of its last change in the caches."""

    @classmethod
    def read(cls, served: convert.KubernetesObject) -> "Revision":
        """Reads one. Its data may be what no value of Python can hold: it is not looked into."""
        text, members = convert.served_with_members(served, "ControllerRevision")
        metadata = _metadata(members)
        meta = _Identity.of(metadata)
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
        """Its hash label; empty where it has none."""
        return self.labels.get(HASH_LABEL, "")

    @property
    def kept_bytes(self) -> int:
        """Bytes of the object, if that is kept."""
        return len(self.object or b"")

    def with_labels_of(self, keys: frozenset[str]) -> "Revision":
        """With all labels, or of very many those with these keys."""
        if len(self.labels) <= MAX_LABELS_KEPT:
            return self
        labels = {key: self.labels[key] for key in keys if key in self.labels}
        return replace(self, labels=labels, known_labels=keys)

    def without_object(self) -> "Revision":
        """What is said besides the object. Names in an owner reference may have any length; one that is cut here is
        longer than those of objects.
        """
        owner = None if self.controller is None else Owner(*(text[: _MAX_NAME + 1] for text in self.controller))
        return replace(self, object=None, controller=owner)

    def is_known_to(self, selector: Selector) -> bool:
        """Whether the labels are kept that a selector looks at."""
        return self.known_labels is None or self.known_labels.issuperset(selector.keys())


def _number(text: bytes) -> int:
    """The number of a revision. It only ranks revisions, so one that cannot be read must not hide the object."""
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
    """Of the span that it came from, if it says so."""

    @classmethod
    def read(cls, served: convert.KubernetesObject) -> "Pod":
        """Reads one."""
        obj = convert.to_dict(served)
        projection = convert.pod(obj)
        meta = _Identity.of(obj["metadata"])
        return cls(meta.namespace, meta.resource_version, projection, _traceparent(obj["metadata"]))

    @property
    def object_key(self) -> ObjectKey:
        """Which pod."""
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
        return cls(_Identity.of(obj["metadata"]).resource_version, projection)


class _Identity(NamedTuple):
    namespace: str
    name: str
    uid: str
    resource_version: str

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> "_Identity":
        fields = (
            convert._text(metadata, field, "metadata") for field in ("namespace", "name", "uid", "resourceVersion")
        )
        identity = cls(*fields)
        if not identity.name:
            raise ConversionError("metadata.name", "is missing")
        return identity


def _traceparent(metadata: Mapping[str, Any]) -> str:
    """Nothing rests on it: one that cannot be read is none."""
    annotations = metadata.get("annotations")
    found = annotations.get(TRACEPARENT_ANNOTATION) if isinstance(annotations, Mapping) else None
    return found if isinstance(found, str) else ""


def _labels(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {label.key: label.value for label in convert._Meta({"metadata": metadata}).labels}


def _metadata(members: Mapping[str, bytes]) -> Mapping[str, Any]:
    try:
        metadata = convert._decode(members.get("metadata", b"null"))
    except (ValueError, RecursionError) as error:
        raise ConversionError("metadata", str(error)) from error
    return convert._mapping(metadata, "metadata")
