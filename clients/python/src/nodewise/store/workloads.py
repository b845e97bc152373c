"""The cached workloads: by kind, namespace and name, and by the uid of their controller."""

from collections.abc import Iterable, Iterator

from ..kinds import Key, Kind
from ..objects import Workload


class Workloads:
    """The cached workloads of all kinds."""

    def __init__(self) -> None:
        self._by_key: dict[Key, Workload] = {}
        self._in_namespace: dict[tuple[str, str], dict[str, Workload]] = {}
        """By kind and namespace, then by name."""
        self._controlled: dict[str, set[Key]] = {}
        """The keys of the workloads that another workload controls, by its uid."""
        self._changed: dict[Key, int] = {}
        self.sealed: dict[Key, str] = {}
        """The orphans that cannot be changed, and the resourceVersions at which that was found."""

    def get(self, key: Key) -> Workload | None:
        """The workload of this key."""
        return self._by_key.get(key)

    def changed(self, key: Key) -> int | None:
        """The number of the last change of a workload; None if it is not cached."""
        return self._changed.get(key)

    def of_kind(self, kind: Kind) -> Iterator[Workload]:
        """All workloads of a kind."""
        return (workload for workload in self._by_key.values() if workload.key.kind == kind.name)

    def in_namespace(self, kind: Kind, namespace: str) -> list[Workload]:
        """All workloads of a kind in a namespace, ordered by name."""
        return _by_name(self._in_namespace.get((kind.name, namespace), {}).values())

    def count_in(self, kind: Kind, namespace: str) -> int:
        """The number of workloads of a kind in a namespace."""
        return len(self._in_namespace.get((kind.name, namespace), ()))

    def controlled(self, kind: Kind, namespace: str, uid: str) -> list[Workload]:
        """The workloads of a kind in a namespace that name this uid as their controller, ordered by name."""
        keys = self._controlled.get(uid, ())
        return _by_name(self._by_key[key] for key in keys if (key.kind, key.namespace) == (kind.name, namespace))

    def seal(self, key: Key) -> None:
        """Marks an orphan that cannot be changed, until it changes."""
        workload = self.get(key)
        if workload is not None:
            self.sealed[key] = workload.resource_version

    def is_sealed(self, workload: Workload) -> bool:
        """Whether a workload has that mark."""
        return self.sealed.get(workload.key) == workload.resource_version

    def put(self, workload: Workload, changed: int) -> Workload | None:
        """Caches a workload with the number of its last change. Returns the one of that key that was cached before."""
        key = workload.key
        old = self.remove(key)
        self._by_key[key] = workload
        self._changed[key] = changed
        self._in_namespace.setdefault((key.kind, key.namespace), {})[key.name] = workload
        if workload.controller is not None:
            self._controlled.setdefault(workload.controller.uid, set()).add(key)
        return old

    def remove(self, key: Key) -> Workload | None:
        """Removes a workload."""
        old = self._by_key.pop(key, None)
        if old is None:
            return None
        del self._changed[key]
        namespace = self._in_namespace[key.kind, key.namespace]
        del namespace[key.name]
        if not namespace:
            del self._in_namespace[key.kind, key.namespace]
        if old.controller is not None:
            controlled = self._controlled[old.controller.uid]
            controlled.discard(key)
            if not controlled:
                del self._controlled[old.controller.uid]
        return old


def _by_name(workloads: Iterable[Workload]) -> list[Workload]:
    return sorted(workloads, key=lambda workload: workload.key.name)
