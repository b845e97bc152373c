"""Watches of an apiserver: list, then watch from the version of the list, and list again after a gap.

The own-write gate needs the version of every list and every bookmark. First lists are quorum reads: after a crash the
executor must see all its earlier writes. Objects are converted as they arrive, and only the result is kept. An object
that cannot be read is skipped and logged, so that it does not affect the others.

An apiserver whose etcd was restored from a backup may be at a lower version than a watch has reached. It does not
refuse a watch from that version, and shows nothing until it gets there. So the version of the apiserver is checked
before a watch continues (D-112).

A custom resource may be installed and removed at any time. While it is not there, there are no objects. A resource that
is there and cannot be listed is another matter: then it is not known which objects there are.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from types import TracebackType
from typing import TypeAlias

import msgspec

from .. import rawjson, tracing, waiting
from ..actuator import ActuatorError
from ..convert import ConversionError
from ..gate import is_behind
from ..kinds import DAEMON_SET, KIND_OF, Kind, Resource, cached_kinds, watched
from ..objects import Node, Pod, Revision, Workload
from ..policies import RolloutPolicy
from ..rawjson import UNREADABLE, Served
from ..sanitize import one_line
from ..store import Applied, Bookmark, Deleted, Event, Listed, RevisionPage, Unknown, Watched, is_kept
from .client import KubeClient
from .installed import OtherVersionError, is_installed
from .pages import UnreadableError, lossy, page_size, pages, read_page

_log = tracing.logger(__name__)

WATCH_SECONDS = 290
"""The apiserver ends a watch after this time, in seconds."""
IDLE_LIMIT = 90.0
"""Seconds without data after which the connection of a watch counts as broken. The apiserver sends a bookmark every
minute.
"""
OPEN_TIMEOUT = 30.0
"""Timeout for opening a watch, and for a list of one object, in seconds."""
DISCOVERY_INTERVAL = 10.0
"""Time between two looks whether an optional resource is installed by now, in seconds."""
SHORT_WATCH = 5.0
"""A watch that ends sooner than this, in seconds, without an event has failed. Starting the next one at once would
overload the apiserver.
"""

Sink: TypeAlias = Callable[[Event], None]
"""Receives the events of the watches."""

_READ: dict[Resource, Callable[[Served], Watched]] = {
    **{resource: partial(Workload.read, kind) for resource, kind in KIND_OF.items()},
    Resource.PODS: Pod.read,
    Resource.NODES: Node.read,
    Resource.REVISIONS: Revision.read,
    Resource.POLICIES: RolloutPolicy.read,
}
_MAY_BE_MISSING = {*KIND_OF, Resource.REVISIONS}
"""Objects of these resources are skipped if they cannot be read. Pods and nodes are not skipped: a missing pod would
get a second pod beside it, and the pods of a missing node would be deleted. No rollout may go on without its
RolloutPolicy.
"""


class Watches:
    """Watches all resources that the plans of some kinds of workload need, in one namespace or in all, as an async
    context manager.
    """

    def __init__(
        self, client: KubeClient, sink: Sink, *, namespace: str | None = None, kinds: Collection[Kind] = (DAEMON_SET,)
    ) -> None:
        cached = tuple(cached_kinds(kinds))
        self._followers = {
            resource: _Follower(client, resource, namespace, sink, restored=self._restored, kinds=cached)
            for resource in watched(kinds)
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Watches":
        # The DaemonSets decide which revisions are cached completely.
        first = {Resource.REVISIONS: self._followers.get(Resource.DAEMON_SETS)}
        self._tasks = [
            asyncio.create_task(follower.run(first.get(resource))) for resource, follower in self._followers.items()
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await waiting.cancel_all(self._tasks)

    def _restored(self, shown: Resource) -> None:
        """A list of one resource showed a restore of etcd. All other resources are listed again: the apiserver may
        already have passed their versions, or may just not send deletions.
        """
        for resource, follower in self._followers.items():
            if resource is not shown:
                follower.list_again()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks of the watches. None of them should end."""
        return self._tasks

    def health(self) -> dict[Resource, str]:
        """The failing watches, with reasons."""
        return {follower.resource: follower.failure for follower in self._followers.values() if follower.failure}


