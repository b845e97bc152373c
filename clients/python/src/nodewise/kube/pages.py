"""Reads lists, page by page. A page is in memory as a whole, and anyone who may create objects decides how long they
are: an apiserver may store a character in one byte and serve it in six. A page that would be too long is requested
again with fewer objects.
"""

from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import msgspec

from .. import rawjson
from ..kinds import Resource
from ..rawjson import UNREADABLE
from .client import KubeClient, TooLongError

PAGE_SIZE = 250
"""Objects per page of a list."""
_PAGE_SIZES = {Resource.REVISIONS: 50, Resource.POLICIES: 50}
"""Other page sizes. A ControllerRevision or a RolloutPolicy may have a megabyte."""
PAGE_BYTES = 32 << 20
"""Longest page with several objects, in bytes."""
OBJECT_BYTES = 64 << 20
"""Longest page with one object, in bytes. An apiserver accepts 3 MiB for one object, and serves each byte in at most
six.
"""
PAGE_TIMEOUT = 65.0
"""Timeout of one page, in seconds. The apiserver itself gives up after a minute."""


class UnreadableError(Exception):
    """The response is not a list."""


class Page(NamedTuple):
    """A page of a list."""

    items: Iterator[bytes]
    """The served objects, one at a time, so that there is no second copy of the page. Raises `UnreadableError`."""
    resource_version: str
    proceed: str
    """The continue token of the next page; empty if there is none."""
    length: int
    """The length of the page, in bytes."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    proceed: str = msgspec.field(name="continue", default="")


_METADATA = msgspec.json.Decoder(_Metadata)


def page_size(resource: Resource) -> int:
    """Most objects per page."""
    return _PAGE_SIZES.get(resource, PAGE_SIZE)


async def read_page(client: KubeClient, path: str, limit: int, token: str = "", timeout: float = PAGE_TIMEOUT) -> Page:
    """Reads the page that begins at a token, with at most `limit` objects. Raises `ActuatorError`, including
    `TooLongError`, and `UnreadableError`.
    """
    params = {"limit": str(limit)} | ({"continue": token} if token else {})
    max_bytes = OBJECT_BYTES if limit == 1 else PAGE_BYTES
    answer = await client.call("GET", path, params=params, timeout=timeout, max_bytes=max_bytes)
    return _read(answer.body)


async def pages(client: KubeClient, path: str, most: int) -> AsyncIterator[Page]:
    """The pages of a list as of one version, each with at most `most` objects. Raises as `read_page` does."""
    limit, token = most, ""
    while True:
        try:
            page = await read_page(client, path, limit, token)
        except TooLongError:
            if limit == 1:
                raise
            limit = max(limit // 4, 1)
            continue
        token, is_short = page.proceed, page.length < PAGE_BYTES // 4
        yield page
        # Frees the page before the next one is read.
        del page
        if not token:
            return
        if is_short:
            limit = min(2 * limit, most)


def _read(text: bytes) -> Page:
    try:
        found = rawjson.read_list(text)
        metadata = _METADATA.decode(found.metadata)
    except UNREADABLE as error:
        raise UnreadableError(f"reading the list: {error}") from error
    return Page(_readable(found.items), metadata.resource_version, metadata.proceed, len(text))


def _readable(items: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from items
    except ValueError as error:
        raise UnreadableError(f"reading the list: {error}") from error


def lossy(served: bytes) -> bytes:
    """Replaces bytes that are not UTF-8. An apiserver keeps such bytes in the data of a ControllerRevision as a client
    wrote them. Every read replaces them, so the object is the same in a list, in a watch and in a GET.
    """
    if served.isascii():
        return served
    try:
        served.decode()
    except UnicodeDecodeError:
        return served.decode(errors="replace").encode()
    return served
