"""All state of an executor: the caches, the reconcile state of each workload, the own-write records and undelivered
reports. It starts empty.

No method blocks. The state belongs to one event loop, or to the holder of a lock.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from . import tracing, v1
from .expectations import ReconcileStates
from .gate import Gate, is_behind
from .handlers import Forget, ObserveCreate, ObserveDeletion, Reaction, RetireName, Rules, Urgency, Wake, WakeAll, react
from .kinds import DAEMON_SET, Key, Kind
from .live import LiveObjects
from .options import is_enabled
from .store import Event, Listed, Store, Transition

_log = tracing.logger(__name__)

Note: TypeAlias = Callable[[Key, Sequence[Transition]], None]
"""Called with each workload that an event queues, and the changes that caused it."""

MAX_UNDELIVERED = 8
"""Most undelivered reports of a workload. Older ones are dropped; their expectations then expire, which only costs
time.
"""


class State:
    """The state of an executor."""

    def __init__(self, bucket_count: int, options: v1.PlanOptions, kinds: Sequence[Kind] = (DAEMON_SET,)) -> None:
        """`kinds` are the kinds of workload that are reconciled."""
        by_uid = is_enabled(options, v1.DEVIATION_DELETIONS_BY_UID)
        self.kinds = tuple(kinds)
        self.store = Store(bucket_count, kinds)
        self.reconcile_states = ReconcileStates(count_deletions=not by_uid)
        self.gate = Gate()
        self._undelivered: dict[Key, deque[v1.ReportRequest]] = {}
        self._read_live: dict[Key, tuple[str, LiveObjects]] = {}
        self._rules = Rules(
            clear_replaced_own_writes=is_enabled(options, v1.DEVIATION_CLEAR_REPLACED_OWN_WRITES),
            wake_on_node_delete=is_enabled(options, v1.DEVIATION_WAKE_ON_NODE_DELETE),
            count_repeated_deletions=not by_uid,
        )

    def apply_event(self, event: Event, note: Note | None = None) -> list[Wake]:
        """Applies a watch event. Returns the workloads to queue, with priority or delay."""
        wakes: dict[Wake, None] = {}
        everybody: dict[Kind, Urgency] = {}
        self._restart_versions(event)
        was_relisting = self.store.is_relisting
        for_everybody: dict[Kind, list[Transition]] = {}

        def visit(transition: Transition) -> None:
            for kind in self.kinds:
                for reaction in react(self.store, transition, self._rules, kind):
                    match reaction:
                        case Wake(key, _, after):
                            wakes[reaction] = None
                            if note is not None and after is None:
                                note(key, [transition])
                        case WakeAll(urgency):
                            for_everybody.setdefault(kind, []).append(transition)
                            everybody[kind] = max(urgency, everybody.get(kind, urgency))
                        case _:
                            self._observe(reaction)

        self.store.apply(event, visit)
        if was_relisting and not self.store.is_relisting:
            everybody = {kind: everybody.get(kind, Urgency.NORMAL) for kind in self.kinds}
        opened = [Wake(key) for key in self.gate.opened(self.store.reached)]
        every = [Wake(key, urgency) for kind, urgency in everybody.items() for key in self.store.every_key(kind)]
        if note is not None:
            for kind in everybody:
                for key in self.store.every_key(kind):
                    note(key, for_everybody.get(kind, []))
        return [*wakes, *opened, *every]

    def every_key(self) -> list[Key]:
        """The keys of all workloads of the reconciled kinds, in order."""
        return [key for kind in self.kinds for key in self.store.every_key(kind)]

    def forget(self, key: Key) -> None:
        """Drops the state of a workload that is gone."""
        self.gate.clear(key)
        self._drop_held(key)

    def undelivered(self, key: Key, uid: str) -> list[v1.ReportRequest]:
        """The undelivered reports about the workload of this uid, oldest first."""
        return [report for report in self._undelivered.get(key, ()) if report.workload.uid == uid]

    def keep_report(self, key: Key, report: v1.ReportRequest) -> None:
        """Keeps a report that could not be delivered. It is sent with the next plan request."""
        self._undelivered.setdefault(key, deque(maxlen=MAX_UNDELIVERED)).append(report)

    def reports_delivered(self, key: Key) -> None:
        """Drops the undelivered reports of a workload, because the service has them."""
        self._undelivered.pop(key, None)

    def keep_live(self, key: Key, uid: str, live: LiveObjects) -> None:
        """Keeps objects that were read live while the workload waits for a cache before its next plan. The caches may
        not have them by then.
        """
        of, kept = self._read_live.get(key, (uid, LiveObjects()))
        kept = (kept if of == uid else LiveObjects()).with_newest(live)
        if kept:
            self._read_live[key] = (uid, kept)

    def take_live(self, key: Key, uid: str) -> LiveObjects:
        """Returns and drops the kept objects. In the next plan they replace the cached objects of the same names,
        which may still be older.
        """
        of, kept = self._read_live.pop(key, (uid, LiveObjects()))
        return kept if of == uid else LiveObjects()

    def _restart_versions(self, event: Event) -> None:
        """Drops the own-write records if a list shows that the versions restarted. No new list can be older than what a
        watch has reached, unless etcd was restored from a backup (D-112). Expectations stay; they expire.
        """
        if not isinstance(event, Listed):
            return
        resource, reached = event.resource, self.store.reached(event.resource)
        if not is_behind(reached, event.resource_version):
            return
        _log.warning(
            "a list of %s is at %s, older than %s, which its watch had reached, as after a restore of etcd: "
            "forgetting what was written, and waiting for new lists",
            resource.value,
            event.resource_version,
            reached,
        )
        self.store.restart_versions()
        self.gate.restart_versions()
        self._read_live.clear()

    def _observe(self, reaction: Reaction) -> None:
        match reaction:
            case ObserveCreate(key, pod_name, node_name):
                self.reconcile_states.observe_create(key, pod_name, node_name)
            case ObserveDeletion(key, pod_name, pod_uid):
                self.reconcile_states.observe_deletion(key, pod_name, pod_uid)
            case RetireName(key, uid, pod_name, node_name):
                self.reconcile_states.retire_name(key, uid, node_name, pod_name)
            case Forget(key, own_writes_of):
                self.gate.clear(key, own_writes_of)
                self._drop_held(key)

    def _drop_held(self, key: Key) -> None:
        self.reconcile_states.forget(key)
        self._undelivered.pop(key, None)
        self._read_live.pop(key, None)
