"""Plans that are wrong by what is known of an object or a node now. They were perhaps right by the snapshot: labels and
owners change, and nodes get pods.
"""

from ..kinds import Key

MAX_UNTOLD = 3
"""How many plans in a row the executor may drop for this reason without telling anybody. A wrong service could name
another object in each plan.
"""


class Contradicted:
    """For each workload, the objects and nodes that made plans wrong since the last plan that was right."""

    def __init__(self) -> None:
        self._seen: dict[Key, set[tuple[str, str]]] = {}

    def is_first(self, key: Key, contradicts: str, what: str) -> bool:
        """Whether a violation may be of the snapshot's age only. The next snapshot shows the object or node as it is: a
        plan that is wrong for the same one and the same reason again was not made from it.
        """
        seen = self._seen.setdefault(key, set())
        if len(seen) >= MAX_UNTOLD or (contradicts, what) in seen:
            return False
        seen.add((contradicts, what))
        return True

    def forget(self, key: Key) -> None:
        """A plan for the workload was right, or the workload is gone."""
        self._seen.pop(key, None)
