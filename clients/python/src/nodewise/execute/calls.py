"""Calls of the planning service that end when the executor stops."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..client import UnreachableError
from .endings import StoppedError

_T = TypeVar("_T")


class ServiceCalls:
    """The calls under way."""

    def __init__(self) -> None:
        self._stopping = False
        self._calls: dict[asyncio.Task[Any], float] = {}
        """Each call, and for how many seconds it may continue after the stop."""

    def stop(self) -> None:
        """Cancels the calls under way, each after its grace period."""
        self._stopping = True
        for call, grace in self._calls.items():
            _cancel_after(call, grace)

    def require_running(self) -> None:
        """Raises `StoppedError` after `stop`."""
        if self._stopping:
            raise StoppedError

    async def run(self, request: Coroutine[Any, Any, _T], *, grace: float) -> _T:
        """Runs one call. After `stop` the call is cancelled when `grace` seconds are over.

        Raises `UnreachableError` for a call that was cancelled: by the stop, or because its channel was closed.
        """
        call = asyncio.create_task(request)
        self._calls[call] = grace
        if self._stopping:
            _cancel_after(call, grace)
        try:
            await asyncio.wait({call})
        finally:
            del self._calls[call]
            call.cancel()
        if call.cancelled():
            raise UnreachableError("the call of the planning service was cancelled")
        return call.result()


def _cancel_after(call: "asyncio.Task[Any]", grace: float) -> None:
    asyncio.get_running_loop().call_later(grace, call.cancel)
