"""Tests calls, watches and Events with a scripted apiserver."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from kubernetes.client import Configuration

from nodewise import v1
from nodewise.actuator import ActuatorError, PatchType, Refusal, WorkloadEvent
from nodewise.kinds import ObjectKey, Resource
from nodewise.kube import EventRecorder, KubeActuator, KubeClient, Watches, pages, watch
from nodewise.kube.client import Answer
from nodewise.objects import Node, Pod, Revision, Workload
from nodewise.store import Applied, Bookmark, Deleted, Event, Listed, RevisionPage, Store, Unknown

from .objects import compact, deep
from .polling import eventually

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
POD = {"metadata": {"namespace": "ns", "name": "p", "uid": "u", "resourceVersion": "5"}}
CLOSING = web.AppKey("closing", asyncio.Event)
WORKLOAD = v1.WorkloadReference(kind="DaemonSet", namespace="ns", name="foo", uid="u1")


class Apiserver:
    """Returns the scripted responses of a path, the last one repeatedly."""

    def __init__(self) -> None:
        self.script: dict[str, list[Handler]] = {}
        self.versions: list[Handler] = []
        """The version that is returned when a watch checks it; later than all scripted versions."""
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/list":
            return await self.script["GET /list"][0](request)
        if request.query.get("limit") == "1":
            ahead = page(None, "1000000")
            return await (self.versions.pop(0) if self.versions else ahead)(request)
        self.requests.append((request.method, request.path, dict(request.query), await request.text()))
        self.headers.append(dict(request.headers))
        answers = self.script.get(f"{request.method} {request.path}")
        if not answers:
            return status(404, "NotFound")
        return await (answers.pop(0) if len(answers) > 1 else answers[0])(request)

    def asked(self, path: str) -> list[dict[str, str]]:
        return [query for _, asked, query, _ in self.requests if asked == path]


def status(code: int, reason: str = "", message: str = "m", causes: Any = None) -> web.Response:
    body = {"kind": "Status", "message": message, "reason": reason, "details": {"causes": causes}}
    return web.json_response(body, status=code)


def answer(body: Any) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(body=text, content_type="application/json")

    return handle


def raw(code: int, body: bytes) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=code, body=body)

    return handle


def refuse(*of: Any) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return status(*of)

    return handle


def lines(*of: Any, stays: bool = True) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        for line in of:
            text = line if isinstance(line, bytes) else json.dumps(line).encode()
            # In two pieces, as a network may deliver them.
            await stream.write(text[:10])
            await stream.write(text[10:] + b"\n")
        if stays:
            await request.app[CLOSING].wait()
        return stream

    return handle


def after(event: asyncio.Event, *of: Any) -> Handler:
    """A watch that begins when the event is set."""

    async def handle(request: web.Request) -> web.StreamResponse:
        await event.wait()
        return await lines(*of)(request)

    return handle


def page(items: Any, version: str = "10", proceed: str = "") -> Handler:
    return answer({"metadata": {"resourceVersion": version, "continue": proceed}, "items": items})


class Pages:
    """Serves a list of objects with names of these lengths, and records the requests."""

    def __init__(self, *lengths: int) -> None:
        self.names = [f"{number:x>{length}}" for number, length in enumerate(lengths)]
        self.asked: list[tuple[int, int]] = []
        """The limits and continue tokens of the requests."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        limit, begin = int(request.query["limit"]), int(request.query.get("continue", "0"))
        self.asked.append((limit, begin))
        end = begin + limit
        items = [pod_at("5", name) for name in self.names[begin:end]]
        return await page(items, proceed=str(end) if end < len(self.names) else "")(request)


@pytest.fixture(autouse=True)
def patient_recorders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodewise.kube.events._LAST_EVENTS", 60.0)


