"""Lists, page by page. A page is in memory as a whole, and whoever may create objects decides how long they are: an
apiserver stores `<` in one byte and serves it in six. So a page that would be too long is asked for again with fewer
objects.
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
_PAGE_SIZES = {Resource.REVISIONS: 50}
"""Where it is another number: of these each may have a megabyte as a matter of course."""
PAGE_BYTES = 32 << 20
"""Longest page of several objects."""
OBJECT_BYTES = 64 << 20
"""Longest page of one object. An apiserver takes 3 MiB of one, and serves each byte in six at most."""
PAGE_TIMEOUT = 65.0
"""Time for one page of a list, in seconds; the apiserver itself gives up after a minute."""


class UnreadableError(Exception):
    """What was served is no list."""


class Page(NamedTuple):
    """A page of a list."""

    items: Iterator[bytes]
    """Each object as it was served, one at a time, so that there is no second copy of the page. Raises
    `UnreadableError`.
    """
    resource_version: str
    proceed: str
    """The token of the next page; empty for none."""
    length: int
    """Bytes of the page."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    proceed: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


_LIST = msgspec.json.Decoder(_List)
_METADATA = msgspec.json.Decoder(_Metadata)


def page_size(resource: Resource) -> int:
    """Objects per page at most."""
    return _PAGE_SIZES.get(resource, PAGE_SIZE)


async def read_page(client: KubeClient, path: str, limit: int, token: str = "", timeout: float = PAGE_TIMEOUT) -> Page:
    """Reads the page of a list that begins at a token, of so many objects at most. Raises `ActuatorError`,
    `TooLongError` among them, and `UnreadableError`.
    """
    params = {"limit": str(limit)} | ({"continue": token} if token else {})
    max_bytes = OBJECT_BYTES if limit == 1 else PAGE_BYTES
    answer = await client.call("GET", path, params=params, timeout=timeout, max_bytes=max_bytes)
    return _read(answer.body)


async def pages(client: KubeClient, path: str, most: int) -> AsyncIterator[Page]:
    """The pages of a list, of so many objects at most, as of one version. Raises as `read_page` does."""
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
        # Nothing of it is kept while the next one is read.
        del page
        if not token:
            return
        if is_short:
            limit = min(2 * limit, most)


def _read(text: bytes) -> Page:
    items: Iterator[bytes]
    try:
        whole = _LIST.decode(text)
        items, metadata = map(bytes, whole.items or ()), whole.metadata
    except UNREADABLE:
        # Perhaps only what is within an object cannot be read.
        try:
            places = rawjson.places(text)
            metadata = _METADATA.decode(text[places["metadata"]])
        except (KeyError, *UNREADABLE) as error:
            raise UnreadableError(f"reading the list: {error}") from error
        items = _elements(text, places.get("items"))
    return Page(items, metadata.resource_version, metadata.proceed, len(text))


def _elements(text: bytes, place: slice | None) -> Iterator[bytes]:
    if place is None or text.startswith(b"null", place.start, place.stop):
        return
    try:
        yield from rawjson.elements_at(text, place)
    except ValueError as error:
        raise UnreadableError(f"reading the list: {error}") from error


def lossy(served: bytes) -> bytes:
    """The data of a ControllerRevision is what some client wrote, byte for byte, and an apiserver keeps bytes that are
    no UTF-8. They are replaced, wherever an object is read: it is the same one in a list, in a watch and by itself.
    """
    if served.isascii():
        return served
    try:
        served.decode()
    except UnicodeDecodeError:
        return served.decode(errors="replace").encode()
    return served
