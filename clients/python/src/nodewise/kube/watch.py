"""The watches of a real apiserver: list, then watch from the list's version, and begin again after a gap.

The own-write gate needs the version of every list and of every bookmark, which is why the loop is our own. First lists
are most-recent (quorum) reads: an executor that was killed must not see less than it had written. Objects are projected
as they arrive and the rest of them is never kept. One that cannot be read is passed over and named: the others must not
suffer for it.

An apiserver whose etcd was restored from a backup may be at a lower version than a watch has reached. It does not
refuse such a watch, and shows nothing until it gets there. So before a watch goes on it is asked where it is (D-112).
"""

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TypeAlias

import msgspec

from .. import rawjson, tracing, waiting
from ..actuator import ActuatorError
from ..convert import ConversionError
from ..gate import is_behind
from ..kinds import Resource
from ..objects import DaemonSet, Node, Pod, Revision
from ..rawjson import UNREADABLE, Served
from ..store import Applied, Bookmark, Deleted, Event, Listed, RevisionPage, Watched, is_kept
from ..told import in_short
from .client import KubeClient
from .pages import UnreadableError, lossy, page_size, pages, read_page

_log = tracing.logger(__name__)

WATCH_SECONDS = 290
"""After this the apiserver ends a watch."""
IDLE_LIMIT = 90.0
"""Silence, in seconds, after which a watch is taken for dead, as the other end of a broken connection is: the apiserver
sends a bookmark every minute.
"""
OPEN_TIMEOUT = 30.0
"""Time until a watch begins, and for a list of one object."""
SHORT_WATCH = 5.0
"""A watch that ends sooner than this and showed nothing has failed: to begin at once again would be a storm."""

Sink: TypeAlias = Callable[[Event], None]
"""Takes in what the watches show."""

_READ: dict[Resource, Callable[[Served], Watched]] = {
    Resource.DAEMON_SETS: DaemonSet.read,
    Resource.PODS: Pod.read,
    Resource.NODES: Node.read,
    Resource.REVISIONS: Revision.read,
}
_MAY_BE_MISSING = {Resource.DAEMON_SETS, Resource.REVISIONS}
"""Of these one may be passed over when it cannot be read. Not of the others, which would be planned around it: a pod
that is not seen gets another beside it, and the pods of a node that is not seen are deleted.
"""


