"""Projections kept in their encoded form, in the buckets in which they are sent.

A bucket on the wire is the concatenation of its members, and of what they share, so that a snapshot costs a copy, and a
digest is computed again only after its bucket changed: a snapshot of what did not change costs a look at each digest.
Of all labels that are kept those are sent that a decision can read, as a `KeySet` says.
"""

import functools
import hashlib
import sys
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from . import v1
from .reads import MAX_LABELS, KeySet, reduce_labels

Digest = bytes
"""A bucket's digest: SHA-256 of its bytes."""

_LIST_KEY = b"\x0a"  # field 1 of NodeBucket and of PodBucket, length-delimited
_LABEL_KEY = b"\x1a"  # field 3 of Node, length-delimited
_SHARED_METADATA_KEY = b"\x12"  # field 2 of PodBucket, length-delimited
_NUMBER_KEY = b"\x68"  # field 13 of Pod, the last one, a varint


@functools.lru_cache(maxsize=1 << 16)
def bucket_of(node_name: str, bucket_count: int) -> int:
    """The bucket of a node and of the pods that are on it or meant for it: FNV-1a (64 bit) modulo the count."""
    value = 0xCBF29CE484222325
    for byte in node_name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value % bucket_count


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Encoded fields that pods share: a SharedMetadata."""

    encoded: bytes
    owner: str | None
    """The uid of the controller that is among the fields."""

    def metadata(self) -> v1.SharedMetadata:
        """The fields."""
        return v1.SharedMetadata.FromString(self.encoded)

    def sent(self, keys: KeySet) -> bytes:
        """The encoded fields that are sent."""
        metadata = self.metadata()
        before = len(metadata.labels)
        reduce_labels(metadata, keys)
        return self.encoded if len(metadata.labels) == before else metadata.SerializeToString(deterministic=True)


class NodeLabel(NamedTuple):
    """A label of a node."""

    key: str
    value: str
    encoded: bytes
    """As it stands in its node."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeLabels:
    """All labels of a node, ordered by key."""

    labels: tuple[NodeLabel, ...]
    at: int
    """Where among the node's own fields labels belong."""

    def sent(self, keys: KeySet) -> list[NodeLabel]:
        """Those that are sent."""
        return [label for label in self.labels if label.key in keys.labels][:MAX_LABELS]


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """One object in the encoded form in which it is sent, its resourceVersion, and its place."""

    name: str
    own: bytes
    """The fields that it does not share."""
    part: Part | None
    version: str
    bucket: int
    labels: NodeLabels | None = None
    """Of a node."""
    target: str = ""
    """Of a pod the name of the node that it is on or meant for."""
    changed: int = 0
    """Of a pod the number of its last change in the caches."""

    @property
    def owner(self) -> str | None:
        """The uid of its controller."""
        return self.part.owner if self.part else None

    def is_sent_alike(self, other: "Stored", keys: KeySet) -> bool:
        """Whether the same is sent for both."""
        return self.sent(keys) == other.sent(keys) and (
            self.part is other.part or _shared(self, keys) == _shared(other, keys)
        )

    def sent(self, keys: KeySet) -> bytes:
        """The fields that are sent, without what it shares."""
        kept = self.labels
        if kept is None:
            return self.own
        labels = b"".join(label.encoded for label in kept.sent(keys))
        return self.own[: kept.at] + labels + self.own[kept.at :]

    def cut(self, keys: KeySet) -> int:
        """How many labels cannot be sent although a decision could read them, since there are too many."""
        labels: Sequence[NodeLabel] | Sequence[v1.Label] = ()
        if self.labels is not None:
            labels = self.labels.labels
        elif self.part is not None and len(self.part.encoded) // 4 > MAX_LABELS:  # a label is never shorter
            labels = self.part.metadata().labels
        return max(sum(label.key in keys.labels for label in labels) - MAX_LABELS, 0)

    def node(self) -> v1.Node:
        """The projection of a node, with all of its labels."""
        labels = b"".join(label.encoded for label in self.labels.labels) if self.labels else b""
        return v1.Node.FromString(self.own + labels)

    def sent_node(self, keys: KeySet) -> v1.Node:
        """What is sent of a node."""
        return v1.Node.FromString(self.sent(keys))

    def pod(self) -> v1.Pod:
        """The projection of a pod, with all of its labels. Fields of a message may come in any order: its own, followed
        by the part, are all of it.
        """
        return v1.Pod.FromString(self.own + (self.part.encoded if self.part else b""))


