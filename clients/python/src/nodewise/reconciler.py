"""The loop around reconciles: what the watches show in, workloads woken, workers on the queue, and an orderly end."""

import asyncio
import random
import time
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType

from . import times, tracing, v1, waiting
from .actuator import Actuator, ObserveActuator
from .apply import DEFAULT_CONCURRENCY
from .client import PlanService
from .errors import BrokenError, EndedError
from .execute import Ending, Executor, Failed, Settled, StoppedError, Unreachable, Waiting
from .handlers import Urgency
from .kinds import Key
from .kube import EventRecorder, KubeActuator, KubeClient, Watches
from .queue import Queue, RateLimits
from .reconciles import Reconciles
from .selection import Selection
from .state import State
from .store import Event
from .tracing import BatchTraces, Span

_log = tracing.logger(__name__)

_OUTCOME = "nodewise.reconcile.outcome"

EXPECTATIONS_EXPIRED = 301.0
"""When expectations have expired for certain, in seconds: five minutes, as the contract says, and one second."""


@dataclass(frozen=True, slots=True)
class Config:
    """How a reconciler works. Times are in seconds."""

    options: v1.PlanOptions = field(default_factory=v1.PlanOptions)
    """How to plan."""
    selector: str | None = None
    """Which DaemonSets are owned: those whose labels match this label selector, in the syntax of `kubectl get
    --selector`, such as `app=agent,tier in (a,b)`. None and the empty one select all of them.

    The selector is looked at anew for each plan, with the very object that the request for the plan is built from. A
    DaemonSet that it does not match is left alone: nothing is planned or written for it, and what was remembered of it
    is forgotten. It is owned as soon as its labels match. A filter in front of `Reconciler.reconcile`, such as one of
    kopf, does none of this.
    """
    namespaces: Collection[str] | None = None
    """The namespaces whose DaemonSets are owned; None for all. DaemonSets elsewhere are left alone, too. Of a single
    namespace alone, pods, revisions and DaemonSets are watched; otherwise those of all namespaces are.
    """
    observe: bool = False
    """Write nothing, and say in the log what would be written: for running beside another controller."""
    workers: int = 2
    """Workloads reconciled at the same time. Besides these there is one worker for what is urgent, so that a new node
    gets its pods though every other worker is in the middle of a rollout.
    """
    buckets: int = 64
    """Buckets that nodes and pods are sent in; at most what the service accepts."""
    apply_concurrency: int = DEFAULT_CONCURRENCY
    """Most calls to the apiserver at a time, for one plan."""
    limits: RateLimits | None = None
    """How failed workloads are slowed down. None for upstream's limits, but a workload waits for a minute at most; with
    `PROFILE_UPSTREAM_STRICT` in the options it waits for up to 1000 s, as upstream does.
    """
    rest: float = 0.02
    """How long a workload is left alone after each look at it, so that a burst of events makes one call. The first
    event after a quiet time is heeded at once, and retries come when they are due.
    """
    unreachable_delay: float = 5.0
    """When a workload is tried again after the service could not be reached."""
    resync: float = field(default_factory=lambda: 12 * 3600 * random.uniform(1.0, 2.0))
    """After this time every workload is looked at though nothing happened, and so on: whatever was missed is then
    found. Upstream's 12 to 24 hours, at random so that several controllers do not do it together (D-107).
    """
    drain_timeout: float = 10.0
    """How long workers may go on to apply and report what they have in hand once they are told to stop."""
    max_traced_calls: int = 32
    """Most actions of a batch whose calls to the apiserver have a span each. A batch with more has only its own, and
    the apiserver is told to record nothing. With 0 no call has one.
    """
    traceparent_annotation: bool = False
    """Created pods carry the annotation `nodewise.dev/traceparent`, the trace context of the batch that created them,
    if that is recorded.
    """

    def __post_init__(self) -> None:
        # What is wrong with it is said where it is written. A collection may change later on, or be read only once.
        object.__setattr__(self, "namespaces", self.selection().namespaces)

    def selection(self) -> Selection:
        """Which DaemonSets are owned. Raises `ValueError` for a selector that cannot be read."""
        return Selection.of(self.selector, self.namespaces)


