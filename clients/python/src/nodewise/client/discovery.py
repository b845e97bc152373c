"""The addresses of a name: looked up now and then, and at once when a replica fails."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from .. import waiting
from .target import Dns, address

PERIOD = 10.0
"""How often a name is looked up, in seconds. Resolvers cache; a headless Service's records live for some seconds."""
SHORTEST = 1.0
"""The shortest time between two look-ups, however much fails."""
TIMEOUT = 10.0
"""How long one may take."""

Lookup: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""Looks a name up: all addresses, as `host:port`."""


async def system_lookup(host: str, port: int) -> list[str]:
    """Looks names up as the system does it."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [address(str(sockaddr[0]), int(sockaddr[1])) for *_, sockaddr in infos]


async def addresses(target: Dns, lookup: Lookup, doubt: asyncio.Event) -> AsyncIterator[list[str] | str]:
    """Every A and AAAA record, again and again, or why they cannot be told. No record at all is taken for a failure: a
    name server that has just started knows nobody, and who was known is more likely still there.
    """
    while True:
        doubt.clear()
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
                await doubt.wait()
        except asyncio.TimeoutError:
            pass
