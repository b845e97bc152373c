"""Which labels the caches send: of nodes those that any DaemonSet names, since all of them are sent the same buckets;
of pods those that one of their namespace names.
"""

from .objects import DaemonSet
from .reads import KeySet, Named


class SentKeys:
    """Follows the DaemonSets."""

    def __init__(self) -> None:
        self._nodes = Named(of_pods=False)
        self._pods: dict[str, tuple[Named, int]] = {}
        """By namespace, and how many DaemonSets are there."""
        self._unnamed = KeySet.of_pods(())

    def replace(self, old: DaemonSet | None, new: DaemonSet | None) -> None:
        """A DaemonSet came, changed or went."""
        # First what is new, so that what it still names is never without a name.
        if new is not None:
            self._nodes.add(new.reads)
            named, count = self._pods.get(new.key.namespace) or (Named(of_pods=True), 0)
            named.add(new.reads)
            self._pods[new.key.namespace] = (named, count + 1)
        if old is not None:
            self._nodes.remove(old.reads)
            named, count = self._pods.pop(old.key.namespace)
            named.remove(old.reads)
            if count > 1:
                self._pods[old.key.namespace] = (named, count - 1)

    def name_besides(self, workload: DaemonSet) -> None:
        """What a DaemonSet names is sent until what is sent grows for another reason."""
        self._nodes.name_besides(workload.reads)
        named, _ = self._pods.setdefault(workload.key.namespace, (Named(of_pods=True), 0))
        named.name_besides(workload.reads)

    def of_nodes(self) -> KeySet:
        """Of nodes."""
        return self._nodes.keys()

    def of_pods(self, namespace: str) -> KeySet:
        """Of the pods of a namespace."""
        named = self._pods.get(namespace)
        return named[0].keys() if named else self._unnamed

    def daemon_sets_in(self, namespace: str) -> int:
        """How many DaemonSets are in a namespace."""
        named = self._pods.get(namespace)
        return named[1] if named else 0

    def nodes_have_grown(self) -> bool:
        """There are keys by now that were not sent."""
        return self._nodes.has_grown

    def pods_have_grown(self, namespace: str) -> bool:
        """The same, of the pods of a namespace."""
        named = self._pods.get(namespace)
        return named is not None and named[0].has_grown
