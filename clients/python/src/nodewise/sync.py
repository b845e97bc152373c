"""The plan client and the reconciler for programs without asyncio. They run on an event loop in their own thread."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import grpc.aio

from . import client, v1, waiting
from .actuator import Actuator
from .client import BuildRequest
from .execute import Ending
from .kinds import DAEMON_SET, Kind
from .measurements import Measurer

if TYPE_CHECKING:
    from . import reconciler

_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="_Blocking[Any]")
_Answer = TypeVar("_Answer")


class _Portal(Generic[_T]):
    """Runs an async context manager on an event loop in a thread while it is open."""

    def __init__(self, name: str, manager: Callable[[], AbstractAsyncContextManager[_T]]) -> None:
        self._name = name
        self._manager = manager
        self._lock = threading.Lock()
        """Held to begin a call, to open and to close, so that no call begins after the close."""
        self._is_open = False
        """Whether calls are accepted."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._entered: AbstractAsyncContextManager[_T]
        self._inner: _T

    def open(self) -> None:
        """Starts the thread and enters the context manager there. Ends the thread on failure."""
        with self._lock:
            if self._loop is not None:
                raise RuntimeError(f"the {self._name} is in use already")
            self._loop = loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_serve, args=[loop], name=f"nodewise {self._name}", daemon=True)
        self._thread.start()
        try:
            _answer(asyncio.run_coroutine_threadsafe(self._enter(), loop))
        except BaseException:
            self._end(loop)
            raise
        self._is_open = True

    def close(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Leaves the context manager and ends the thread. Refuses further calls; those under way fail or end."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
        assert self._loop is not None
        try:
            _answer(asyncio.run_coroutine_threadsafe(self._entered.__aexit__(kind, error, traceback), self._loop))
        finally:
            self._end(self._loop)

    def call(self, use: Callable[[_T], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """Runs a call in the thread and waits for its result. An interrupt of the wait cancels the call."""
        with self._lock:
            if not self._is_open:
                raise RuntimeError(f"use the {self._name} as a context manager: with ... as {self._name.split()[-1]}")
            assert self._loop is not None
            future = asyncio.run_coroutine_threadsafe(use(self._inner), self._loop)
        return _answer(future)

    async def _enter(self) -> None:
        self._entered = self._manager()
        self._inner = await self._entered.__aenter__()

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(loop.stop)
        try:
            self._thread.join()
        finally:
            self._loop = None


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Runs a loop until it is stopped. Then cancels all of its tasks, so that no other thread waits for them
    forever.
    """

    async def end() -> None:
        # A task that ends may start another one.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await waiting.cancel_all(tasks)

    try:
        loop.run_forever()
        loop.run_until_complete(end())
    finally:
        loop.close()


def _answer(future: "Future[_Answer]") -> _Answer:
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


class _Blocking(Generic[_T]):
    """A context manager with blocking methods, which run in its thread."""

    _portal: _Portal[_T]

    def __enter__(self: _Self) -> _Self:
        self._portal.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._portal.close(kind, error, traceback)


class PlanClient(_Blocking[client.PlanClient]):
    """`nodewise.PlanClient` with blocking methods; a context manager. May be used from several threads."""

    def __init__(
        self,
        *targets: str,
        config: client.ClientConfig | None = None,
        interceptors: Iterable[grpc.aio.ClientInterceptor] = (),
    ) -> None:
        self._portal = _Portal(
            "plan client", lambda: client.PlanClient(*targets, config=config, interceptors=interceptors)
        )

    def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        """See `nodewise.PlanClient.plan`. `build` is called in the client's thread."""
        return self._portal.call(lambda inner: inner.plan(uid, build))

    def plan_request(self, request: v1.PlanRequest) -> v1.Plan:
        """See `nodewise.PlanClient.plan_request`."""
        return self._portal.call(lambda inner: inner.plan_request(request))

    def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        """See `nodewise.PlanClient.report`."""
        return self._portal.call(lambda inner: inner.report(report))

    def explain(self, request: v1.ExplainRequest) -> v1.ExplainResponse:
        """See `nodewise.PlanClient.explain`."""
        return self._portal.call(lambda inner: inner.explain(request))

    def simulate(self, request: v1.SimulateRequest) -> Iterator[v1.SimulateResponse]:
        """See `nodewise.PlanClient.simulate`. The steps come as they are played. Closing the iterator ends the play."""
        ended = object()

        async def begin(inner: client.PlanClient) -> AsyncGenerator[v1.SimulateResponse, None]:
            return inner.simulate(request)

        async def step(_: client.PlanClient) -> object:
            return await anext(responses, ended)

        async def close(_: client.PlanClient) -> None:
            await responses.aclose()

        responses = self._portal.call(begin)
        try:
            while isinstance(response := self._portal.call(step), v1.SimulateResponse):
                yield response
        finally:
            self._portal.call(close)

    def evaluate_nodes(self, request: v1.EvaluateNodesRequest) -> v1.EvaluateNodesResponse:
        """See `nodewise.PlanClient.evaluate_nodes`."""
        return self._portal.call(lambda inner: inner.evaluate_nodes(request))

    def capabilities(self) -> v1.GetCapabilitiesResponse:
        """See `nodewise.PlanClient.capabilities`."""
        return self._portal.call(lambda inner: inner.capabilities())

    def health(self) -> str | None:
        """See `nodewise.PlanClient.health`."""

        async def told(inner: client.PlanClient) -> str | None:
            return inner.health()

        return self._portal.call(told)


class Reconciler(_Blocking["reconciler.Reconciler"]):
    """`nodewise.Reconciler` for a program without asyncio. It runs inside its context manager.

    Needs `nodewise[kube]`. It finds its cluster as kubectl does, with the given context if there is one.
    `client_config` and `interceptors` are those of its plan client.
    """

    def __init__(
        self,
        *targets: str,
        config: "reconciler.Config | None" = None,
        client_config: client.ClientConfig | None = None,
        interceptors: Iterable[grpc.aio.ClientInterceptor] = (),
        actuator: Callable[[Actuator], Actuator] | None = None,
        context: str | None = None,
        kinds: Iterable[Kind] = (DAEMON_SET,),
        measurer: Measurer | None = None,
    ) -> None:
        """`actuator` may wrap the writes, `kinds` are the kinds of workload, and `measurer` makes measurements on the
        event loop of the reconciler, as for `nodewise.Reconciler`.
        """
        kinds = tuple(kinds)

        @asynccontextmanager
        async def working() -> "AsyncIterator[reconciler.Reconciler]":
            from . import reconciler
            from .kube import KubeClient

            async with (
                KubeClient.from_environment(context=context) as kube,
                client.PlanClient(*targets, config=client_config, interceptors=interceptors) as service,
            ):
                inner = reconciler.Reconciler(kube, service, config, actuator=actuator, kinds=kinds, measurer=measurer)
                stop = asyncio.Event()
                running = asyncio.create_task(inner.run(stop))
                try:
                    yield inner
                finally:
                    stop.set()
                    await running

        self._portal = _Portal("reconciler", working)

    def reconcile(self, namespace: str, name: str, kind: Kind = DAEMON_SET) -> Ending:
        """See `nodewise.Reconciler.reconcile`."""
        return self._portal.call(lambda inner: inner.reconcile(namespace, name, kind))

    def health(self) -> list[str]:
        """See `nodewise.Reconciler.health`."""

        async def told(inner: "reconciler.Reconciler") -> list[str]:
            return inner.health()

        return self._portal.call(told)

    @property
    def refused_plans(self) -> int:
        """See `nodewise.Reconciler.refused_plans`."""

        async def told(inner: "reconciler.Reconciler") -> int:
            return inner.refused_plans

        return self._portal.call(told)
