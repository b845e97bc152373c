"""Everything an executor remembers: the caches, what is held for each workload, the own-write records and the reports
that could not be delivered. All of it starts empty with each start (M-15).

Nothing here waits for anything: it belongs to one event loop, or to whoever holds a lock around it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from . import tracing, v1
from .expectations import Holdings
from .gate import Gate, is_behind
from .handlers import Forget, ObserveCreate, ObserveDeletion, Reaction, RetireName, Rules, Urgency, Wake, WakeAll, react
from .kinds import Key
from .objects import Revision
from .options import is_enabled
from .store import Event, Listed, Store, Transition

_log = tracing.logger(__name__)

Note: TypeAlias = Callable[[Key, Sequence[Transition]], None]
"""Is told which changes wake a workload."""

MAX_UNDELIVERED = 8
"""Reports kept for a workload until they can be delivered; older ones are dropped, which costs time only."""


MAX_LIVE = 16
"""Revisions that were read live which are kept for the next plan: of each of the plans of one reconcile a few."""


class State:
    """What is remembered."""

    def __init__(self, bucket_count: int, options: v1.PlanOptions) -> None:
        by_uid = is_enabled(options, v1.DEVIATION_DELETIONS_BY_UID)
        self.store = Store(bucket_count)
        self.holdings = Holdings(count_deletions=not by_uid)
        self.gate = Gate()
        self._undelivered: dict[Key, deque[v1.ReportRequest]] = {}
        self._read_live: dict[Key, tuple[str, list[Revision]]] = {}
        self._rules = Rules(
            clear_replaced_own_writes=is_enabled(options, v1.DEVIATION_CLEAR_REPLACED_OWN_WRITES),
            wake_on_node_delete=is_enabled(options, v1.DEVIATION_WAKE_ON_NODE_DELETE),
            count_repeated_deletions=not by_uid,
        )

    def take_in(self, event: Event, note: Note | None = None) -> list[Wake]:
        """Takes in what a watch showed, and answers which workloads are to be looked at, and when."""
        wakes: dict[Wake, None] = {}
        everybody: Urgency | None = None
        self._begin_anew(event)
        was_relisting = self.store.is_relisting
        for_everybody: list[Transition] = []

        def visit(transition: Transition) -> None:
            nonlocal everybody
            for reaction in react(self.store, transition, self._rules):
                match reaction:
                    case Wake(key, _, after):
                        wakes[reaction] = None
                        if note is not None and after is None:
                            note(key, [transition])
                    case WakeAll(urgency):
                        for_everybody.append(transition)
                        everybody = urgency if everybody is None else max(everybody, urgency)
                    case _:
                        self._observe(reaction)

        self.store.apply(event, visit)
        if was_relisting and not self.store.is_relisting:
            everybody = Urgency.NORMAL if everybody is None else everybody
        opened = [Wake(key) for key in self.gate.opened(self.store.reached)]
        every = [] if everybody is None else [Wake(key, everybody) for key in self.store.every_key()]
        if note is not None:
            for wake in every:
                note(wake.key, for_everybody)
        return [*wakes, *opened, *every]

    def forget(self, key: Key) -> None:
        """The workload is gone: nothing about it is kept."""
        self.gate.clear(key)
        self._drop_held(key)

    def undelivered(self, key: Key, uid: str) -> list[v1.ReportRequest]:
        """Reports about the workload of this uid that are still to be delivered, oldest first."""
        return [report for report in self._undelivered.get(key, ()) if report.workload.uid == uid]

    def keep_report(self, key: Key, report: v1.ReportRequest) -> None:
        """Keeps a report that could not be delivered, to ride on the next plan."""
        self._undelivered.setdefault(key, deque(maxlen=MAX_UNDELIVERED)).append(report)

    def reports_delivered(self, key: Key) -> None:
        """The service has all reports about a workload."""
        self._undelivered.pop(key, None)

    def keep_live(self, key: Key, uid: str, revisions: Iterable[Revision]) -> None:
        """Keeps revisions that a reconcile of the workload of this uid read live, and that has to wait for a cache
        before its next plan: the cache of revisions need not show them by then.
        """
        of, kept = self._read_live.get(key, (uid, []))
        # A wrong service could have the same one read again and again.
        new = list(revisions)
        names = {revision.name for revision in new}
        kept = [revision for revision in kept if of == uid and revision.name not in names] + new
        if kept:
            self._read_live[key] = (uid, kept[-MAX_LIVE:])

    def take_live(self, key: Key, uid: str) -> list[Revision]:
        """Those that were kept. For the next plan they stand for what the cache shows by their names, as they would
        have without the wait: it may show the object that was there before, or not say that the name was found taken.
        """
        of, kept = self._read_live.pop(key, (uid, []))
        return kept if of == uid else []

    def _begin_anew(self, event: Event) -> None:
        """Forgets what versions told, where a list shows that they have begun anew: no list that is asked for now can
        be older than what was seen before, unless etcd was restored from a backup (D-112). What is expected stays; it
        ends by itself.
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
        self.store.begin_anew()
        self.gate.begin_anew()
        self._read_live.clear()

    def _observe(self, reaction: Reaction) -> None:
        match reaction:
            case ObserveCreate(key, pod_name, node_name):
                self.holdings.observe_create(key, pod_name, node_name)
            case ObserveDeletion(key, pod_name, pod_uid):
                self.holdings.observe_deletion(key, pod_name, pod_uid)
            case RetireName(key, uid, pod_name, node_name):
                self.holdings.retire_name(key, uid, node_name, pod_name)
            case Forget(key, own_writes_of):
                self.gate.clear(key, own_writes_of)
                self._drop_held(key)

    def _drop_held(self, key: Key) -> None:
        self.holdings.forget(key)
        self._undelivered.pop(key, None)
        self._read_live.pop(key, None)
