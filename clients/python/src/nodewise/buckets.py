"""Cached objects in the buckets in which they are sent.

Nodes, and the pods of workloads with a pod for each node, are in the bucket of the node. The pods of other workloads
are in the bucket of their own name. There are many such workloads with few pods each, so the number of their buckets
depends on the number of their pods.

A bucket on the wire is the concatenation of its encoded members, followed by what they share. Taking a snapshot copies
bytes. A bucket's digest is computed again only after the bucket changed. A `KeySet` says which labels are sent.
"""

import hashlib
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from . import v1
from .label_keys import KeySet
from .shared_labels import Written, write_sharing
from .stored import Labels, OwnerId, SharedPart, SharedParts, Stored, bucket_of, bucket_of_name, varint

__all__ = [
    "Buckets",
    "Digest",
    "Labels",
    "OwnerId",
    "SharedPart",
    "SharedParts",
    "Stored",
    "bucket_of",
    "node_buckets",
    "pod_buckets",
    "render",
]

Digest = bytes
"""A bucket's digest: SHA-256 of its bytes."""

_LIST_KEY = b"\x0a"  # field 1 of NodeBucket and of PodBucket, length-delimited
_SHARED_METADATA_KEY = b"\x12"  # field 2 of PodBucket, length-delimited
_NUMBER_KEY = b"\x68"  # field 13 of Pod, its last field, a varint


class _Cached(NamedTuple):
    """The digest of a bucket."""

    digest: Digest
    beside: Digest | None
    """The digest of the second bucket that was sent together with this one. None if there was none."""