def _shared(stored: Stored, keys: KeySet) -> bytes:
    return stored.part.sent(keys) if stored.part else b""


class Labels:
    """The labels of nodes, each kept once for as long as a node has it: most nodes have most in common with others."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[NodeLabel, int]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def store_node(self, node: v1.Node, version: str, bucket_count: int) -> Stored:
        """A node in the form in which it is kept."""
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
            kept = NodeLabel(*of, _LABEL_KEY + _varint(len(encoded)) + encoded)
        self._kept[of] = (kept, users + 1)
        return kept

    def release(self, stored: Stored) -> None:
        """A node is gone, and with it the labels that no other node has."""
        for label in stored.labels.labels if stored.labels else ():
            of = (label.key, label.value)
            kept, users = self._kept[of]
            if users > 1:
                self._kept[of] = (kept, users - 1)
            else:
                del self._kept[of]


class _Bucket:
    """The members of one bucket, ordered by name."""

    __slots__ = ("beside", "digest", "members", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.members: dict[str, Stored] = {}
        self.digest: Digest | None = None
        """Absent after a change."""
        self.beside: Digest | None = None
        """The digest of what was sent after it in the same bucket; absent when that was nothing."""

    def put(self, stored: Stored, keys: KeySet) -> Stored | None:
        old = self.members.get(stored.name)
        self.members[stored.name] = stored
        if old is None:
            insort(self.names, stored.name)
        if old is None or not old.is_sent_alike(stored, keys):
            self.digest = None
        return old

    def remove(self, name: str) -> Stored | None:
        old = self.members.pop(name, None)
        if old is not None:
            del self.names[bisect_left(self.names, name)]
            self.digest = None
        return old

    def __iter__(self) -> Iterator[Stored]:
        return (self.members[name] for name in self.names)


class Buckets:
    """Objects of one kind, by bucket and name."""

    def __init__(self, count: int) -> None:
        self._buckets: list[_Bucket | None] = [None] * count
        self._length = 0
        self._keys = KeySet()
        """The labels that are sent: the digests that are remembered hold for these."""

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Stored]:
        for bucket in self._buckets:
            if bucket is not None:
                yield from bucket

    def get(self, bucket: int, name: str) -> Stored | None:
        """The object of that name."""
        occupied = self._buckets[bucket]
        return occupied.members.get(name) if occupied else None

    def members(self, bucket: int) -> Iterable[Stored]:
        """The objects of one bucket."""
        occupied = self._buckets[bucket]
        return occupied.members.values() if occupied else ()

    def put(self, stored: Stored) -> Stored | None:
        """Keeps an object; answers with the one of that name that was in its bucket before."""
        bucket = self._buckets[stored.bucket]
        if bucket is None:
            bucket = self._buckets[stored.bucket] = _Bucket()
        old = bucket.put(stored, self._keys)
        self._length += old is None
        return old

    def remove(self, bucket: int, name: str) -> Stored | None:
        """Takes an object out."""
        occupied = self._buckets[bucket]
        old = occupied.remove(name) if occupied else None
        self._length -= old is not None
        return old

    def _send(self, keys: KeySet) -> None:
        """Sends these labels from now on."""
        if keys is not self._keys:
            self._keys = keys
            for bucket in self._buckets:
                if bucket is not None:
                    bucket.digest = None

    def _occupied(self, index: int) -> _Bucket | None:
        bucket = self._buckets[index]
        return bucket if bucket and bucket.members else None


_EMPTY = hashlib.sha256().digest()


def render(
    first: Buckets | None, second: Buckets | None, keys: KeySet, count: int, known: Callable[[Digest], bool]
) -> list[v1.Bucket]:
    """The buckets of a set, each followed by that of another set: inline, or by digest alone when `known` says that the
    receiver has it. What did not change is not hashed again, and put together only for a receiver that lacks it.
    """
    for buckets in (first, second):
        if buckets is not None:
            buckets._send(keys)
    rendered = []
    for index in range(count):
        bucket = first._occupied(index) if first else None
        beside = second._occupied(index) if second else None
        if bucket is None:
            bucket, beside = beside, None
        if bucket is None:
            rendered.append(_sent(_EMPTY, b"", known))
        else:
            rendered.append(_render(bucket, beside, keys, known))
    return rendered


def _render(bucket: _Bucket, beside: _Bucket | None, keys: KeySet, known: Callable[[Digest], bool]) -> v1.Bucket:
    digest_beside = None if beside is None else _digest_alone(beside, keys)
    remembered = bucket.digest if bucket.beside == digest_beside else None
    if remembered is not None and known(remembered):
        return v1.Bucket(digest=remembered)
    data = _write([*bucket, *(beside or ())], keys)
    digest = remembered or hashlib.sha256(data).digest()
    bucket.digest, bucket.beside = digest, digest_beside
    return _sent(digest, data, known)


def _digest_alone(bucket: _Bucket, keys: KeySet) -> Digest:
    """The digest of a bucket that is sent after others: by it they tell whether it is the one that they know."""
    if bucket.digest is None or bucket.beside is not None:
        bucket.digest, bucket.beside = hashlib.sha256(_write([*bucket], keys)).digest(), None
    return bucket.digest


def _sent(digest: Digest, data: bytes, known: Callable[[Digest], bool]) -> v1.Bucket:
    return v1.Bucket(digest=digest) if known(digest) else v1.Bucket(digest=digest, data=data)


def _write(members: Sequence[Stored], keys: KeySet) -> bytes:
    """The canonical bytes of a bucket with these members: the same in every language."""
    numbers: dict[bytes, int] = {}
    sent: dict[Part, bytes] = {}
    written = []
    for member in members:
        part = b""
        if member.part is not None:
            part = sent.get(member.part) or sent.setdefault(member.part, member.part.sent(keys))
        # In the order of first use, and by content, so that a bucket has the same bytes however its members came to be.
        number = numbers.setdefault(part, len(numbers) + 1) if part else 0
        own = member.sent(keys)
        own = own + _NUMBER_KEY + _varint(number) if number else own
        written.append(_LIST_KEY + _varint(len(own)) + own)
    written.extend(_SHARED_METADATA_KEY + _varint(len(part)) + part for part in numbers)
    return b"".join(written)


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class Parts:
    """The parts that pods share, each kept once for as long as a pod has it."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[Part, int]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def store_pod(self, pod: v1.Pod, version: str, bucket_count: int, changed: int = 0) -> Stored:
        """A pod in the form in which it is kept. The labels and controller of a workload's pods are much the same."""
        has_controller = pod.HasField("controller")
        shared = v1.SharedMetadata(labels=pod.labels, controller=pod.controller if has_controller else None)
        own = v1.Pod()
        own.CopyFrom(pod)
        own.ClearField("labels")
        own.ClearField("controller")
        encoded = shared.SerializeToString(deterministic=True)
        part, users = self._kept.get(encoded, (None, 0))
        if part is None:
            part = Part(encoded, pod.controller.uid if has_controller else None)
        self._kept[encoded] = (part, users + 1)
        # The pods of a node share its name.
        target = sys.intern(pod.node_name or pod.target_node_name)
        bucket = bucket_of(target, bucket_count)
        encoded = own.SerializeToString(deterministic=True)
        return Stored(pod.name, encoded, part, version, bucket, target=target, changed=changed)

    def release(self, stored: Stored) -> None:
        """A pod is gone, and with it its part if it was the last one to have it."""
        if stored.part is None:
            return
        part, users = self._kept[stored.part.encoded]
        if users > 1:
            self._kept[part.encoded] = (part, users - 1)
        else:
            del self._kept[part.encoded]


def node_buckets(nodes: Iterable[v1.Node], count: int = 1) -> list[v1.Bucket]:
    """The buckets of a snapshot with these nodes, all inline, with all of their labels: for whoever keeps no caches.
    `reduce_labels` leaves out what no decision reads.
    """
    buckets, labels, every = Buckets(count), Labels(), list(nodes)
    for node in every:
        buckets.put(labels.store_node(node, "", count))
    return render(buckets, None, _whole(every), count, lambda _: False)


def pod_buckets(pods: Iterable[v1.Pod], count: int = 1) -> list[v1.Bucket]:
    """The buckets of a snapshot with these pods, all inline, with all of their labels: the workload's own, then those
    without a controller. `reduce_labels` leaves out what no decision reads.
    """
    owned, orphans, parts, every = Buckets(count), Buckets(count), Parts(), list(pods)
    for pod in every:
        (owned if pod.HasField("controller") else orphans).put(parts.store_pod(pod, "", count))
    return render(owned, orphans, _whole(every), count, lambda _: False)


def _whole(objects: Iterable[v1.Node | v1.Pod]) -> KeySet:
    return KeySet(frozenset(label.key for obj in objects for label in obj.labels))
