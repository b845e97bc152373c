"""The cached RolloutPolicies: by namespace and name."""

from collections.abc import Iterator

from ..objects import Workload
from ..policies import RolloutPolicy

MOST_SENT = 100
"""Most policies of a snapshot. Only the first of them counts for a workload; the others are told so."""
MOST_BYTES = 8 << 20
"""Most bytes of the policies of a snapshot after the first. Anyone who may create policies in a namespace may create
many.
"""


class Policies:
    """All policies."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, RolloutPolicy]] = {}

    def __iter__(self) -> Iterator[RolloutPolicy]:
        return (policy for of in self._by_namespace.values() for policy in of.values())

    def put(self, policy: RolloutPolicy) -> RolloutPolicy | None:
        """Caches a policy. Returns the one of that name that was cached before."""
        of = self._by_namespace.setdefault(policy.namespace, {})
        old = of.get(policy.name)
        of[policy.name] = policy
        return old

    def remove(self, namespace: str, name: str) -> RolloutPolicy | None:
        """Removes a policy."""
        of = self._by_namespace.get(namespace, {})
        old = of.pop(name, None)
        if not of:
            self._by_namespace.pop(namespace, None)
        return old

    def may_target(self, workload: Workload) -> Iterator[RolloutPolicy]:
        """The policies that target a workload, or may target it, in any order."""
        of = self._by_namespace.get(workload.namespace, {})
        return (policy for policy in of.values() if policy.may_target(workload))

    def sent(self, workload: Workload) -> list[RolloutPolicy]:
        """The policies of a workload's snapshot: those that target it, and those of which it cannot be told. The oldest
        come first, then the first by name; those of which it cannot be told come last, as for the service.
        """
        sent: list[RolloutPolicy] = []
        size = 0
        for policy in sorted(self.may_target(workload), key=_rank)[:MOST_SENT]:
            size += len(policy.object)
            if sent and size > MOST_BYTES:
                break
            sent.append(policy)
        return sent


def _rank(policy: RolloutPolicy) -> tuple[bool, bool, tuple[int, int], str]:
    created = policy.created
    return policy.targets.are_unknown, created is not None, created or (0, 0), policy.name
