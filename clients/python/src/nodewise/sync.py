"""The plan client and the reconciler for programs without asyncio: the same ones, on an event loop in a thread of their
own.
"""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import client, v1
from .client import BuildRequest
from .execute import Ending

if TYPE_CHECKING:
    from . import reconciler

_T = TypeVar("_T")


class _Portal:
    """An event loop in a thread."""

    def __init__(self, name: str) -> None:
        self._loop: asyncio.AbstractEventLoop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Runs it there and waits for it. An interrupt of the wait cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Ends the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class PlanClient:
    """`nodewise.PlanClient`, whose methods wait for the answer; a context manager. May be used from several threads."""

    def __init__(self, *targets: str, config: client.ClientConfig | None = None) -> None:
        self._targets = targets
        self._config = config
        self._portal: _Portal | None = None
        self._client: client.PlanClient | None = None

    def __enter__(self) -> "PlanClient":
        portal = _Portal("nodewise-plan-client")

        async def start() -> client.PlanClient:
            return await client.PlanClient(*self._targets, config=self._config).__aenter__()

        try:
            self._client = portal.call(start())
        except BaseException:
            portal.close()
            raise
        self._portal = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._portal is not None and self._client is not None:
            self._portal.call(self._client.__aexit__(kind, error, traceback))
            self._portal.close()
        self._portal = self._client = None

    def plan(self, uid: str, build: BuildRequest) -> v1.Plan:
        """See `nodewise.PlanClient.plan`. `build` is called in the client's thread."""
        portal, inner = self._open()
        return portal.call(inner.plan(uid, build))

    def plan_request(self, request: v1.PlanRequest) -> v1.Plan:
        """See `nodewise.PlanClient.plan_request`."""
        portal, inner = self._open()
        return portal.call(inner.plan_request(request))

    def report(self, report: v1.ReportRequest) -> v1.ReportResponse:
        """See `nodewise.PlanClient.report`."""
        portal, inner = self._open()
        return portal.call(inner.report(report))

    def explain(self, request: v1.ExplainRequest) -> v1.ExplainResponse:
        """See `nodewise.PlanClient.explain`."""
        portal, inner = self._open()
        return portal.call(inner.explain(request))

    def capabilities(self) -> v1.GetCapabilitiesResponse:
        """See `nodewise.PlanClient.capabilities`."""
        portal, inner = self._open()
        return portal.call(inner.capabilities())

    def health(self) -> str | None:
        """See `nodewise.PlanClient.health`."""
        return self._open()[1].health()

    def _open(self) -> tuple[_Portal, client.PlanClient]:
        if self._portal is None or self._client is None:
            raise RuntimeError("use the client as a context manager: with PlanClient(...) as client")
        return self._portal, self._client


class Reconciler:
    """`nodewise.Reconciler` for a program without asyncio; a context manager, inside of which it works.

    Needs `nodewise[kube]`. It finds its cluster as kubectl does.
    """

    def __init__(self, *targets: str, config: "reconciler.Config | None" = None, context: str | None = None) -> None:
        self._targets = targets
        self._config = config
        self._context = context
        self._portal: _Portal | None = None
        self._inner: reconciler.Reconciler | None = None
        self._stop: asyncio.Event | None = None
        self._running: asyncio.Task[None] | None = None

    def __enter__(self) -> "Reconciler":
        portal = _Portal("nodewise-reconciler")
        try:
            portal.call(self._start())
        except BaseException:
            portal.close()
            raise
        self._portal = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._portal is not None:
            try:
                self._portal.call(self._end())
            finally:
                self._portal.close()
                self._portal = None

    def reconcile(self, namespace: str, name: str) -> Ending:
        """See `nodewise.Reconciler.reconcile`."""
        if self._portal is None or self._inner is None:
            raise RuntimeError("use the reconciler as a context manager: with Reconciler(...) as reconciler")
        return self._portal.call(self._inner.reconcile(namespace, name))

    async def _start(self) -> None:
        from . import reconciler
        from .kube import KubeClient

        self._stop, started = asyncio.Event(), asyncio.Event()
        stop = self._stop

        async def run() -> None:
            async with (
                KubeClient.from_environment(context=self._context) as kube,
                client.PlanClient(*self._targets) as service,
            ):
                self._inner = reconciler.Reconciler(kube, service, self._config)
                started.set()
                await self._inner.run(stop)

        self._running = asyncio.create_task(run())
        began = asyncio.create_task(started.wait())
        await asyncio.wait([self._running, began], return_when=asyncio.FIRST_COMPLETED)
        if not started.is_set():
            began.cancel()
            await self._running

    async def _end(self) -> None:
        if self._stop is not None and self._running is not None:
            self._stop.set()
            await self._running
