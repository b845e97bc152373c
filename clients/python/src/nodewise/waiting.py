"""Deadlines and the end of tasks, the same on every Python.

Not `asyncio.wait_for`: before Python 3.12 it may lose a cancellation that comes together with the answer, and whoever
waits for the end of that task then waits for ever.
"""

import asyncio
import sys
from collections.abc import Iterable
from typing import Any

if sys.version_info >= (3, 11):
    from asyncio import timeout
else:
    from async_timeout import timeout

__all__ = ["ended", "timeout"]


async def ended(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancels tasks and waits for their end, whatever comes of it. One that swallows a cancellation is told again."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=1)
        for task in done:
            if not task.cancelled():
                task.exception()
