"""Timeouts and the cancellation of tasks, equal on every Python version.

`asyncio.wait_for` is not used: before Python 3.12 it may lose a cancellation that arrives together with the result. A
caller that waits for the end of that task then waits forever.
"""

import asyncio
import sys
from collections.abc import Iterable
from typing import Any

if sys.version_info >= (3, 11):
    from asyncio import timeout
else:
    from async_timeout import timeout

__all__ = ["cancel_all", "timeout"]


async def cancel_all(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancels tasks and waits for their end, with any result. A task that swallows the cancellation is cancelled
    again.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=1)
        for task in done:
            if not task.cancelled():
                task.exception()
