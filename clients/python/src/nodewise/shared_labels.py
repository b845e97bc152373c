"""The bytes of a bucket of nodes in which labels that several nodes have occur once.

An entry is shared if at least two nodes of the bucket have it. Every client follows this rule, so that equal nodes have
equal bytes.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from . import v1
from .label_keys import KeySet
from .stored import NodeLabel, Stored, varint

_NODE_KEY = b"\x0a"  # field 1 of NodeBucket, length-delimited
_SHARED_LABEL_KEY = b"\x12"  # field 2 of NodeBucket, length-delimited
_NUMBERS_KEY = b"\x4a"  # field 9 of Node, its last field, packed


class Written(NamedTuple):
    """The bytes of a bucket."""

    data: bytes
    shares_labels: bool
    """Whether nodes share labels in the bytes."""


class _Entry(NamedTuple):
    """A label that several nodes may have. The order is that of the entries in a bucket."""

    key: str
    is_name: bool
    """The value is the name of each node. `value` is empty then."""
    value: str


def _entry(label: NodeLabel, node: str) -> _Entry:
    is_name = label.value == node
    return _Entry(label.key, is_name, "" if is_name else label.value)


def write_sharing(nodes: Sequence[Stored], keys: KeySet) -> Written:
    """The canonical bytes of a bucket of these nodes, which are ordered by name. If no label is shared, they are those
    of the plain form.
    """
    labelled = [(node, node.labels.sent(keys) if node.labels else []) for node in nodes]
    counts = Counter(_entry(label, node.name) for node, labels in labelled for label in labels if label.key)
    entries = sorted(entry for entry, count in counts.items() if count > 1)
    numbers = {entry: number for number, entry in enumerate(entries, 1)}
    written = []
    for node, labels in labelled:
        own, shared = [], []
        for label in labels:
            number = numbers.get(_entry(label, node.name))
            if number is None:
                own.append(label.encoded)
            else:
                shared.append(varint(number))
        at = node.labels.at if node.labels else 0
        fields = node.own[:at] + b"".join(own) + node.own[at:]
        packed = b"".join(shared)
        if packed:
            fields += _NUMBERS_KEY + varint(len(packed)) + packed
        written.append(_NODE_KEY + varint(len(fields)) + fields)
    for entry in entries:
        message = v1.SharedLabel(key=entry.key, value=entry.value, value_is_node_name=entry.is_name)
        encoded = message.SerializeToString(deterministic=True)
        written.append(_SHARED_LABEL_KEY + varint(len(encoded)) + encoded)
    return Written(b"".join(written), bool(entries))
