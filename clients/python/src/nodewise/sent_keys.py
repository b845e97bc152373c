"""The label keys that are sent: of nodes those that any workload or RolloutPolicy names, since all workloads share the
node buckets; of pods those that a workload of their namespace names.
"""

from .label_keys import KeyCounter, KeySet
from .objects import Workload
from .policies import RolloutPolicy


class SentKeys:
    """Counts the label keys of the cached workloads and RolloutPolicies."""

    def __init__(self) -> None:
        self._nodes = KeyCounter(of_pods=False)
        self._pods: dict[str, tuple[KeyCounter, int]] = {}
        """The pod label keys and the number of workloads, by namespace."""
        self._unnamed = KeySet.of_pods(())

    def replace(self, old: Workload | None, new: Workload | None) -> None:
        """A workload was added, changed or removed."""
        # Adds the new keys first, so that keys that both versions name are never dropped.
        if new is not None:
            self._nodes.add(new.label_keys)
            named, count = self._pods.get(new.key.namespace) or (KeyCounter(of_pods=True), 0)
            named.add(new.label_keys)
            self._pods[new.key.namespace] = (named, count + 1)
        if old is not None:
            self._nodes.remove(old.label_keys)
            named, count = self._pods.pop(old.key.namespace)
            named.remove(old.label_keys)
            if count > 1:
                self._pods[old.key.namespace] = (named, count - 1)

    def replace_policy(self, old: RolloutPolicy | None, new: RolloutPolicy | None) -> None:
        """A RolloutPolicy was added, changed or removed."""
        # Adds the new keys first, as in `replace`.
        if new is not None:
            self._nodes.add(new.label_keys)
        if old is not None:
            self._nodes.remove(old.label_keys)

    def name_besides(self, workload: Workload) -> None:
        """Sends the keys of a workload until the sets grow for another reason."""
        self._nodes.name_besides(workload.label_keys)
        named, _ = self._pods.setdefault(workload.key.namespace, (KeyCounter(of_pods=True), 0))
        named.name_besides(workload.label_keys)

    def of_nodes(self) -> KeySet:
        """The sent keys of node labels."""
        return self._nodes.keys()

    def of_pods(self, namespace: str) -> KeySet:
        """The sent keys of pod labels in a namespace."""
        named = self._pods.get(namespace)
        return named[0].keys() if named else self._unnamed

    def nodes_have_grown(self) -> bool:
        """Whether there are new node label keys that were not sent yet."""
        return self._nodes.has_grown

    def pods_have_grown(self, namespace: str) -> bool:
        """Whether there are new pod label keys in a namespace that were not sent yet."""
        named = self._pods.get(namespace)
        return named is not None and named[0].has_grown
