"""The controller of one kind of workload: a work queue, and workers that reconcile. The reconciler feeds it with
workloads to queue.
"""

import asyncio
import time
from typing import Protocol

import grpc

from . import tracing, waiting
from .errors import EndedError
from .execute import Ending, Executor, Failed, Settled, StoppedError, Unreachable, Waiting
from .handlers import Urgency, Wake
from .kinds import Key, Kind
from .log_limit import LogLimit
from .queue import Queue, RateLimits
from .reconcile_traces import ReconcileTraces
from .state import State
from .tracing import Span

_log = tracing.logger(__name__)

_OUTCOME = "nodewise.reconcile.outcome"

EXPECTATIONS_EXPIRED = 301.0
"""Seconds after which expectations have certainly expired: five minutes, as the contract says, and one second."""


class Settings(Protocol):
    """The settings of a controller, as `reconciler.Config` has them. Times are in seconds."""

    @property
    def workers(self) -> int:
        """The number of general workers."""

    @property
    def rest(self) -> float:
        """Minimum time between the end of a reconcile and the next one of the same workload."""

    @property
    def unreachable_delay(self) -> float:
        """Delay before a workload is reconciled again after the service could not be reached. It is at least twice the
        time of the failed reconcile.
        """


class Controller:
    """The controller of one kind of workload."""

    def __init__(
        self, kind: Kind, settings: Settings, limits: RateLimits, state: State, traces: ReconcileTraces
    ) -> None:
        self.kind = kind
        self._settings = settings
        self._state = state
        self._traces = traces
        self._queue: Queue[Key] = Queue(limits, settings.rest, time.monotonic(), kind.max_retries)
        self._idle: set[asyncio.Future[None]] = set()
        """The futures of workers that wait for a change of the queue."""
        self._waiters: dict[Key, list[asyncio.Future[Ending]]] = {}
        self._synced = asyncio.Event()
        self._not_planned = LogLimit()
        self.workers: list[asyncio.Task[None]] = []
        """The tasks of the workers. None of them should end before the shutdown."""

    def start(self, executor: Executor) -> None:
        """Starts the workers."""
        urgent_only = [False] * max(self._settings.workers, 1) + [True]
        self.workers = [asyncio.create_task(self._work(executor, urgent)) for urgent in urgent_only]

    def synced(self) -> None:
        """The caches are filled. The workers begin."""
        self._synced.set()

    def add(self, key: Key, urgency: Urgency) -> None:
        """Queues a workload."""
        self._queue.add(key, urgency, time.monotonic())

    def wake(self, wake: Wake, now: float) -> None:
        """Queues a workload now or after a delay. `notify` must follow."""
        if wake.after is None:
            self._queue.add(wake.key, wake.urgency, now)
        else:
            self._queue.add_after(wake.key, wake.after, now)

    def notify(self) -> None:
        """Wakes the workers that wait for a change of the queue."""
        for idle in self._idle:
            if not idle.done():
                idle.set_result(None)
        self._idle.clear()

    async def reconcile(self, key: Key) -> Ending:
        """Reconciles a workload as soon as possible, and returns the result."""
        asked: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, []).append(asked)
        self.add(key, Urgency.URGENT)
        self.notify()
        return await asked

    def shut_down(self) -> None:
        """Lets the workers end when the queue is drained."""
        self._queue.shut_down(time.monotonic())
        self.notify()

    async def cancel(self) -> None:
        """Cancels the workers."""
        await waiting.cancel_all(self.workers)

    def answer_all(self, error: Exception) -> None:
        """Answers all callers that wait for a reconcile."""
        for waiters in self._waiters.values():
            _answer(waiters, error)
        self._waiters.clear()

    async def _work(self, executor: Executor, urgent: bool) -> None:
        """A worker. It begins when every resource has been listed."""
        await self._synced.wait()
        while (key := await self._next(urgent)) is not None:
            workload, waited = self._state.store.workload(key), self._queue.waited(key)
            with self._traces.reconcile(key, workload, waited) as span:
                await self._reconcile_key(executor, key, span)

    async def _reconcile_key(self, executor: Executor, key: Key, span: Span) -> None:
        """Reconciles one workload, answers the callers of `reconcile`, and requeues the workload."""
        waiters = self._waiters.pop(key, [])
        try:
            ending = await executor.reconcile(key)
            _record_outcome(span, ending)
            self._requeue(executor, key, ending)
            _answer(waiters, ending)
        except StoppedError:
            _log.debug("%s: given up, since there is no plan yet", key)
        except Exception as error:
            # A defect must be visible, and must not affect other workloads.
            _log.exception("%s: the reconcile ended with a defect", key)
            span.set({_OUTCOME: "failed"})
            span.record_defect(error)
            self._queue.add_rate_limited(key, time.monotonic())
            _answer(waiters, error)
        finally:
            _answer(waiters, EndedError("the reconciler has ended"))
            self._queue.done(key, time.monotonic())
            self.notify()

    async def _next(self, urgent: bool) -> Key | None:
        """The next key; None after the shutdown, when the queue is drained."""
        while True:
            now = time.monotonic()
            key = self._queue.take_urgent(now) if urgent else self._queue.take(now)
            if key is not None or self._queue.finished:
                return key
            change = self._queue.next_change()
            timeout = None if change is None else max(change - now, 0)
            # There is no await between reading the queue and adding the future, so no change is missed.
            changed = asyncio.get_running_loop().create_future()
            self._idle.add(changed)
            await asyncio.wait({changed}, timeout=timeout)
            self._idle.discard(changed)

    def _requeue(self, executor: Executor, key: Key, ending: Ending) -> None:
        now = time.monotonic()
        after: float | None = None
        if not isinstance(ending, Settled):
            self._queue.keep_urgency(key)
        match ending:
            case Settled(after):
                self._queue.forget(key)
            case Failed(reason, after, refused=refused, conflict=conflict):
                backoff = self._queue.add_rate_limited(key, now, refused=refused)
                delays = [delay for delay in (backoff, after) if delay is not None]
                if conflict:
                    _log.info("%s: %s", key, reason)
                elif delays:
                    _log.warning("%s: %s; trying again in %.3f s", key, reason, min(delays))
                else:
                    _log.warning("%s: %s; this was tried too often, so it waits for the next event", key, reason)
            case Waiting(behind):
                # The event that updates the caches queues the workload.
                _log.debug("%s: %s", key, behind)
            case Unreachable(reason, code):
                if code is grpc.StatusCode.UNIMPLEMENTED and self._not_planned.is_due(self.kind):
                    _log.error("no %s is reconciled: %s", self.kind, reason)
                _log.debug("%s: %s", key, reason)
                # A request that takes the whole deadline at every replica must not keep a worker busy for ever.
                after = max(self._settings.unreachable_delay, 2 * self._queue.worked(key, now))
        if after is not None:
            self._queue.add_after(key, after, now)
        if executor.waits_for_watches(key):
            # If an expectation is never met, no event queues the workload.
            self._queue.add_after(key, EXPECTATIONS_EXPIRED, now)


def _record_outcome(span: Span, ending: Ending) -> None:
    """Sets the result of a reconcile on its span."""
    match ending:
        case Settled():
            span.set({_OUTCOME: "settled"})
        case Waiting() | Failed(conflict=True):
            span.set({_OUTCOME: "behind"})
        case Failed(reason):
            span.set({_OUTCOME: "failed"})
            span.fail(reason)
        case Unreachable():
            span.set({_OUTCOME: "unreachable"})


def _answer(waiters: "list[asyncio.Future[Ending]]", answer: Ending | Exception) -> None:
    """Answers the callers that still wait."""
    for asked in waiters:
        if asked.done():
            continue
        if isinstance(answer, Exception):
            asked.set_exception(answer)
        else:
            asked.set_result(answer)
