"""How many calls are under way at once: few altogether, fewer for one namespace, and one for a check of a policy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from .. import v1

MOST_CALLS = 16
"""Most calls under way at once."""
MOST_CALLS_OF_NAMESPACE = 4
"""Most of them for one namespace: whoever owns it cannot keep those of all others waiting."""


class Turns:
    """Gives turns to calls, in the order in which they came."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(MOST_CALLS)
        self._namespaces: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._checks: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def take(self, namespace: str, measurement: v1.MeasurementId) -> AsyncIterator[None]:
        """Waits for the turn of a measurement, which ends with the context. Whoever waits holds only what cannot keep
        others waiting: first the check, then the namespace, and one of the turns of all last.
        """
        of_check = self._checks.setdefault((measurement.policy_uid, measurement.check), asyncio.Semaphore(1))
        of_namespace = self._namespaces.setdefault(namespace, asyncio.Semaphore(MOST_CALLS_OF_NAMESPACE))
        async with of_check, of_namespace, self._all:
            yield