class Watches:
    """Follows everything that changes, in one namespace or in all, as an async context manager."""

    def __init__(self, client: KubeClient, sink: Sink, *, namespace: str | None = None) -> None:
        self._followers = {
            resource: _Follower(client, resource, namespace, sink, self._restored) for resource in Resource
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Watches":
        # Which revisions are kept whole depends on the DaemonSets.
        first = {Resource.REVISIONS: self._followers[Resource.DAEMON_SETS]}
        self._tasks = [
            asyncio.create_task(follower.run(first.get(resource))) for resource, follower in self._followers.items()
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await waiting.ended(self._tasks)

    def _restored(self, shown: Resource) -> None:
        """The list of one resource has shown that etcd was restored from a backup. The apiserver may have passed the
        versions of the others by now, or just not show what is gone: they are listed again.
        """
        for resource, follower in self._followers.items():
            if resource is not shown:
                follower.list_again()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """What follows. None of them should end: a cache that is followed no more must not be planned from."""
        return self._tasks

    def health(self) -> dict[Resource, str]:
        """Which watches do not work, and why."""
        return {follower.resource: follower.failure for follower in self._followers.values() if follower.failure}


class _GoneError(Exception):
    """What happened since the version is not known any more: a new list is needed."""


class _BrokenError(Exception):
    """The watch or the list does not work."""

    def __init__(self, reason: str, *, list_again: bool = False) -> None:
        super().__init__(in_short(reason))
        self.list_again = list_again


class _Identity(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


_EVENT = re.compile(rb'\{"type":"([A-Z]+)","object":(\{.*\})\}\s*', re.DOTALL)
"""An event in the form in which an apiserver writes it."""


def _event(line: bytes) -> tuple[str, Served]:
    """The type and the object of an event. Raises ValueError or KeyError for what is none."""
    usual = _EVENT.fullmatch(line)
    if usual is not None:
        return usual[1].decode(), Served(usual[2])
    read = rawjson.members(line)
    return json.loads(read["type"]), Served(read["object"])


def _identity(served: Served) -> _Identity:
    """What says which object it is, as far as that can be read."""
    try:
        return msgspec.json.decode(served.members["metadata"], type=_Identity)
    except (KeyError, *UNREADABLE):
        return _Identity()


class _Follower:
    """Follows one resource."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        namespace: str | None,
        sink: Sink,
        restored: Callable[[Resource], None],
    ) -> None:
        self.resource = resource
        self.failure = "waiting for the first list"
        """Why it does not work; empty when it does."""
        self._client = client
        self._path = resource.collection(namespace)
        self._sink = sink
        self._restored = restored
        self._version = ""
        """What was reached, and where the next watch begins; empty before the first list."""
        self._must_list = True
        self._outdated = asyncio.Event()
        """Another follower found that etcd was restored, and no list was begun since."""
        self._is_confirmed = False
        """The apiserver is known to have reached that version."""
        self._has_listed = asyncio.Event()
        """A list was shown."""
        self._failures = 0

    def list_again(self) -> None:
        """Lets everything be listed again, though a watch is under way."""
        self._outdated.set()

    async def run(self, first: "_Follower | None" = None) -> None:
        """Begins when `first` has shown a list. Never ends."""
        if first is not None:
            await first._has_listed.wait()
        while True:
            try:
                await self._step()
            except _GoneError:
                _log.info("the watch of %s fell too far behind; listing again", self.resource.value)
                self._must_list = True
                await self._rest()
            except (_BrokenError, ActuatorError, asyncio.TimeoutError) as error:
                if isinstance(error, _BrokenError) and error.list_again:
                    self._must_list = True
                self.failure = str(error) or "no answer in time"
                _log.warning("following %s: %s; trying again", self.resource.value, self.failure)
                await self._rest()

    async def _step(self) -> None:
        try:
            if self._must_list or self._outdated.is_set():
                await self._list()
            elif self._is_confirmed:
                await self._watch()
            else:
                await self._confirm()
        except ActuatorError as error:
            if error.http_status == 410:
                raise _GoneError from error
            raise
        except UnreadableError as error:
            raise _BrokenError(str(error)) from error

    async def _rest(self) -> None:
        """0.5 s doubling to 30 s, with jitter. They go on to grow until the watch has shown something: what can be
        begun but not kept up has not recovered.
        """
        delay = min(0.5 * 2.0 ** min(self._failures, 6), 30.0)
        self._failures += 1
        await asyncio.sleep(delay * random.uniform(1.0, 2.0))

    async def _list(self) -> None:
        """Lists everything, page by page, as of one version. Tells the others of a restore of etcd that none of them
        knows of, when the list is taken in: theirs come after it.
        """
        is_known = self._outdated.is_set()
        self._must_list = True
        self._outdated.clear()
        objects: list[Watched] = []
        version = ""
        async for page in pages(self._client, self._path, page_size(self.resource)):
            for served in page.items:
                found = self._read(Served(lossy(served)))
                if found is not None and is_kept(found):
                    objects.append(found)
            if self.resource is Resource.REVISIONS:
                # They may be long, and the store keeps but few of them whole.
                self._sink(RevisionPage([found for found in objects if isinstance(found, Revision)], not version))
                objects = []
            version = page.resource_version
            # A list of a large cluster must not hold up everything else.
            await asyncio.sleep(0)
        if not version:
            raise _BrokenError("the list has no resourceVersion")
        _log.debug("listed %s at %s", self.resource.value, version)
        begins_anew = is_behind(self._version, version)
        self._version, self._is_confirmed, self._must_list = version, True, False
        self.failure = ""
        self._sink(Listed(self.resource, objects, version))
        self._has_listed.set()
        if begins_anew and self._outdated.is_set():
            # Another one was quicker, and this list is of after the restore already.
            self._outdated.clear()
        elif begins_anew and not is_known:
            self._restored(self.resource)

    async def _confirm(self) -> None:
        """Asks the apiserver at which version it is. One that is behind ours has begun anew, and everything is listed
        again.
        """
        now = (await read_page(self._client, self._path, 1, timeout=OPEN_TIMEOUT)).resource_version
        if is_behind(self._version, now):
            _log.warning(
                "the apiserver has %s at %s, and the watch had reached %s; listing again",
                self.resource.value,
                now,
                self._version,
            )
            self._must_list = True
        self._is_confirmed = True

    async def _watch(self) -> None:
        """Watches until the apiserver ends it, as it does every few minutes, or a list is needed."""
        self._is_confirmed = False
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        stream = self._client.stream(self._path, params)
        async with waiting.timeout(OPEN_TIMEOUT):
            pieces = await stream.__aenter__()
        try:
            self.failure = ""
            following, outdated = (
                asyncio.create_task(self._follow(pieces)),
                asyncio.create_task(self._outdated.wait()),
            )
            try:
                await asyncio.wait((following, outdated), return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    following.result()
            finally:
                await waiting.ended([following, outdated])
        finally:
            await stream.__aexit__(None, None, None)

    async def _follow(self, pieces: AsyncIterator[bytes]) -> None:
        began, shown, rest = time.monotonic(), False, b""
        while True:
            try:
                async with waiting.timeout(IDLE_LIMIT):
                    piece = await anext(pieces, b"")
            except asyncio.TimeoutError:
                _log.debug("the watch of %s is silent for too long; watching anew", self.resource.value)
                return
            except Exception as error:
                # As of an apiserver that restarts: the next watch begins where this one ended, with what was cut off.
                _log.debug("the connection of the watch of %s was cut: %r", self.resource.value, error)
                break
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in filter(None, lines):
                self._take(lossy(line))
                shown, self._failures = True, 0
        if not shown and time.monotonic() - began < SHORT_WATCH:
            raise _BrokenError("the watch ended as soon as it had begun")

    def _take(self, line: bytes) -> None:
        try:
            kind, served = _event(line)
            if kind == "ERROR":
                raise self._refused(msgspec.json.decode(served.text, type=_Status))
        except (KeyError, *UNREADABLE) as error:
            # The same would be served again.
            raise _BrokenError(f"reading what the watch shows: {error}", list_again=True) from error
        version = _identity(served).resource_version
        if kind == "BOOKMARK":
            self._sink(Bookmark(self.resource, version))
        else:
            found = self._read(served)
            if found is not None:
                self._sink(Deleted(found) if kind == "DELETED" else Applied(found))
        self._version = version or self._version

    def _refused(self, status: _Status) -> Exception:
        return _GoneError() if status.code == 410 else _BrokenError(status.message)

    def _read(self, served: Served) -> Watched | None:
        """Reads an object. Of one that may be missing and cannot be read its last state stays what is known."""
        try:
            return _READ[self.resource](served)
        except ConversionError as error:
            of = _identity(served)
            name = f"{of.namespace}/{of.name}"
            if self.resource not in _MAY_BE_MISSING:
                raise _BrokenError(f"reading {name}: {error}", list_again=True) from error
            _log.warning(
                "%s %s is passed over, since it cannot be read: %s", self.resource.value, in_short(name), error
            )
            return None