@pytest.fixture
async def apiserver() -> AsyncIterator[tuple[Apiserver, KubeClient]]:
    server, application = Apiserver(), web.Application()
    application[CLOSING] = asyncio.Event()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    configuration = Configuration(host=f"http://{host}:{port}")
    configuration.api_key["authorization"] = "Bearer secret"
    async with KubeClient(configuration, user_agent="tests") as client:
        yield server, client
    application[CLOSING].set()
    await runner.cleanup()


async def test_refusals_are_told_by_kind(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    for handler, refusal, code, message in (
        (refuse(409, "AlreadyExists", "taken"), Refusal.ALREADY_EXISTS, 409, "taken"),
        (refuse(409, "Conflict"), Refusal.CONFLICT, 409, "m"),
        (refuse(404, "NotFound"), Refusal.NOT_FOUND, 404, "m"),
        (refuse(422, "Invalid"), Refusal.INVALID, 422, "m"),
        (refuse(403, "Forbidden", "m", [{"reason": "NamespaceTerminating"}]), Refusal.NAMESPACE_TERMINATING, 403, "m"),
        (refuse(500), Refusal.OTHER, 500, "m"),
    ):
        server.script["GET /x"] = [handler]
        with pytest.raises(ActuatorError, match=message) as error:
            await client.call("GET", "/x")
        assert (error.value.refusal, error.value.http_status) == (refusal, code)
    assert server.headers[0]["Authorization"] == "Bearer secret"
    assert server.headers[0]["User-Agent"] == "tests"


async def test_a_call_is_bounded_in_time(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    server.script["GET /x"] = [lines()]
    with pytest.raises(ActuatorError, match="no answer within") as error:
        await client.call("GET", "/x", timeout=0.1)
    assert error.value.is_unclear


async def test_nobody_there_is_unclear() -> None:
    async with KubeClient(Configuration(host="http://127.0.0.1:1")) as client:
        with pytest.raises(ActuatorError) as error:
            await client.call("GET", "/x")
        assert error.value.is_unclear


async def test_writes(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    pod, pods = "/api/v1/namespaces/ns/pods/p", "/api/v1/namespaces/ns/pods"
    workload = "/apis/apps/v1/namespaces/ns/daemonsets/foo/status"
    for call in (f"POST {pods}", f"PATCH {pod}", f"DELETE {pod}", f"PUT {workload}", f"GET {pod}"):
        server.script[call] = [answer(POD)]
    actuator = KubeActuator(client, EventRecorder(client))
    key = ObjectKey(Resource.PODS, "ns", "p")
    assert await actuator.create(Resource.PODS, "ns", b"{}") == ("p", "5")
    assert await actuator.patch(key, PatchType.STRATEGIC, b'{"a":1}') == ("p", "5")
    await actuator.delete(key, "u")
    await actuator.delete(key, None)
    assert await actuator.replace_status(ObjectKey(Resource.DAEMON_SETS, "ns", "foo"), b"{}") == ("p", "5")
    assert json.loads(await actuator.read(key)) == POD
    manager = {"fieldManager": "tests"}
    options = '{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}}'
    assert server.requests == [
        ("POST", pods, manager, "{}"),
        ("PATCH", pod, manager, '{"a":1}'),
        ("DELETE", pod, {}, options),
        ("DELETE", pod, {}, ""),
        ("PUT", workload, manager, "{}"),
        ("GET", pod, {}, ""),
    ]
    assert server.headers[1]["Content-Type"] == "application/strategic-merge-patch+json"
    server.script[f"POST {pods}"] = [answer(b"odd")]
    with pytest.raises(ActuatorError, match="reading the apiserver's answer"):
        await actuator.create(Resource.PODS, "ns", b"{}")


PATHS = {
    Resource.DAEMON_SETS: "/apis/apps/v1/daemonsets",
    Resource.PODS: "/api/v1/pods",
    Resource.NODES: "/api/v1/nodes",
    Resource.REVISIONS: "/apis/apps/v1/controllerrevisions",
}


class Shown(list[Event]):
    """The events of one resource, with the other resources silent."""

    def pages(self) -> list[RevisionPage]:
        return [event for event in self if isinstance(event, RevisionPage)]

    def of(self, resource: Resource) -> list[Event]:
        kinds = {
            Resource.DAEMON_SETS: Workload,
            Resource.PODS: Pod,
            Resource.NODES: Node,
            Resource.REVISIONS: Revision,
        }
        return [
            event
            for event in self
            if (
                event.resource is resource
                if isinstance(event, Listed | Unknown | Bookmark)
                else not isinstance(event, RevisionPage) and isinstance(event.object, kinds[resource])
            )
        ]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the pauses after failures."""

    async def no_pause(_: Any) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(watch._Follower, "_back_off", no_pause)


async def follow(
    apiserver: tuple[Apiserver, KubeClient], resource: Resource, handlers: list[Handler], count: int, requests: int = 0
) -> list[Event]:
    """Watches a resource until there are `count` events and `requests` requests."""
    server, client = apiserver
    for other, path in PATHS.items():
        server.script[f"GET {path}"] = handlers if other is resource else [page(None), lines()]
    shown = Shown()
    async with Watches(client, shown.append) as watches:
        await eventually(lambda: len(shown.of(resource)) >= count, f"{count} events")
        await eventually(lambda: len(server.asked(PATHS[resource])) >= requests, f"{requests} requests")
        await eventually(lambda: resource not in watches.health(), "it works")
    return shown.pages() + shown.of(resource) if resource is Resource.REVISIONS else shown.of(resource)


def pod_at(version: str, name: str = "p", **more: Any) -> dict[str, Any]:
    return {"metadata": {**POD["metadata"], "resourceVersion": version, "name": name}, **more}


async def test_a_list_and_then_a_watch_from_there(apiserver: tuple[Apiserver, KubeClient]) -> None:
    foreign = pod_at("4", "foreign")
    foreign["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "controller": True}]
    handlers = [
        page([pod_at("5", "a"), foreign], proceed="more"),
        page([pod_at("6", "b")]),
        lines(
            {"type": "ADDED", "object": pod_at("11")},
            {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}},
            {"type": "DELETED", "object": pod_at("13")},
            stays=False,
        ),
        lines(),
    ]
    events = await follow(apiserver, Resource.PODS, handlers, 4, requests=4)
    listed, added, bookmark, deleted = events
    assert isinstance(listed, Listed)
    assert [pod.projection.name for pod in listed.objects if isinstance(pod, Pod)] == ["a", "b"]
    assert listed.resource_version == "10"
    assert isinstance(added, Applied)
    assert isinstance(deleted, Deleted)
    assert bookmark == Bookmark(Resource.PODS, "12")
    first, second, *watched = apiserver[0].asked("/api/v1/pods")
    # Without a resourceVersion: a most-recent read.
    assert first == {"limit": "250"}
    assert second == {"limit": "250", "continue": "more"}
    assert [query["resourceVersion"] for query in watched] == ["10", "13"]


async def test_a_watch_that_fell_behind_lists_again(apiserver: tuple[Apiserver, KubeClient], quick: None) -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    handlers = [page([]), lines(gone), page([], "20"), refuse(410, "Expired"), page([], "30"), lines()]
    events = await follow(apiserver, Resource.PODS, handlers, 3)
    assert [event.resource_version for event in events if isinstance(event, Listed)] == ["10", "20", "30"]


# An apiserver serves 250 pods in up to 2 GB.
async def test_a_page_that_is_too_long_is_asked_for_again_with_fewer_objects(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = apiserver
    monkeypatch.setattr(pages, "PAGE_BYTES", 10_000)
    monkeypatch.setattr(pages, "OBJECT_BYTES", 30_000)

    async def read(lists: Pages) -> list[str]:
        server.script["GET /list"] = [lists]
        shown = [item async for part in pages.pages(client, "/list", 20) for item in part.items]
        return [json.loads(item)["metadata"]["name"] for item in shown]

    lists = Pages(*[3] * 22, 20_000, 20_000, 4_000, 4_000, *[3] * 20)
    assert await read(lists) == lists.names
    assert lists.asked == [
        *[(20, 0), (20, 20), (5, 20), (1, 20), (2, 21), (1, 21), (2, 22), (1, 22)],
        *[(1, 23), (1, 24), (1, 25), (1, 26), (2, 27), (4, 29), (8, 33), (16, 41)],
    ], "a page far below the bound lets the next one have twice as many, up to what was asked for"
    lists = Pages(3, 30_000)
    with pytest.raises(ActuatorError, match="more than 30000 bytes"):
        await read(lists)
    assert lists.asked == [(20, 0), (5, 0), (1, 0), (2, 1), (1, 1)]


async def test_a_list_is_complete_though_its_pages_are_too_long(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 100_000)
    listing = Pages(*[5_000] * 30)

    async def handler(request: web.Request) -> web.StreamResponse:
        return await (lines() if "watch" in request.query else listing)(request)

    (listed,) = await follow(apiserver, Resource.PODS, [handler], 1)
    assert isinstance(listed, Listed)
    assert [pod.projection.name for pod in listed.objects if isinstance(pod, Pod)] == listing.names
    assert listing.asked == [(250, 0), (62, 0), (15, 0), (15, 15)]


# Memory holds one page and one object besides.
@pytest.mark.parametrize(
    ("text", "odd"),
    [(b"\\u003c" * 200_000, b"1"), (b"x" * 100_000, b"[" * 3000 + b"]" * 3000)],
    ids=["usual", "deep"],
)
def test_a_page_is_not_copied(text: bytes, odd: bytes) -> None:
    data = b'"annotations":{"a":"' + text + b'"},"managedFields":' + odd + b',"uid"'
    wide = compact(pod_at("5", "p")).replace(b'"uid"', data)
    body = b'{"metadata":{"resourceVersion":"10"},"items":[' + b",".join([wide] * 20) + b"]}"
    tracemalloc.start()
    try:
        assert [Pod.read(item).projection.name for item in pages._read(body).items] == ["p"] * 20
        assert tracemalloc.get_traced_memory()[1] < 10 * len(wide), "the page has 20 of it"
    finally:
        tracemalloc.stop()


# An apiserver quotes texts of other clients.
async def test_what_an_apiserver_says_is_told_on_one_line_and_cut(
    apiserver: tuple[Apiserver, KubeClient], caplog: pytest.LogCaptureFixture, quick: None
) -> None:
    server, client = apiserver
    for handler in (refuse(422, "Invalid", "a\n" + "x" * 5_000), raw(502, b"a\n" + b"x" * 5_000)):
        server.script["GET /x"] = [handler]
        with pytest.raises(ActuatorError) as error:
            await client.call("GET", "/x")
        assert str(error.value) == error.value.message
        assert error.value.message.startswith("a\\nxxx")
        assert len(error.value.message.encode()) <= 1_003
    broken = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "b\n" + "x" * 5_000}}
    odd = {"metadata": {"name": "odd\n" + "x" * 5_000, "labels": 1}}
    await follow(apiserver, Resource.REVISIONS, [page([odd]), lines(broken), lines()], 1, requests=3)
    told = [record.getMessage() for record in caplog.records if "xxx" in record.getMessage()]
    assert len(told) == 2
    assert all(len(line) < 1_200 and "\n" not in line for line in told)


# The DaemonSets decide which revisions are cached completely.
async def test_revisions_are_listed_after_daemon_sets(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    may_answer = asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        await may_answer.wait()
        return await page(None)(request)

    for path in PATHS.values():
        server.script[f"GET {path}"] = [page(None), lines()]
    server.script[f"GET {PATHS[Resource.DAEMON_SETS]}"] = [late, lines()]
    shown = Shown()
    async with Watches(client, shown.append):
        await eventually(lambda: bool(shown.of(Resource.PODS)) and bool(shown.of(Resource.NODES)), "the other lists")
        asked = server.asked(PATHS[Resource.REVISIONS])
        may_answer.set()
        assert asked == []
        await eventually(lambda: bool(shown.of(Resource.REVISIONS)), "a list of revisions")
    assert [query["limit"] for query in server.asked(PATHS[Resource.REVISIONS]) if "limit" in query] == ["50"]


async def test_revisions_of_a_namespace_are_read_page_by_page(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    path = "/apis/apps/v1/namespaces/ns/controllerrevisions"
    listing = b'{"metadata":{},"items":[{"metadata":{"name":"b"},"data":"\xff"}]}'
    server.script[f"GET {path}"] = [page([{"metadata": {"name": "a"}}], proceed="more"), answer(listing), answer(b"{")]
    actuator = KubeActuator(client, EventRecorder(client))
    read = [served async for served in actuator.read_all(Resource.REVISIONS, "ns")]
    assert [json.loads(served)["metadata"]["name"] for served in read] == ["a", "b"]
    assert server.asked(path) == [{"limit": "50"}, {"limit": "50", "continue": "more"}]
    with pytest.raises(ActuatorError, match="reading the list"):
        _ = [served async for served in actuator.read_all(Resource.REVISIONS, "ns")]


# D-112: an apiserver that restarted at a lower version sends nothing to a watch that is ahead of it.
async def test_an_apiserver_at_a_lower_version_is_listed_again(
    apiserver: tuple[Apiserver, KubeClient], quick: None
) -> None:
    def bookmark(version: str) -> Handler:
        return lines({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version}}}, stays=False)

    apiserver[0].versions = [page(None, "1001"), refuse(503), page([POD], "500", "more")]
    handlers = [page([], "1000"), bookmark("1001"), bookmark("1002"), page([], "500"), lines()]
    events = await follow(apiserver, Resource.PODS, handlers, 4, requests=5)
    assert [event.resource_version for event in events if isinstance(event, Listed | Bookmark)] == [
        "1000",
        "1001",
        "1002",
        "500",
    ]
    queries = apiserver[0].asked("/api/v1/pods")
    assert queries[3] == {"limit": "250"}
    assert queries[4]["resourceVersion"] == "500"


# D-112: a restore that one list shows applies to all resources. A watch whose version the apiserver has passed, or that
# is open, would not notice.
async def test_a_restore_that_one_list_shows_lets_the_others_list_again(
    apiserver: tuple[Apiserver, KubeClient], quick: None
) -> None:
    server, client = apiserver
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    for path in PATHS.values():
        server.script[f"GET {path}"] = [page([], "7"), lines(), page([], "8"), lines()]
    restored = asyncio.Event()
    server.script[f"GET {PATHS[Resource.NODES]}"] = [page([], "100"), after(restored, gone), page([], "50"), lines()]
    shown = Shown()
    async with Watches(client, shown.append):
        await eventually(lambda: all(len(server.asked(path)) == 2 for path in PATHS.values()), "all watch")
        restored.set()
        await eventually(lambda: all(len(server.asked(path)) == 4 for path in PATHS.values()), "all watch again")
    for resource in PATHS:
        versions = [event.resource_version for event in shown.of(resource) if isinstance(event, Listed)]
        assert versions == (["100", "50"] if resource is Resource.NODES else ["7", "8"])


async def test_what_fails_is_tried_again(apiserver: tuple[Apiserver, KubeClient], quick: None) -> None:
    broken = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "broken"}}
    handlers = [refuse(500), answer(b"{"), page([], ""), page([]), lines(broken), lines(stays=False), lines()]
    events = await follow(apiserver, Resource.PODS, handlers, 1, requests=7)
    assert [type(event) for event in events] == [Listed]


async def test_a_watch_that_is_cut_at_once_is_not_begun_again_at_once(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(b"{")
        assert request.transport is not None
        request.transport.abort()
        return stream

    pauses = 0

    async def count(_: object) -> None:
        nonlocal pauses
        pauses += 1

    monkeypatch.setattr(watch._Follower, "_back_off", count)
    event = {"type": "ADDED", "object": pod_at("11")}
    events = await follow(apiserver, Resource.PODS, [page([]), cut, cut, cut, lines(event)], 2)
    assert isinstance(events[1], Applied)
    assert pauses == 3


# A missing pod would get a second one beside it.
@pytest.mark.parametrize("resource", [Resource.PODS, Resource.NODES])
async def test_a_pod_or_node_that_cannot_be_read_is_not_passed_over(
    apiserver: tuple[Apiserver, KubeClient], quick: None, resource: Resource
) -> None:
    odd = {"metadata": {"name": "odd", "uid": "u", "labels": 1}}
    handlers = [page([odd]), page([]), lines({"type": "ADDED", "object": odd}), page([], "20"), lines()]
    events = await follow(apiserver, resource, handlers, 2)
    assert [event.resource_version for event in events if isinstance(event, Listed)] == ["10", "20"]


# The data of a revision is what some client wrote. It must not affect other objects.
@pytest.mark.parametrize(
    "data",
    [b"[" * 3000 + b"]" * 3000, b'"\\ud800"', b'"\xff"', b"1e999", b'"} ] \\" {"'],
    ids=["deep", "half", "bytes", "far", "ends"],
)
async def test_odd_revisions_are_followed(apiserver: tuple[Apiserver, KubeClient], data: bytes) -> None:
    odd = b'{"metadata":{"namespace":"ns","name":"odd","resourceVersion":"11"},"data":' + data + b"}"
    listing = b'{"metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"a"}},' + odd + b"]}"
    handlers = [answer(listing), lines(b'{"type":"MODIFIED","object":' + odd + b"}")]
    part, listed, applied = await follow(apiserver, Resource.REVISIONS, handlers, 2)
    assert isinstance(part, RevisionPage)
    assert listed == Listed(Resource.REVISIONS, [], "10"), "what the pages had is in the store already"
    assert isinstance(applied, Applied)
    assert isinstance(applied.object, Revision)
    assert part.revisions[1] == applied.object
    assert applied.object.object is not None
    assert applied.object.object.endswith(b'"data":' + data.replace(b"\xff", "\ufffd".encode()) + b"}")


async def test_deep_managed_fields_change_nothing(apiserver: tuple[Apiserver, KubeClient]) -> None:
    def handlers(form: Callable[[dict[str, Any]], bytes]) -> list[Handler]:
        first, second = (form(pod_at(version, "odd", spec={})) for version in ("5", "11"))
        listing = b'{"metadata":{"resourceVersion":"10"},"items":[' + first + b"]}"
        return [answer(listing), lines(b'{"type":"MODIFIED","object":' + second + b"}")]

    for resource in PATHS:
        shown = await follow(apiserver, resource, handlers(deep), 2)
        assert shown == await follow(apiserver, resource, handlers(compact), 2), resource
        store = Store(1)
        for event in shown:
            store.apply(event, lambda _: None)
        assert (store.count(resource), store.reached(resource)) == (1, "11")


async def test_what_is_written_may_have_deep_managed_fields(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    key = ObjectKey(Resource.PODS, "ns", "p")
    server.script[f"PATCH {key.path}"] = [answer(deep(POD))]
    actuator = KubeActuator(client, EventRecorder(client))
    assert await actuator.patch(key, PatchType.STRATEGIC, b"{}") == ("p", "5")


async def test_a_revision_that_cannot_be_read_is_passed_over(apiserver: tuple[Apiserver, KubeClient]) -> None:
    odd: dict[str, Any] = {"metadata": {"name": "odd", "labels": 1, "resourceVersion": "11"}}
    handlers = [
        page([odd, {"metadata": {"name": "a"}}]),
        lines(
            {"type": "ADDED", "object": odd},
            {"type": "ADDED", "object": {"metadata": {"name": "b", "resourceVersion": "12"}}},
        ),
    ]
    part, _, applied = await follow(apiserver, Resource.REVISIONS, handlers, 2)
    assert isinstance(part, RevisionPage)
    assert isinstance(applied, Applied)
    assert [len(part.revisions), applied.object.resource_version] == [1, "12"]


async def test_a_namespace_is_followed_alone(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    server.script["GET /apis/apps/v1/namespaces/ns/daemonsets"] = [page(None), lines()]
    async with Watches(client, lambda _: None, namespace="ns"):
        await eventually(lambda: len({path for _, path, _, _ in server.requests}) >= 6, "all lists")
    assert {path for _, path, _, _ in server.requests} == {
        "/apis/nodewise.dev",
        "/apis/nodewise.dev/v1alpha1",
        "/apis/apps/v1/namespaces/ns/daemonsets",
        "/api/v1/namespaces/ns/pods",
        "/api/v1/nodes",
        "/apis/apps/v1/namespaces/ns/controllerrevisions",
    }


async def test_events_are_sent_and_counted(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    path = "/api/v1/namespaces/ns/events"
    server.script[f"POST {path}"] = [answer({})]
    event = WorkloadEvent(WORKLOAD, "Warning", "FailedCreate", "Error creating: quota")
    async with EventRecorder(client) as recorder:
        recorder.record(event)
        await eventually(lambda: len(server.requests) == 1, "the first is created")
        name = json.loads(server.requests[0][3])["metadata"]["name"]
        server.script[f"PATCH {path}/{name}"] = [answer({}), refuse(404, "NotFound")]
        recorder.record(event)
        recorder.record(event)
        # Queued events are sent before the exit.
    created, patched, gone, again = server.requests
    first = json.loads(created[3])
    assert (first["type"], first["reason"], first["message"], first["count"]) == (
        "Warning",
        "FailedCreate",
        "Error creating: quota",
        1,
    )
    assert first["involvedObject"]["uid"] == "u1"
    assert first["source"] == {"component": "daemonset-controller"}
    assert json.loads(patched[3])["count"] == 2
    assert (gone[0], again[0]) == ("PATCH", "POST"), "events live for an hour or so"


async def test_an_event_that_cannot_be_sent_holds_up_no_other(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = apiserver
    real = client.call

    async def call(method: str, path: str, **how: Any) -> Answer:
        if b"odd" in how["body"]:
            raise KeyError("a defect")
        return await real(method, path, **how)

    monkeypatch.setattr(client, "call", call)
    async with EventRecorder(client) as recorder:
        for message in ("odd", "refused with 404"):
            recorder.record(WorkloadEvent(WORKLOAD, "Normal", "R", message))
    assert len(server.requests) == 1


async def test_credentials_that_cannot_be_had_are_no_answer(
    apiserver: tuple[Apiserver, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("the plugin is not there")

    client = apiserver[1]
    monkeypatch.setattr(client._configuration, "auth_settings", broken)
    with pytest.raises(ActuatorError, match="the plugin is not there"):
        await client.call("GET", "/x")


async def test_whoever_emits_an_event_never_fails(apiserver: tuple[Apiserver, KubeClient]) -> None:
    server, client = apiserver
    recorder = EventRecorder(client)
    for number in range(2000):
        recorder.record(WorkloadEvent(WORKLOAD, "Normal", "R", str(number)))
    async with EventRecorder(client) as recorder:
        recorder.record(WorkloadEvent(WORKLOAD, "Normal", "R", "refused with 404"))
    assert len(server.requests) == 1
