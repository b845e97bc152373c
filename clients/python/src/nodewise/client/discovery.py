"""Looks up the addresses of a name: periodically, and at once when a replica fails."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from .. import waiting
from .target import Dns, address

PERIOD = 10.0
"""Time between two look-ups, in seconds. Resolvers cache, and the records of a headless Service have a short lifetime.
"""
SHORTEST = 1.0
"""Shortest time between two look-ups, in seconds, however many calls fail."""
TIMEOUT = 10.0
"""Timeout of one look-up, in seconds."""

Lookup: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""Looks up a name. Returns all addresses, as `host:port`."""


async def system_lookup(host: str, port: int) -> list[str]:
    """Looks up a name with the resolver of the system."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [address(str(sockaddr[0]), int(sockaddr[1])) for *_, sockaddr in infos]


async def addresses(target: Dns, lookup: Lookup, requested: asyncio.Event) -> AsyncIterator[list[str] | str]:
    """Yields all A and AAAA records, or the reason why the look-up failed, again and again. An empty result counts as a
    failure: a name server that has just started has no records yet, and the known replicas probably still exist.
    """
    while True:
        requested.clear()
        try:
            async with waiting.timeout(TIMEOUT):
                found: list[str] | str = sorted(set(await lookup(target.host, target.port)))
            found = found or f"{target}: the name has no address"
        except asyncio.TimeoutError:
            found = f"{target}: the look-up took longer than {TIMEOUT} s"
        except OSError as error:
            found = f"{target}: {error}"
        yield found
        await asyncio.sleep(SHORTEST)
        try:
            async with waiting.timeout(PERIOD - SHORTEST):
                await requested.wait()
        except asyncio.TimeoutError:
            pass
