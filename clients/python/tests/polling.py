"""Waiting for a condition that nothing signals."""

import asyncio
import time
from collections.abc import Callable

INTERVAL = 0.01
"""Seconds between two checks of a condition."""


async def eventually(condition: Callable[[], bool], what: str, within: float = 90) -> None:
    """Waits until a condition holds, on the event loop."""
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, f"not in time: {what}"
        await asyncio.sleep(INTERVAL)


def eventually_in_thread(condition: Callable[[], bool], what: str, within: float = 90) -> None:
    """Waits until a condition holds, in a thread without an event loop."""
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, f"not in time: {what}"
        time.sleep(INTERVAL)
