"""The reconciler: feeds watch events into the caches, queues workloads, runs workers, and shuts down in order."""

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
from .reconcile_traces import ReconcileTraces
from .selection import Selection
from .state import State
from .store import Event
from .tracing import BatchTraces, Span

_log = tracing.logger(__name__)

_OUTCOME = "nodewise.reconcile.outcome"

EXPECTATIONS_EXPIRED = 301.0
"""Seconds after which expectations have certainly expired: five minutes, as the contract says, and one second."""


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a reconciler. Times are in seconds."""

    options: v1.PlanOptions = field(default_factory=v1.PlanOptions)
    """The options of each plan request."""
    selector: str | None = None
    """Which DaemonSets are owned: those whose labels match this label selector, in the syntax of `kubectl get
    --selector`, such as `app=agent,tier in (a,b)`. None and the empty selector select all.

    The selector is evaluated anew for each plan, with the object that the plan request contains. A DaemonSet that does
    not match is left alone: the reconciler neither plans nor writes for it, and forgets its state. It is owned as soon
    as its labels match. A filter in front of `Reconciler.reconcile`, such as one of kopf, has none of these effects.
    """
    namespaces: Collection[str] | None = None
    """The namespaces whose DaemonSets are owned; None for all. DaemonSets elsewhere are left alone. With a single
    namespace, only its pods, revisions and DaemonSets are watched. Otherwise those of all namespaces are.
    """
    observe: bool = False
    """Observe mode: log each write instead of doing it, for running beside another controller."""
    workers: int = 2
    """The number of general workers, which is the number of concurrent reconciles. One more worker takes only urgent
    workloads, so a new node gets its pods while all general workers are busy.
    """
    buckets: int = 64
    """The number of buckets for nodes and pods; at most what the service accepts."""
    apply_concurrency: int = DEFAULT_CONCURRENCY
    """Most concurrent calls to the apiserver for one plan."""
    limits: RateLimits | None = None
    """Back-off of failed workloads. None: upstream's limits, but with a maximum of one minute. With
    `PROFILE_UPSTREAM_STRICT` in the options the maximum is 1000 s, as upstream.
    """
    rest: float = 0.02
    """Minimum time between the end of a reconcile and the next one of the same workload, so that a burst of events
    causes one plan request. The first event after a quiet time is handled at once, and retries come when they are due.
    """
    unreachable_delay: float = 5.0
    """Delay before a workload is reconciled again after the service could not be reached."""
    resync: float = field(default_factory=lambda: 12 * 3600 * random.uniform(1.0, 2.0))
    """Every workload is reconciled after this time even without an event, repeatedly. That repairs missed events. The
    default is upstream's 12 to 24 hours, at random, so that several controllers do not resync together (D-107).
    """
    drain_timeout: float = 10.0
    """How long workers may continue to apply and report their plans after the stop."""
    max_traced_calls: int = 32
    """Most actions of a batch whose calls to the apiserver each have a span. A larger batch has only its own span, and
    the apiserver is told not to record its calls. With 0 no call has a span.
    """
    traceparent_annotation: bool = False
    """Whether created pods get the annotation `nodewise.dev/traceparent` with the trace context of their batch, if that
    is recorded.
    """

    def __post_init__(self) -> None:
        # Validates the selection where it is written. The copy protects against a collection that changes or that can
        # be read only once.
        object.__setattr__(self, "namespaces", self.selection().namespaces)

    def selection(self) -> Selection:
        """The selection of owned DaemonSets. Raises `ValueError` for an invalid selector."""
        return Selection.of(self.selector, self.namespaces)


class Reconciler:
    """Owns DaemonSets: watches a cluster, asks a planning service for plans, applies them and reports.

    As an async context manager it runs until the block ends; `run` does that for a whole program. A reconciler is used
    once, since its caches start empty. Starting it again raises `RuntimeError`.
    """

    def __init__(
        self,
        kube: KubeClient,
        service: PlanService,
        config: Config | None = None,
        *,
        actuator: Callable[[Actuator], Actuator] | None = None,
    ) -> None:
        """`actuator` may wrap the writes, for example to refuse them while another process is the leader."""
        self._kube = kube
        self._config = config or Config()
        self._service = service
        self._wrap = actuator
        self._queue: Queue[Key] = Queue(_limits(self._config), self._config.rest, time.monotonic())
        self._idle: set[asyncio.Future[None]] = set()
        """The futures of workers that wait for a change of the queue."""
        self._state = State(self._config.buckets, self._config.options)
        self._traces = ReconcileTraces()
        self._synced = asyncio.Event()
        self._waiters: dict[Key, list[asyncio.Future[Ending]]] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._watches: Watches | None = None
        self._executor: Executor | None = None
        self._stack = AsyncExitStack()
        self._guard: asyncio.Task[None] | None = None
        self._has_started = False
        self._ended: EndedError | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set. Then it begins nothing new, cancels waits for plans, completes plans that are being
        applied, and returns.
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
        """Reconciles a workload as soon as possible, and returns the result. Retries happen by themselves.

        It is safe to call this from any handler, for example of kopf, and while the workload is being reconciled: it is
        then reconciled once more. Raises `EndedError` if the reconciler has ended or ends meanwhile, and `RuntimeError`
        if it has not started.
        """
        if self._ended is not None:
            raise self._ended
        if self._guard is None:
            raise RuntimeError(
                "the reconciler has not started: call reconcile inside of async with Reconciler(...) as reconciler"
            )
        key = Key(namespace, name)
        asked: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, []).append(asked)
        self._queue.add(key, Urgency.URGENT, time.monotonic())
        self._wake_workers()
        return await asked

    def health(self) -> list[str]:
        """The reasons why the reconciler is not ready, for a readiness probe; empty if it is ready. It is not ready
        before it starts and after it ends, while the service was not asked or cannot be reached, and while a watch is
        failing.
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
        """The number of plans that were refused because they break a rule of docs/writing-an-executor.md, which is a
        fault of the service. Each refusal is also logged, and emitted on the workload as the Warning Event
        `PlanRefused`.
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
            Watches(self._kube, self._on_event, namespace=selection.only_namespace)
        )
        urgent_only = [False] * max(self._config.workers, 1) + [True]
        self._workers = [asyncio.create_task(self._work(self._executor, urgent)) for urgent in urgent_only]
        self._workers.append(asyncio.create_task(self._resync()))
        self._guard = asyncio.create_task(self._watch_over([*self._watches.tasks, *self._workers]))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._guard is not None:
            await waiting.cancel_all([self._guard])
        self._queue.shut_down(time.monotonic())
        if self._executor is not None:
            self._executor.stop()
        self._wake_workers()
        await waiting.cancel_all([self._workers.pop()])
        try:
            if self._synced.is_set():
                # The watches continue meanwhile, for reconciles that wait for a cache.
                _, late = await asyncio.wait(self._workers, timeout=self._config.drain_timeout)
                if late:
                    _log.warning("%d workers did not end in time and are cut off", len(late))
        finally:
            await waiting.cancel_all(self._workers)
            self._ended = self._ended or EndedError("the reconciler has ended")
            self._answer_all(self._ended)
            await self._stack.aclose()

    async def _watch_over(self, tasks: "list[asyncio.Task[None]]") -> None:
        """Stops all work if a watch or a worker ends, which none should."""
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        defects = [task.exception() for task in done if not task.cancelled()]
        self._ended = BrokenError(f"a watch or a worker has ended unexpectedly: {defects}")
        self._ended.__cause__ = next(filter(None, defects), None)
        _log.critical("%s; nothing is done any more", self._ended, exc_info=self._ended.__cause__)
        self._queue.shut_down(time.monotonic())
        for worker in self._workers:
            worker.cancel()
        self._answer_all(self._ended)

    def _on_event(self, event: Event) -> None:
        """Applies a watch event to the caches, and queues workloads."""
        now = time.monotonic()
        for wake in self._state.apply_event(event, self._traces.noting(event, time.time_ns())):
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
        """A worker. It begins when every resource has been listed."""
        await self._synced.wait()
        while (key := await self._next(urgent)) is not None:
            workload, waited = self._state.store.daemon_set(key), self._queue.waited(key)
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
            self._wake_workers()

    def _answer_all(self, error: Exception) -> None:
        for waiters in self._waiters.values():
            _answer(waiters, error)
        self._waiters.clear()

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
            case Failed(reason, after):
                backoff = self._queue.add_rate_limited(key, now)
                delay = backoff if after is None else min(backoff, after)
                _log.warning("%s: %s; trying again in %.3f s", key, reason, delay)
            case Waiting(behind):
                # The event that updates the caches queues the workload.
                _log.debug("%s: %s", key, behind)
            case Unreachable(reason):
                _log.debug("%s: %s", key, reason)
                after = self._config.unreachable_delay
        if after is not None:
            self._queue.add_after(key, after, now)
        if executor.waits_for_watches(key):
            # If an expectation is never met, no event queues the workload.
            self._queue.add_after(key, EXPECTATIONS_EXPIRED, now)


def _limits(config: Config) -> RateLimits:
    """The back-off limits. Upstream's maximum of 1000 s delays the recovery long after a quota was raised or a webhook
    was repaired. A maximum of one minute still protects the apiserver.
    """
    if config.limits is not None:
        return config.limits
    return RateLimits() if config.options.profile == v1.PROFILE_UPSTREAM_STRICT else RateLimits(max_delay=60.0)


def _record_outcome(span: Span, ending: Ending) -> None:
    """Sets the result of a reconcile on its span."""
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


def _answer(waiters: "list[asyncio.Future[Ending]]", answer: Ending | Exception) -> None:
    """Answers the callers that still wait."""
    for asked in waiters:
        if asked.done():
            continue
        if isinstance(answer, Exception):
            asked.set_exception(answer)
        else:
            asked.set_result(answer)