class _Bucket:
    """The members of one bucket, ordered by name."""

    __slots__ = ("cached", "members", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.members: dict[str, Stored] = {}
        self.cached: dict[bool, _Cached] = {}
        """The digests of the plain form and of the form in which nodes share labels. Empty after a change."""

    def put(self, stored: Stored, keys: KeySet) -> Stored | None:
        old = self.members.get(stored.name)
        self.members[stored.name] = stored
        if old is None:
            insort(self.names, stored.name)
        if old is None or not old.is_sent_the_same(stored, keys):
            self.cached.clear()
        return old

    def remove(self, name: str) -> Stored | None:
        old = self.members.pop(name, None)
        if old is not None:
            del self.names[bisect_left(self.names, name)]
            self.cached.clear()
        return old

    def __iter__(self) -> Iterator[Stored]:
        return (self.members[name] for name in self.names)


_MOST_IN_BUCKET = 128
"""The number of buckets by name is doubled when they have more objects than this on average."""
_FEWEST_IN_BUCKET = 32
"""The number of buckets by name is halved when they have fewer objects than this on average. It is much less than half
of the other limit, so that the number of buckets stays while the number of objects goes up and down a little.
"""


class Buckets:
    """Objects of one kind, by bucket and name."""

    def __init__(self, count: int, *, by_name: bool = False, grows_to: int | None = None) -> None:
        """With `by_name`, an object belongs to the bucket of its own name. With `grows_to` there are more buckets, up
        to this number, when there are more objects.
        """
        self._by_name = by_name
        self._grows_to = grows_to
        self._buckets: list[_Bucket | None] = [None] * count
        self._length = 0
        self._keys = KeySet()
        """The label keys that are sent. The cached digests hold for these."""

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

    @property
    def count(self) -> int:
        """The number of buckets."""
        return len(self._buckets)

    def put(self, stored: Stored) -> Stored | None:
        """Stores an object. Returns the object of that name that was in its bucket before."""
        index = self._index(stored)
        bucket = self._buckets[index]
        if bucket is None:
            bucket = self._buckets[index] = _Bucket()
        old = bucket.put(stored, self._keys)
        self._length += old is None
        self._resize()
        return old

    def take_out(self, stored: Stored) -> None:
        """Removes an object, or another version of it that belongs to the same bucket."""
        self.remove(self._index(stored), stored.name)
        self._resize()

    def _index(self, stored: Stored) -> int:
        return bucket_of_name(stored.name, self.count) if self._by_name else stored.bucket

    def _resize(self) -> None:
        """Changes the number of buckets if it does not fit the number of objects."""
        count = self.count
        if self._grows_to is None:
            return
        if self._length > count * _MOST_IN_BUCKET:
            wanted = min(count * 2, self._grows_to)
        elif self._length < count * _FEWEST_IN_BUCKET:
            wanted = max(count // 2, 1)
        else:
            return
        if wanted == count:
            return
        objects = list(self)
        self._buckets, self._length = [None] * wanted, 0
        for stored in objects:
            bucket = self._buckets[self._index(stored)] or _Bucket()
            self._buckets[self._index(stored)] = bucket
            bucket.put(stored, self._keys)
        self._length = len(objects)

    def remove(self, bucket: int, name: str) -> Stored | None:
        """Removes an object."""
        occupied = self._buckets[bucket]
        old = occupied.remove(name) if occupied else None
        self._length -= old is not None
        return old

    def _send(self, keys: KeySet) -> None:
        """Sends these labels from now on. Drops the digests if the labels changed."""
        if keys is not self._keys:
            self._keys = keys
            for bucket in self._buckets:
                if bucket is not None:
                    bucket.cached.clear()

    def _occupied(self, index: int) -> _Bucket | None:
        bucket = self._buckets[index]
        return bucket if bucket and bucket.members else None


_EMPTY = hashlib.sha256().digest()


def render(
    first: Buckets | None,
    second: Buckets | None,
    keys: KeySet,
    count: int,
    known: Callable[[Digest], bool],
    *,
    shares_labels: bool = False,
) -> list[v1.Bucket]:
    """Renders the buckets of one set, each merged with that of a second set: with its bytes, or only its digest if
    `known` says that the receiver has it. An unchanged bucket is not hashed again, and is put together only for a
    receiver that lacks it. With `shares_labels`, buckets of nodes have the form in which these share labels.
    """
    by_name = False
    for buckets in (first, second):
        if buckets is not None:
            buckets._send(keys)
            by_name = buckets._by_name
    writer = _Writer(keys, by_name, shares_labels)
    rendered = []
    for index in range(count):
        bucket = first._occupied(index) if first else None
        beside = second._occupied(index) if second else None
        if bucket is None:
            bucket, beside = beside, None
        if bucket is None:
            rendered.append(_sent(_EMPTY, Written(b"", False), known))
        else:
            rendered.append(writer.render(bucket, beside, known))
    return rendered


class _Writer(NamedTuple):
    """How buckets are written."""

    keys: KeySet
    by_name: bool
    """Whether members are ordered by name alone. Otherwise pods are ordered by their nodes first."""
    shares_labels: bool

    def render(self, bucket: _Bucket, beside: _Bucket | None, known: Callable[[Digest], bool]) -> v1.Bucket:
        digest_beside = None if beside is None else self._digest_alone(beside)
        cached = bucket.cached.get(self.shares_labels)
        remembered = cached.digest if cached and cached.beside == digest_beside else None
        if remembered is not None and known(remembered):
            return v1.Bucket(digest=remembered)
        written = self._write([*bucket, *(beside or ())])
        digest = remembered or hashlib.sha256(written.data).digest()
        bucket.cached[self.shares_labels] = _Cached(digest, digest_beside)
        return _sent(digest, written, known)

    def _digest_alone(self, bucket: _Bucket) -> Digest:
        """The digest of a bucket that is merged into another one. It shows whether that bucket changed."""
        cached = bucket.cached.get(self.shares_labels)
        if cached is None or cached.beside is not None:
            digest = hashlib.sha256(self._write([*bucket]).data).digest()
            cached = bucket.cached[self.shares_labels] = _Cached(digest, None)
        return cached.digest

    def _write(self, members: Sequence[Stored]) -> Written:
        """The canonical bytes of a bucket with these members. They are the same in every language."""
        # Nodes have no target.
        order = sorted(members, key=lambda member: ("" if self.by_name else member.target, member.name))
        return write_sharing(order, self.keys) if self.shares_labels else Written(_write(order, self.keys), False)


def _sent(digest: Digest, written: Written, known: Callable[[Digest], bool]) -> v1.Bucket:
    if known(digest):
        return v1.Bucket(digest=digest)
    if written.shares_labels:
        return v1.Bucket(digest=digest, data_with_shared_labels=written.data)
    return v1.Bucket(digest=digest, data=written.data)


def _write(members: Sequence[Stored], keys: KeySet) -> bytes:
    """The bytes of a bucket with these members, in this order, without shared labels."""
    numbers: dict[bytes, int] = {}
    sent: dict[SharedPart, bytes] = {}
    written = []
    for member in members:
        part = b""
        if member.part is not None:
            part = sent.get(member.part) or sent.setdefault(member.part, member.part.sent(keys))
        # Shared parts are numbered in the order of first use and compared by content, so equal members give equal
        # bytes.
        number = numbers.setdefault(part, len(numbers) + 1) if part else 0
        own = member.sent(keys)
        own = own + _NUMBER_KEY + varint(number) if number else own
        written.append(_LIST_KEY + varint(len(own)) + own)
    written.extend(_SHARED_METADATA_KEY + varint(len(part)) + part for part in numbers)
    return b"".join(written)


def node_buckets(nodes: Iterable[v1.Node], count: int = 1) -> list[v1.Bucket]:
    """The buckets of a snapshot with these nodes, for programs without caches: all with their bytes, and with all
    labels. Raises ValueError if `count` is less than 1.
    """
    _require_bucket(count)
    buckets, labels, every = Buckets(count), Labels(), list(nodes)
    for node in every:
        buckets.put(labels.store_node(node, "", count))
    return render(buckets, None, _whole(every), count, lambda _: False)


def pod_buckets(pods: Iterable[v1.Pod], count: int = 1) -> list[v1.Bucket]:
    """The buckets of a snapshot with these pods, all with their bytes and with all labels, in the buckets of their
    nodes. Raises ValueError if `count` is less than 1.
    """
    _require_bucket(count)
    owned, orphans, parts, every = Buckets(count), Buckets(count), SharedParts(), list(pods)
    for pod in every:
        (owned if pod.HasField("controller") else orphans).put(parts.store_pod(pod, "", count))
    return render(owned, orphans, _whole(every), count, lambda _: False)


def _require_bucket(count: int) -> None:
    if count < 1:
        raise ValueError(f"count is {count}; a snapshot has at least 1 bucket")


def _whole(objects: Iterable[v1.Node | v1.Pod]) -> KeySet:
    return KeySet(frozenset(label.key for obj in objects for label in obj.labels))