class _GoneError(Exception):
    """The apiserver does not have the events since that version any more. A new list is needed."""


class _BrokenError(Exception):
    """The watch or the list failed."""

    def __init__(self, reason: str, *, list_again: bool = False) -> None:
        super().__init__(one_line(reason))
        self.list_again = list_again


class _Identity(msgspec.Struct, rename="camel"):
    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


def _identity(served: Served) -> _Identity:
    """The identity of an object, as far as it can be read."""
    try:
        return msgspec.json.decode(served.members["metadata"], type=_Identity)
    except (KeyError, *UNREADABLE):
        return _Identity()


class _Follower:
    """Lists and watches one resource."""

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        namespace: str | None,
        sink: Sink,
        *,
        restored: Callable[[Resource], None],
        kinds: Collection[Kind],
    ) -> None:
        """`kinds` are the kinds of workload that are cached."""
        self.resource = resource
        self.failure = "waiting for the first list"
        """Why the watch does not work; empty if it does."""
        self._client = client
        self._path = resource.collection(namespace)
        self._sink = sink
        self._restored = restored
        self._kinds = kinds
        self._version = ""
        """The version that was reached, from which the next watch begins; empty before the first list, and while the
        resource is not installed.
        """
        self._must_list = True
        self._must_discover = resource.is_optional
        """Whether to ask first if the resource is installed."""
        self._is_absent = False
        """The sink was told that the resource is not installed."""
        self._is_unknown = False
        """The sink was told that it is not known which objects there are."""
        self._outdated = asyncio.Event()
        """Set if another resource showed a restore of etcd and this one was not listed since."""
        self._is_confirmed = False
        """The apiserver has confirmed that it has reached that version."""
        self._has_listed = asyncio.Event()
        """Set after the first list."""
        self._failures = 0

    def list_again(self) -> None:
        """Requests a new list, also while a watch is running."""
        self._outdated.set()

    async def run(self, first: "_Follower | None" = None) -> None:
        """Runs forever, beginning after the first list of `first`."""
        if first is not None:
            await first._has_listed.wait()
        while True:
            try:
                await self._step()
            except _GoneError:
                _log.info("the watch of %s fell too far behind; listing again", self.resource.value)
                self._must_list = True
                await self._back_off()
            except (_BrokenError, ActuatorError, asyncio.TimeoutError) as error:
                if isinstance(error, _BrokenError) and error.list_again:
                    self._must_list = True
                if isinstance(error, ActuatorError) and error.http_status == 404:
                    self._must_discover = self.resource.is_optional
                self.failure = str(error) or "no answer in time"
                _log.warning("following %s: %s; trying again", self.resource.value, self.failure)
                await self._back_off()

    async def _step(self) -> None:
        try:
            if self._must_discover or (self.resource.is_optional and self._outdated.is_set()):
                await self._discover()
            elif self._must_list or self._outdated.is_set():
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

    async def _back_off(self) -> None:
        """Waits 0.5 s, doubling to 30 s, with jitter. The pause grows until a watch shows an event: a watch that opens
        and fails again has not recovered.
        """
        delay = min(0.5 * 2.0 ** min(self._failures, 6), 30.0)
        self._failures += 1
        await asyncio.sleep(delay * random.uniform(1.0, 2.0))

    async def _discover(self) -> None:
        """Asks whether the resource is installed. If it is, lists it. If it is not, tells the sink so once, and after
        each restore of etcd, and waits before the next question.
        """
        try:
            found = await is_installed(self._client, self.resource)
        except OtherVersionError as error:
            if not self._is_unknown:
                _log.error("nothing is rolled out without the %s: %s", self.resource.value, error)
            self._is_absent, self._is_unknown = False, True
            self._sink(Unknown(self.resource, str(error)))
            raise _BrokenError(str(error)) from error
        if found:
            if self._is_absent:
                _log.info("%s are installed by now", self.resource.value)
            await self._list()
            return
        if not self._is_absent or self._outdated.is_set():
            _log.info("%s are not installed", self.resource.value)
            self._outdated.clear()
            self._version, self._must_discover, self._is_absent, self._is_unknown = "", True, True, False
            self._sink(Listed(self.resource, [], ""))
            self._has_listed.set()
        self.failure = ""
        try:
            async with waiting.timeout(DISCOVERY_INTERVAL):
                await self._outdated.wait()
        except asyncio.TimeoutError:
            pass

    async def _list(self) -> None:
        """Lists all objects as of one version, page by page. Triggers new lists of the other resources if this list is
        the first to show a restore of etcd.
        """
        is_known = self._outdated.is_set()
        self._must_list = True
        self._outdated.clear()
        objects: list[Watched] = []
        version = ""
        async for page in pages(self._client, self._path, page_size(self.resource)):
            for served in page.items:
                found = self._read(Served(lossy(served)))
                if found is not None and is_kept(found, self._kinds):
                    objects.append(found)
            if self.resource is Resource.REVISIONS:
                # Revisions may be long, and the store keeps only some of them completely.
                self._sink(RevisionPage([found for found in objects if isinstance(found, Revision)], not version))
                objects = []
            version = page.resource_version
            # Other tasks must run during the list of a large cluster.
            await asyncio.sleep(0)
        if not version:
            raise _BrokenError("the list has no resourceVersion")
        _log.debug("listed %s at %s", self.resource.value, version)
        has_restarted = is_behind(self._version, version)
        self._version, self._is_confirmed, self._must_list = version, True, False
        self._must_discover = self._is_absent = self._is_unknown = False
        self.failure = ""
        self._sink(Listed(self.resource, objects, version))
        self._has_listed.set()
        if has_restarted and self._outdated.is_set():
            # Another resource noticed the restore earlier, and this list is already from after it.
            self._outdated.clear()
        elif has_restarted and not is_known:
            self._restored(self.resource)

    async def _confirm(self) -> None:
        """Checks the version of the apiserver. If it is lower than the reached one, etcd was restored, and all objects
        are listed again.
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
        """Watches until the apiserver ends the watch, as it does every few minutes, or until a list is needed."""
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
                await waiting.cancel_all([following, outdated])
        finally:
            await stream.__aexit__(None, None, None)

    async def _follow(self, pieces: AsyncIterator[bytes]) -> None:
        began, shown, rest = time.monotonic(), False, b""
        while True:
            try:
                async with waiting.timeout(IDLE_LIMIT):
                    piece = await anext(pieces, b"")
            except asyncio.TimeoutError:
                _log.debug("the watch of %s has shown nothing for too long; starting a new one", self.resource.value)
                return
            except Exception as error:
                # For example because the apiserver restarts. The next watch begins at the last event.
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
            kind, text = rawjson.read_event(line)
            served = Served(text)
            if kind == "ERROR":
                raise self._refused(msgspec.json.decode(served.text, type=_Status))
        except (KeyError, *UNREADABLE) as error:
            # Another watch would get the same event.
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
        """Reads an object. If it cannot be read and may be skipped, its last state stays in the cache."""
        try:
            return _READ[self.resource](served)
        except ConversionError as error:
            of = _identity(served)
            name = f"{of.namespace}/{of.name}"
            if self.resource not in _MAY_BE_MISSING:
                raise _BrokenError(f"reading {name}: {error}", list_again=True) from error
            _log.warning("%s %s is skipped, because it cannot be read: %s", self.resource.value, one_line(name), error)
            return None
