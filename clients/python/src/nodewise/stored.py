"""One cached node or pod in its encoded form, and the fields that objects share: single labels of nodes; all labels and
the controller of pods.
"""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from . import v1
from .label_keys import MAX_LABELS, KeySet, reduce_labels

_LABEL_KEY = b"\x1a"  # field 3 of Node, length-delimited


def bucket_of_name(name: str, bucket_count: int) -> int:
    """The bucket of a name: FNV-1a (64 bit) of the name, modulo the number of buckets."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value % bucket_count


@functools.lru_cache(maxsize=1 << 16)
def bucket_of(node_name: str, bucket_count: int) -> int:
    """The bucket of a node, and of pods on it or targeting it."""
    return bucket_of_name(node_name, bucket_count)


class OwnerId(NamedTuple):
    """The kind and uid of a controller."""

    kind: str
    uid: str


@dataclass(frozen=True, slots=True, eq=False)
class SharedPart:
    """An encoded SharedMetadata: fields that several pods have in common."""

    encoded: bytes
    owner: OwnerId | None
    """The controller in these fields."""

    def metadata(self) -> v1.SharedMetadata:
        """The decoded fields."""
        return v1.SharedMetadata.FromString(self.encoded)

    def sent(self, keys: KeySet) -> bytes:
        """The encoded fields, reduced to labels that are sent."""
        metadata = self.metadata()
        before = len(metadata.labels)
        reduce_labels(metadata, keys)
        return self.encoded if len(metadata.labels) == before else metadata.SerializeToString(deterministic=True)


class NodeLabel(NamedTuple):
    """A label of a node."""

    key: str
    value: str
    encoded: bytes
    """The label as a field of the encoded node."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeLabels:
    """All labels of a node, ordered by key."""

    labels: tuple[NodeLabel, ...]
    at: int
    """The byte offset of the labels in the node's encoded fields."""

    def sent(self, keys: KeySet) -> list[NodeLabel]:
        """The labels that are sent."""
        return [label for label in self.labels if label.key in keys.labels][:MAX_LABELS]


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """One object in the encoded form in which it is sent, with its resourceVersion and its bucket."""

    name: str
    own: bytes
    """The encoded fields that are not shared."""
    part: SharedPart | None
    version: str
    bucket: int
    """The bucket of a node, or of a pod that is sent in the bucket of its node."""
    labels: NodeLabels | None = None
    """The labels of a node. None for a pod."""
    target: str = ""
    """The node that a pod is on or targets. Empty for a node."""
    changed: int = 0
    """The number of a pod's last change in the caches."""

    @property
    def owner(self) -> OwnerId | None:
        """The object's controller."""
        return self.part.owner if self.part else None

    def is_sent_the_same(self, other: "Stored", keys: KeySet) -> bool:
        """Whether both objects are sent as the same bytes."""
        return self.sent(keys) == other.sent(keys) and (
            self.part is other.part or _shared(self, keys) == _shared(other, keys)
        )

    def sent(self, keys: KeySet) -> bytes:
        """The encoded fields that are sent, without the shared ones."""
        kept = self.labels
        if kept is None:
            return self.own
        labels = b"".join(label.encoded for label in kept.sent(keys))
        return self.own[: kept.at] + labels + self.own[kept.at :]

    def cut(self, keys: KeySet) -> int:
        """The number of labels that are not sent although a decision could read them, because there are too many."""
        labels: Sequence[NodeLabel] | Sequence[v1.Label] = ()
        if self.labels is not None:
            labels = self.labels.labels
        elif self.part is not None and len(self.part.encoded) // 4 > MAX_LABELS:  # a label is never shorter
            labels = self.part.metadata().labels
        return max(sum(label.key in keys.labels for label in labels) - MAX_LABELS, 0)

    def node(self) -> v1.Node:
        """The node with all of its labels."""
        labels = b"".join(label.encoded for label in self.labels.labels) if self.labels else b""
        return v1.Node.FromString(self.own + labels)

    def sent_node(self, keys: KeySet) -> v1.Node:
        """The node with the labels that are sent."""
        return v1.Node.FromString(self.sent(keys))

    def pod(self) -> v1.Pod:
        """The pod with all of its labels. The fields of a protobuf message may come in any order, so the two encoded
        parts can be concatenated.
        """
        return v1.Pod.FromString(self.own + (self.part.encoded if self.part else b""))


def _shared(stored: Stored, keys: KeySet) -> bytes:
    return stored.part.sent(keys) if stored.part else b""


class Labels:
    """The labels of all nodes. Each distinct label is stored once, as most nodes have most labels in common."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[NodeLabel, int]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def store_node(self, node: v1.Node, version: str, bucket_count: int) -> Stored:
        """Encodes a node for the cache."""
        own = v1.Node()
        own.CopyFrom(node)
        own.ClearField("labels")
        encoded = own.SerializeToString(deterministic=True)
        labels = NodeLabels(
            labels=tuple(self._intern(label) for label in node.labels),
            at=v1.Node(name=node.name, uid=node.uid).ByteSize(),
        )
        return Stored(node.name, encoded, None, version, bucket_of(node.name, bucket_count), labels)

    def _intern(self, label: v1.Label) -> NodeLabel:
        of = (label.key, label.value)
        kept, users = self._kept.get(of, (None, 0))
        if kept is None:
            encoded = label.SerializeToString(deterministic=True)
            kept = NodeLabel(*of, _LABEL_KEY + varint(len(encoded)) + encoded)
        self._kept[of] = (kept, users + 1)
        return kept

    def release(self, stored: Stored) -> None:
        """Releases the labels of a removed node."""
        for label in stored.labels.labels if stored.labels else ():
            of = (label.key, label.value)
            kept, users = self._kept[of]
            if users > 1:
                self._kept[of] = (kept, users - 1)
            else:
                del self._kept[of]


class SharedParts:
    """The shared parts of all pods. Each distinct part is stored once."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[SharedPart, int]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def store_pod(self, pod: v1.Pod, version: str, bucket_count: int, changed: int = 0) -> Stored:
        """Encodes a pod for the cache. The pods of one workload have mostly the same labels and controller."""
        has_controller = pod.HasField("controller")
        shared = v1.SharedMetadata(labels=pod.labels, controller=pod.controller if has_controller else None)
        own = v1.Pod()
        own.CopyFrom(pod)
        own.ClearField("labels")
        own.ClearField("controller")
        encoded = shared.SerializeToString(deterministic=True)
        part, users = self._kept.get(encoded, (None, 0))
        if part is None:
            owner = OwnerId(pod.controller.kind, pod.controller.uid) if has_controller else None
            part = SharedPart(encoded, owner)
        self._kept[encoded] = (part, users + 1)
        # All pods of a node share one string for its name.
        target = sys.intern(pod.node_name or pod.target_node_name)
        bucket = bucket_of(target, bucket_count)
        encoded = own.SerializeToString(deterministic=True)
        return Stored(pod.name, encoded, part, version, bucket, target=target, changed=changed)

    def release(self, stored: Stored) -> None:
        """Releases the shared part of a removed pod."""
        if stored.part is None:
            return
        part, users = self._kept[stored.part.encoded]
        if users > 1:
            self._kept[part.encoded] = (part, users - 1)
        else:
            del self._kept[part.encoded]


def varint(value: int) -> bytes:
    """Encodes a number as protobuf does."""
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
