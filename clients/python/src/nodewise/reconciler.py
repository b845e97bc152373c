"""The reconciler: feeds watch events into the caches, queues workloads, runs a controller for each kind of workload,
and shuts down in order.
"""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType

from . import times, tracing, v1, waiting
from .actuator import Actuator, ObserveActuator
from .apply import DEFAULT_CONCURRENCY
from .client import PlanService
from .controller import EXPECTATIONS_EXPIRED, Controller
from .errors import BrokenError, EndedError
from .execute import Ending, Executor
from .handlers import Urgency
from .kinds import DAEMON_SET, Key, Kind
from .kube import EventRecorder, KubeActuator, KubeClient, Watches
from .measurements import Measurements, Measurer
from .queue import RateLimits
from .reconcile_traces import ReconcileTraces
from .selection import Selection
from .state import State
from .store import Event
from .tracing import BatchTraces

_log = tracing.logger(__name__)

__all__ = ["EXPECTATIONS_EXPIRED", "Config", "Reconciler"]


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a reconciler. Times are in seconds."""

    options: v1.PlanOptions = field(default_factory=v1.PlanOptions)
    """The options of each plan request."""
    selector: str | None = None
    """Which workloads are owned: those whose labels match this label selector, in the syntax of `kubectl get
    --selector`, such as `app=agent,tier in (a,b)`. None and the empty selector select all.

    The selector is evaluated anew for each plan, with the object that the plan request contains. A workload that does
    not match is left alone: the reconciler neither plans nor writes for it, and forgets its state. It is owned as soon
    as its labels match. A filter in front of `Reconciler.reconcile`, such as one of kopf, has none of these effects.
    """
    namespaces: Collection[str] | None = None
    """The namespaces whose workloads are owned; None for all. Workloads elsewhere are left alone. With a single
    namespace, only its pods, revisions and workloads are watched. Otherwise those of all namespaces are.
    """
    observe: bool = False
    """Observe mode: log each write instead of doing it, for running beside another controller."""
    workers: int = 2
    """The number of general workers of each kind of workload, which is the number of concurrent reconciles. One more
    worker takes only urgent workloads, so a new node gets its pods while all general workers are busy.
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
    """Delay in seconds before a workload is reconciled again after the service could not be reached. It is at least
    twice the time of the failed reconcile.
    """
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
        """The selection of owned workloads. Raises `ValueError` for an invalid selector."""
        return Selection.of(self.selector, self.namespaces)


def _constant(kind: Kind) -> str:
    """The name of the constant of a kind of workload, for messages."""
    return {"DaemonSet": "DAEMON_SET", "ReplicaSet": "REPLICA_SET"}.get(kind.name, "DEPLOYMENT")