class Reconciler:
    """Owns DaemonSets: watches a cluster, asks a planning service what is to be done, does it and reports.

    As an async context manager it works until the block is left; `run` does that for a whole program. It is used
    once, since its memory starts empty; to enter or run it again raises `RuntimeError`.
    """

    def __init__(
        self,
        kube: KubeClient,
        service: PlanService,
        config: Config | None = None,
        *,
        actuator: Callable[[Actuator], Actuator] | None = None,
    ) -> None:
        """`actuator` may wrap what writes, for example to refuse writes while another process leads."""
        self._kube = kube
        self._config = config or Config()
        self._service = service
        self._wrap = actuator
        self._queue: Queue[Key] = Queue(_limits(self._config), self._config.rest, time.monotonic())
        self._idle: set[asyncio.Future[None]] = set()
        """Workers that wait for a change of the queue."""
        self._state = State(self._config.buckets, self._config.options)
        self._reconciles = Reconciles()
        self._synced = asyncio.Event()
        self._askers: dict[Key, list[asyncio.Future[Ending]]] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._watches: Watches | None = None
        self._executor: Executor | None = None
        self._stack = AsyncExitStack()
        self._guard: asyncio.Task[None] | None = None
        self._has_started = False
        self._ended: EndedError | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, then begins nothing, waits for no plan, lets plans that are being applied come to
        their end, and returns.
        """
        async with self:
            assert self._guard is not None
            stopped = asyncio.create_task(stop.wait())
            try:
                await asyncio.wait([stopped, self._guard], return_when=asyncio.FIRST_COMPLETED)
                if self._ended is not None:
                    raise self._ended
            finally:
                stopped.cancel()

    async def reconcile(self, namespace: str, name: str) -> Ending:
        """Looks at a workload as soon as can be, and answers how that ended: what else is to come of it, such as
        retries, is cared for.

        Safe to call from any handler, of kopf for example, and while the workload is in work already: it is then looked
        at once more. Raises `EndedError` when the reconciler ends meanwhile, or has, and `RuntimeError` when it has not
        started.
        """
        if self._ended is not None:
            raise self._ended
        if self._guard is None:
            raise RuntimeError(
                "the reconciler has not started: call reconcile inside of async with Reconciler(...) as reconciler"
            )
        key = Key(namespace, name)
        asked: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._askers.setdefault(key, []).append(asked)
        self._queue.add(key, Urgency.URGENT, time.monotonic())
        self._wake_workers()
        return await asked

    def health(self) -> list[str]:
        """Why it is not ready, if so, as a readiness probe tells it: it has not started or has ended, the service
        cannot be reached or was not yet, caches are not filled or not followed.
        """
        if self._ended is not None:
            return [str(self._ended)]
        if self._watches is None:
            return ["the reconciler has not started"]
        service = self._service.health()
        failing = [f"{resource.value}: {reason}" for resource, reason in self._watches.health().items()]
        return failing if service is None else [f"service: {service}", *failing]

    @property
    def refused_plans(self) -> int:
        """How many plans were not applied since they break a rule of docs/writing-an-executor.md: the service is wrong.
        Each is told in the log, too, and on the workload with the Warning Event `PlanRefused`.
        """
        return 0 if self._executor is None else self._executor.refused_plans

    async def __aenter__(self) -> "Reconciler":
        if self._has_started:
            raise RuntimeError(
                "a reconciler is used once, and this one has been started already: make a new Reconciler"
            )
        self._kube.require_open()
        self._has_started = True
        with tracing.detached():
            await self._start()
        return self

    async def _start(self) -> None:
        selection = self._config.selection()
        recorder = await self._stack.enter_async_context(EventRecorder(self._kube))
        actuator: Actuator = KubeActuator(self._kube, recorder)
        if self._config.observe:
            actuator = ObserveActuator(actuator)
        if self._wrap is not None:
            actuator = self._wrap(actuator)
        self._executor = Executor(
            self._state,
            actuator,
            self._service,
            self._config.options,
            selection=selection,
            apply_concurrency=self._config.apply_concurrency,
            traces=BatchTraces(self._config.max_traced_calls, self._config.traceparent_annotation),
            now=times.now,
        )
        self._watches = await self._stack.enter_async_context(
            Watches(self._kube, self._take_in, namespace=selection.only_namespace)
        )
        urgent_only = [False] * max(self._config.workers, 1) + [True]
        self._workers = [asyncio.create_task(self._work(self._executor, urgent)) for urgent in urgent_only]
        self._workers.append(asyncio.create_task(self._resync()))
        self._guard = asyncio.create_task(self._watch_over([*self._watches.tasks, *self._workers]))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._guard is not None:
            await waiting.ended([self._guard])
        self._queue.shut_down(time.monotonic())
        if self._executor is not None:
            self._executor.stop()
        self._wake_workers()
        await waiting.ended([self._workers.pop()])
        try:
            if self._synced.is_set():
                # Watches go on meanwhile, so that nobody who waits for a cache waits in vain.
                _, late = await asyncio.wait(self._workers, timeout=self._config.drain_timeout)
                if late:
                    _log.warning("%d workers did not end in time and are cut off", len(late))
        finally:
            await waiting.ended(self._workers)
            self._ended = self._ended or EndedError("the reconciler has ended")
            self._answer_all(self._ended)
            await self._stack.aclose()

    async def _watch_over(self, tasks: "list[asyncio.Task[None]]") -> None:
        """Ends all work when a watch or a worker ends, which none should."""
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        defects = [task.exception() for task in done if not task.cancelled()]
        self._ended = BrokenError(f"a watch or a worker has ended unexpectedly: {defects}")
        self._ended.__cause__ = next(filter(None, defects), None)
        _log.critical("%s; nothing is done any more", self._ended, exc_info=self._ended.__cause__)
        self._queue.shut_down(time.monotonic())
        for worker in self._workers:
            worker.cancel()
        self._answer_all(self._ended)

    def _take_in(self, event: Event) -> None:
        """Takes in what a watch showed."""
        now = time.monotonic()
        for wake in self._state.take_in(event, self._reconciles.noting(event, time.time_ns())):
            if wake.after is None:
                self._queue.add(wake.key, wake.urgency, now)
            else:
                self._queue.add_after(wake.key, wake.after, now)
        if not self._synced.is_set() and not self._state.store.unsynced():
            _log.info("all caches are filled; starting to work")
            self._synced.set()
        self._wake_workers()

    def _wake_workers(self) -> None:
        for idle in self._idle:
            if not idle.done():
                idle.set_result(None)
        self._idle.clear()

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._config.resync)
            for key in self._state.store.every_key():
                self._queue.add(key, Urgency.NORMAL, time.monotonic())
            self._wake_workers()

    async def _work(self, executor: Executor, urgent: bool) -> None:
        """A worker (M-31). Starts when every resource has been listed."""
        await self._synced.wait()
        while (key := await self._next(urgent)) is not None:
            workload, waited = self._state.store.daemon_set(key), self._queue.waited(key)
            with self._reconciles.reconcile(key, workload, waited) as span:
                await self._turn(executor, key, span)

    async def _turn(self, executor: Executor, key: Key, span: Span) -> None:
        """Works on one key."""
        askers = self._askers.pop(key, [])
        try:
            ending = await executor.reconcile(key)
            _tell(span, ending)
            self._come_back(executor, key, ending)
            _answer(askers, ending)
        except StoppedError:
            _log.debug("%s: given up, since there is no plan yet", key)
        except Exception as error:
            # A defect must not take all other workloads along, nor go unseen.
            _log.exception("%s: the reconcile ended with a defect", key)
            span.set({_OUTCOME: "failed"})
            span.broke(error)
            self._queue.add_rate_limited(key, time.monotonic())
            _answer(askers, error)
        finally:
            _answer(askers, EndedError("the reconciler has ended"))
            self._queue.done(key, time.monotonic())
            self._wake_workers()

    def _answer_all(self, error: Exception) -> None:
        for askers in self._askers.values():
            _answer(askers, error)
        self._askers.clear()

    async def _next(self, urgent: bool) -> Key | None:
        """The next key; none after the shutdown, when the queue is drained."""
        while True:
            now = time.monotonic()
            key = self._queue.take_urgent(now) if urgent else self._queue.take(now)
            if key is not None or self._queue.finished:
                return key
            change = self._queue.next_change()
            timeout = None if change is None else max(change - now, 0)
            # Nothing is awaited between the look at the queue and this, so no change is missed.
            changed = asyncio.get_running_loop().create_future()
            self._idle.add(changed)
            await asyncio.wait({changed}, timeout=timeout)
            self._idle.discard(changed)

    def _come_back(self, executor: Executor, key: Key, ending: Ending) -> None:
        now = time.monotonic()
        after: float | None = None
        if not isinstance(ending, Settled):
            self._queue.put_off(key)
        match ending:
            case Settled(after):
                self._queue.forget(key)
            case Failed(reason, after):
                backoff = self._queue.add_rate_limited(key, now)
                delay = backoff if after is None else min(backoff, after)
                _log.warning("%s: %s; trying again in %.3f s", key, reason, delay)
            case Waiting(behind):
                # Woken by the event that brings the caches up to date.
                _log.debug("%s: %s", key, behind)
            case Unreachable(reason):
                _log.debug("%s: %s", key, reason)
                after = self._config.unreachable_delay
        if after is not None:
            self._queue.add_after(key, after, now)
        if executor.waits_for_watches(key):
            # Should what is expected never show, no event would tell.
            self._queue.add_after(key, EXPECTATIONS_EXPIRED, now)


def _limits(config: Config) -> RateLimits:
    """Upstream waits for up to 1000 s: long after a quota was raised or a webhook mended, nothing happens. A minute is
    enough to spare an apiserver.
    """
    if config.limits is not None:
        return config.limits
    return RateLimits() if config.options.profile == v1.PROFILE_UPSTREAM_STRICT else RateLimits(max_delay=60.0)


def _tell(span: Span, ending: Ending) -> None:
    """Tells the trace how a reconcile ended."""
    match ending:
        case Settled():
            span.set({_OUTCOME: "settled"})
        case Failed(reason):
            span.set({_OUTCOME: "failed"})
            span.fail(reason)
        case Waiting():
            span.set({_OUTCOME: "behind"})
        case Unreachable():
            span.set({_OUTCOME: "unreachable"})


def _answer(askers: "list[asyncio.Future[Ending]]", answer: Ending | Exception) -> None:
    """Tells those who still wait."""
    for asked in askers:
        if asked.done():
            continue
        if isinstance(answer, Exception):
            asked.set_exception(answer)
        else:
            asked.set_result(answer)
