"""The own-write gate: no plan for a workload while a cache is older than the executor's last write to the workload or
its pods.

Only the highest resourceVersion of these writes matters, per workload and resource (D-109). Records are in memory.
After a start the first lists are quorum reads, which cannot be older than earlier writes.

Versions only grow, except if etcd was restored from a backup. A recorded version may then never be reached, so all
records are dropped when a list shows a restore (D-112).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from .kinds import Key, Resource

Reached: TypeAlias = Callable[[Resource], str]
"""The resourceVersion that the cache of a resource has reached."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A cache that has not seen one of the executor's writes yet."""

    resource: Resource
    written: str
    reached: str

    def __str__(self) -> str:
        return (
            f"the cache of {self.resource.value} is at resourceVersion {self.reached}, "
            f"our own write at {self.written}: waiting for the watch"
        )


@dataclass(frozen=True, slots=True)
class Relisting:
    """etcd was restored from a backup. Until each resource is listed again, the caches mix two histories."""

    resources: tuple[Resource, ...]
    """The resources that were not listed yet."""

    def __str__(self) -> str:
        resources = ", ".join(resource.value for resource in self.resources)
        return f"etcd was restored from a backup: waiting for new lists of {resources}"


@dataclass(slots=True)
class _Record:
    uid: str
    written: dict[Resource, str] = field(default_factory=dict)
    created: list[tuple[str, str]] = field(default_factory=list)
    """The pods that were created by name, with the resourceVersions that the creates returned. They are its pods before
    the cache shows them. The workload waits for them only if a plan could not create its pods because of them.
    """

    def forget_seen(self, reached: Reached) -> None:
        """Forgets the created pods that the cache shows."""
        self.created = [pod for pod in self.created if is_behind(pod[1], reached(Resource.PODS))]

    def behind(self, reached: Reached) -> Behind | None:
        for resource, written in self.written.items():
            if is_behind(written, reached(resource)):
                return Behind(resource, written, reached(resource))
        return None


class Gate:
    """The highest own writes, by workload."""

    def __init__(self) -> None:
        self._records: dict[Key, _Record] = {}
        self._waiting: set[Key] = set()
        self.restarts = 0
        """How often the versions have restarted. The version of a write that began before the last restart must not be
        recorded: no cache may ever reach it.
        """

    def record(self, key: Key, uid: str, resource: Resource, resource_version: str) -> None:
        """Records the resourceVersion that a write to the workload or one of its pods returned. It replaces the record
        of another uid of that name (D-112).
        """
        record = self._record_of(key, uid)
        if compare(record.written.get(resource, ""), resource_version) != 1:
            record.written[resource] = resource_version

    def record_create(self, key: Key, uid: str, pod_name: str, resource_version: str) -> None:
        """Records the create of a pod by name, and the resourceVersion that it returned. It replaces a record as
        `record` does.
        """
        self._record_of(key, uid).created.append((pod_name, resource_version))

    def await_creates(self, key: Key, uid: str) -> None:
        """Makes a workload wait until the cache shows all pods that were created for it by name."""
        record = self._records.get(key)
        if record is not None and record.uid == uid:
            for _, written in record.created:
                self.record(key, uid, Resource.PODS, written)

    def _record_of(self, key: Key, uid: str) -> _Record:
        record = self._records.get(key)
        if record is None or record.uid != uid:
            record = self._records[key] = _Record(uid)
        return record

    def unseen_creates(self, key: Key, uid: str, reached: Reached) -> list[str]:
        """The names of the pods that were created for a workload and that the cache does not show yet."""
        record = self._records.get(key)
        if record is None or record.uid != uid:
            return []
        record.forget_seen(reached)
        return [name for name, _ in record.created]

    def check(self, key: Key, reached: Reached) -> Behind | None:
        """Returns None when every cache has reached the own writes, and drops the record (D-110). Otherwise the
        workload waits until `opened` returns it.
        """
        record = self._records.get(key)
        if record is not None:
            record.forget_seen(reached)
            behind = record.behind(reached)
            if behind is not None:
                self._waiting.add(key)
                return behind
            if record.created:
                record.written.clear()
            else:
                del self._records[key]
        self._waiting.discard(key)
        return None

    def opened(self, reached: Reached) -> list[Key]:
        """The workloads that waited and need not wait any more. Called whenever a cache advances. Retries instead would
        come too early, or after some attempts much too late.
        """
        opened = sorted(
            key for key in self._waiting if key not in self._records or self._records[key].behind(reached) is None
        )
        self._waiting.difference_update(opened)
        return opened

    def restart_versions(self) -> None:
        """Drops all records, because the versions restarted (D-112)."""
        self._records.clear()
        self.restarts += 1

    def clear(self, key: Key, uid: str | None = None) -> None:
        """Clears the record of a workload; with a uid, only a record of that uid (D-112)."""
        record = self._records.get(key)
        if record is not None and uid in (None, record.uid):
            del self._records[key]


def is_behind(written: str, reached: str) -> bool:
    """Whether the reached version is lower than the written one."""
    return compare(written, reached) == 1


def compare(a: str, b: str) -> int | None:
    """Compares two resourceVersions: returns -1, 0 or 1. They are decimals without a leading zero, so the longer one is
    greater. Returns None for anything else, which must not block (D-111).
    """
    if not (_is_decimal(a) and _is_decimal(b)):
        return None
    left, right = (len(a), a), (len(b), b)
    return (left > right) - (left < right)


def _is_decimal(version: str) -> bool:
    return version.isascii() and version.isdigit() and version[0] != "0"
