"""Which labels are sent: those that a decision can read.

Of a node these are the labels that a nodeSelector or a required node affinity of a DaemonSet names; of a pod those that
a selector of a DaemonSet of its namespace names, and the two that tell of which template the pod is. Everything else of
an object's labels stays here: it changes no plan, and whoever may write one object could make it of any size.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import v1

MAX_LABELS = 1024
"""Labels of one object that are sent at most."""

_OF_EVERY_POD = ("controller-revision-hash", "pod-template-generation")
"""Labels of pods that every plan reads. They come first where there are too many."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What the decisions about one DaemonSet read."""

    node_labels: frozenset[str] = frozenset()
    """Keys of node labels: its nodeSelector and its required node affinity."""
    pod_labels: frozenset[str] = frozenset()
    """Keys of pod labels: its selector."""

    @classmethod
    def of(cls, template: Any, selector_keys: Iterable[str]) -> "Reads":
        """Reads a pod template. Nothing is checked: what the service refuses names nothing or too much."""
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


NOTHING = Reads()
"""What decisions about a DaemonSet read that names nothing."""


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
    """The keys of which labels are sent."""

    labels: frozenset[str] = frozenset()
    first: tuple[str, ...] = ()
    """Labels that are sent however many others there are."""

    @classmethod
    def of_nodes(cls, daemon_sets: Iterable[Reads]) -> "KeySet":
        """Of nodes, where these are all DaemonSets of the cluster."""
        return cls(frozenset().union(*(reads.node_labels for reads in daemon_sets)))

    @classmethod
    def of_pods(cls, daemon_sets: Iterable[Reads]) -> "KeySet":
        """Of the pods of a namespace, where these are all DaemonSets of it."""
        labels = frozenset(_OF_EVERY_POD).union(*(reads.pod_labels for reads in daemon_sets))
        return cls(labels, first=_OF_EVERY_POD)


def reduce_labels(message: v1.Node | v1.Pod | v1.SharedMetadata, keys: KeySet) -> int:
    """Leaves of a node, a pod or what pods share the labels that are sent, of too many the first ones by key. Answers
    with how many labels that decisions could read are left out for that.
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


class Named:
    """Which keys DaemonSets that come and go name.

    What is sent grows as soon as one names a new key. It shrinks only then, too: without the keys that none names any
    more every bucket would be another one for nothing.
    """

    def __init__(self, *, of_pods: bool) -> None:
        self._of_pods = of_pods
        self._labels: Counter[str] = Counter(_OF_EVERY_POD if of_pods else ())
        self._first = _OF_EVERY_POD if of_pods else ()
        self._sent = KeySet(frozenset(self._labels), first=self._first)
        self._has_grown = False

    def add(self, reads: Reads) -> None:
        """A DaemonSet that reads this is there."""
        labels = self._of(reads)
        self._has_grown |= not labels <= self._sent.labels
        self._labels.update(labels)

    def remove(self, reads: Reads) -> None:
        """It is not any more."""
        labels = self._of(reads)
        self._labels.subtract(labels)
        for key in labels:
            if not self._labels[key]:
                del self._labels[key]

    def name_besides(self, reads: Reads) -> None:
        """What this reads is sent too, until what is sent grows for another reason."""
        self.add(reads)
        self.keys()
        self.remove(reads)

    @property
    def has_grown(self) -> bool:
        """A key is named that is not sent yet."""
        return self._has_grown

    def keys(self) -> KeySet:
        """What is sent now. It is the same object until that changes."""
        if self._has_grown:
            self._sent = KeySet(frozenset(self._labels), self._first)
            self._has_grown = False
        return self._sent

    def _of(self, reads: Reads) -> frozenset[str]:
        return reads.pod_labels if self._of_pods else reads.node_labels