class Reconciler:
    """Owns workloads: watches a cluster, asks a planning service for plans, applies them and reports.

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
        kinds: Iterable[Kind] = (DAEMON_SET,),
        measurer: Measurer | None = None,
    ) -> None:
        """`actuator` may wrap the writes, for example to refuse them while another process is the leader. `kinds` are
        the kinds of workload that are owned, such as `(DAEMON_SET, REPLICA_SET, DEPLOYMENT)`. `measurer` makes the
        measurements for the analysis of RolloutPolicies. Without one no host may be called, so a policy with a check is
        not accepted.
        """
        if isinstance(kinds, (str, Kind)):
            raise ValueError("kinds is a collection of kinds, such as kinds=[DAEMON_SET, DEPLOYMENT]")
        kinds = tuple(dict.fromkeys(kinds))
        for kind in kinds:
            if not isinstance(kind, Kind):
                raise ValueError(f"{kind!r} is no kind of workload: there are DAEMON_SET, REPLICA_SET and DEPLOYMENT")
        if not kinds:
            raise ValueError("no kind of workload is given: at least one is needed, such as kinds=[DAEMON_SET]")
        self._kube = kube
        self._config = config or Config()
        self._service = service
        self._wrap = actuator
        self._kinds = kinds
        self._state = State(self._config.buckets, self._config.options, kinds)
        self._traces = ReconcileTraces()
        limits = _limits(self._config)
        self._controllers = {
            kind.name: Controller(kind, self._config, limits, self._state, self._traces) for kind in kinds
        }
        self._measurements = Measurements(measurer, self._measured)
        self._is_synced = False
        self._resyncing: list[asyncio.Task[None]] = []
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

    async def reconcile(self, namespace: str, name: str, kind: Kind = DAEMON_SET) -> Ending:
        """Reconciles a workload as soon as possible, and returns the result. Retries happen by themselves.

        It is safe to call this from any handler, for example of kopf, and while the workload is being reconciled: it is
        then reconciled once more. Raises `EndedError` if the reconciler has ended or ends meanwhile, `RuntimeError` if
        it has not started, and `ValueError` for a kind that it does not own.
        """
        if self._ended is not None:
            raise self._ended
        if self._guard is None:
            raise RuntimeError(
                "the reconciler has not started: call reconcile inside of async with Reconciler(...) as reconciler"
            )
        controller = self._controllers.get(kind.name)
        if controller is None:
            owned = ", ".join(map(_constant, self._kinds))
            raise ValueError(
                f"the reconciler does not own {kind}s: pass reconcile a kind that it owns ({owned}), "
                f"or make it with Reconciler(..., kinds=[{_constant(kind)}])"
            )
        return await controller.reconcile(Key(namespace, name, kind.name))

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
            measurements=self._measurements,
            now=times.now,
        )
        self._watches = await self._stack.enter_async_context(
            Watches(self._kube, self._on_event, namespace=selection.only_namespace, kinds=self._kinds)
        )
        for controller in self._controllers.values():
            controller.start(self._executor)
        self._resyncing = [asyncio.create_task(self._resync())]
        tasks = [*self._watches.tasks, *self._workers, *self._resyncing]
        self._guard = asyncio.create_task(self._watch_over(tasks))

    @property
    def _workers(self) -> "list[asyncio.Task[None]]":
        return [worker for controller in self._controllers.values() for worker in controller.workers]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._guard is not None:
            await waiting.cancel_all([self._guard])
        self._shut_down()
        if self._executor is not None:
            self._executor.stop()
        await waiting.cancel_all(self._resyncing)
        workers = self._workers
        try:
            if self._is_synced and workers:
                # The watches continue meanwhile, for reconciles that wait for a cache.
                _, late = await asyncio.wait(workers, timeout=self._config.drain_timeout)
                if late:
                    _log.warning("%d workers did not end in time and are cut off", len(late))
        finally:
            await waiting.cancel_all(workers)
            self._ended = self._ended or EndedError("the reconciler has ended")
            self._answer_all(self._ended)
            await self._measurements.close()
            await self._stack.aclose()

    async def _watch_over(self, tasks: "list[asyncio.Task[None]]") -> None:
        """Stops all work if a watch or a worker ends, which none should."""
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        defects = [task.exception() for task in done if not task.cancelled()]
        self._ended = BrokenError(f"a watch or a worker has ended unexpectedly: {defects}")
        self._ended.__cause__ = next(filter(None, defects), None)
        _log.critical("%s; nothing is done any more", self._ended, exc_info=self._ended.__cause__)
        self._shut_down()
        for worker in [*self._workers, *self._resyncing]:
            worker.cancel()
        self._answer_all(self._ended)

    def _shut_down(self) -> None:
        for controller in self._controllers.values():
            controller.shut_down()

    def _answer_all(self, error: Exception) -> None:
        for controller in self._controllers.values():
            controller.answer_all(error)

    def _on_event(self, event: Event) -> None:
        """Applies a watch event to the caches, and queues workloads."""
        now = time.monotonic()
        for wake in self._state.apply_event(event, self._traces.noting(event, time.time_ns())):
            self._controllers[wake.key.kind].wake(wake, now)
        if not self._is_synced and not self._state.store.unsynced():
            _log.info("all caches are filled; starting to work")
            self._is_synced = True
            for controller in self._controllers.values():
                controller.synced()
        self._notify()

    def _notify(self) -> None:
        for controller in self._controllers.values():
            controller.notify()

    def _measured(self, key: Key) -> None:
        """A measurement of a workload has ended: plans again, with its result."""
        self._controllers[key.kind].add(key, Urgency.NORMAL)
        self._notify()

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._config.resync)
            for key in self._state.every_key():
                self._controllers[key.kind].add(key, Urgency.NORMAL)
            self._notify()


def _limits(config: Config) -> RateLimits:
    """The back-off limits. Upstream's maximum of 1000 s delays the recovery long after a quota was raised or a webhook
    was repaired. A maximum of one minute still protects the apiserver.
    """
    if config.limits is not None:
        return config.limits
    return RateLimits() if config.options.profile == v1.PROFILE_UPSTREAM_STRICT else RateLimits(max_delay=60.0)
