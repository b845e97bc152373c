"""Which labels are sent: only those that a decision can read.

Of a node these are the labels that a nodeSelector or a required node affinity of a DaemonSet names. Of a pod these are
the labels that a selector of a workload in its namespace names, those in the template of a ReplicaSet in its namespace,
and the two labels that identify the template of a DaemonSet. Other labels change no plan, and anyone who may write one
object could make them very large.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import v1

MAX_LABELS = 1024
"""Most labels of one object that are sent."""

_OF_EVERY_POD = ("controller-revision-hash", "pod-template-generation")
"""Labels of pods that every plan reads. They have priority if there are too many."""


@dataclass(frozen=True, slots=True)
class LabelKeys:
    """The label keys that the decisions about one workload read."""

    node_labels: frozenset[str] = frozenset()
    """Keys of node labels, from its nodeSelector and its required node affinity."""
    pod_labels: frozenset[str] = frozenset()
    """Keys of pod labels, from its selector, and of a ReplicaSet also from its template."""

    @classmethod
    def of(cls, template: Any, selector_keys: Iterable[str]) -> "LabelKeys":
        """Reads a pod template. Invalid parts are ignored: the service rejects them."""
        spec = _member(template, "spec")
        required = _member(
            _member(_member(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution"
        )
        expressions = (
            expression
            for term in _elements(_member(required, "nodeSelectorTerms"))
            for expression in _elements(_member(term, "matchExpressions"))
        )
        selected = _member(spec, "nodeSelector")
        return cls(
            node_labels=frozenset(selected if isinstance(selected, Mapping) else ()).union(_keys(expressions)),
            pod_labels=frozenset(selector_keys),
        )

    @classmethod
    def of_pods(cls, template: Any, selector_keys: Iterable[str]) -> "LabelKeys":
        """The keys of a workload that chooses no nodes, and that counts the pods with all labels of its template."""
        labels = _member(_member(template, "metadata"), "labels")
        return cls(pod_labels=frozenset(selector_keys).union(labels if isinstance(labels, Mapping) else ()))


NO_KEYS = LabelKeys()
"""The keys of a workload that names none."""


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _elements(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _keys(entries: Iterable[Any]) -> Iterator[str]:
    for entry in entries:
        key = _member(entry, "key")
        if isinstance(key, str):
            yield key


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of labels that are sent."""

    labels: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()
    """Keys with priority if there are too many labels."""

    @classmethod
    def of_nodes(cls, workloads: Iterable[LabelKeys]) -> "KeySet":
        """The node label keys of all workloads of the cluster."""
        return cls(frozenset().union(*(reads.node_labels for reads in workloads)))

    @classmethod
    def of_pods(cls, workloads: Iterable[LabelKeys]) -> "KeySet":
        """The pod label keys of all workloads of one namespace."""
        labels = frozenset(_OF_EVERY_POD).union(*(reads.pod_labels for reads in workloads))
        return cls(labels, first=_OF_EVERY_POD)


def reduce_labels(message: v1.Node | v1.Pod | v1.SharedMetadata, keys: KeySet) -> int:
    """Removes the labels that are not sent. If there are too many, keeps the first ones by key. Returns how many labels
    are removed although decisions could read them.
    """
    named = [label for label in message.labels if label.key in keys.labels]
    cut = max(len(named) - MAX_LABELS, 0)
    if cut:
        left_out = set([label.key for label in named if label.key not in keys.first][-cut:])
        named = [label for label in named if label.key not in left_out]
    if len(named) < len(message.labels):
        del message.labels[:]
        message.labels.extend(named)
    return cut


class KeyCounter:
    """Counts the label keys that the current workloads name.

    The set of sent keys grows as soon as a workload names a new key. Keys that no workload names any more are dropped
    only then: dropping them at other times would change every bucket for nothing.
    """

    def __init__(self, *, of_pods: bool) -> None:
        self._of_pods = of_pods
        self._labels: Counter[str] = Counter(_OF_EVERY_POD if of_pods else ())
        self._first = _OF_EVERY_POD if of_pods else ()
        self._sent = KeySet(frozenset(self._labels), first=self._first)
        self._has_grown = False

    def add(self, reads: LabelKeys) -> None:
        """A workload with these keys was added."""
        labels = self._of(reads)
        self._has_grown |= not labels <= self._sent.labels
        self._labels.update(labels)

    def remove(self, reads: LabelKeys) -> None:
        """A workload with these keys was removed."""
        labels = self._of(reads)
        self._labels.subtract(labels)
        for key in labels:
            if not self._labels[key]:
                del self._labels[key]

    def name_besides(self, reads: LabelKeys) -> None:
        """Sends these keys, too, until the set grows for another reason."""
        self.add(reads)
        self.keys()
        self.remove(reads)

    @property
    def has_grown(self) -> bool:
        """Whether a workload names a key that is not sent yet."""
        return self._has_grown

    def keys(self) -> KeySet:
        """The keys that are sent now. The object is the same until they change."""
        if self._has_grown:
            self._sent = KeySet(frozenset(self._labels), self._first)
            self._has_grown = False
        return self._sent

    def _of(self, reads: LabelKeys) -> frozenset[str]:
        return reads.pod_labels if self._of_pods else reads.node_labels
