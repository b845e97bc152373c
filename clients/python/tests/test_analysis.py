"""Tests the calls of the analysis: whom a policy may have asked, what is sent, and what an answer means."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import trustme
from aiohttp import web

from nodewise import v1
from nodewise.analysis import Analyzer
from nodewise.analysis.address import Address
from nodewise.analysis.answers import Answer, of_prometheus, of_webhook
from nodewise.analysis.calls import MOST_BYTES, MOST_TOKEN_BYTES
from nodewise.analysis.turns import MOST_CALLS_OF_NAMESPACE
from nodewise.measurements import Measurements, Result, Subject
from nodewise.v1 import verdict_service_pb2_grpc

from .polling import eventually
from .programs import CLIENT, running

WORKLOAD = v1.WorkloadReference(kind="DaemonSet", namespace="ns", name="foo", uid="u1")
SUBJECT = Subject(WORKLOAD, b'{"name":"foo","state":"Soaking"}')
PASS, FAIL = v1.ANALYSIS_VERDICT_PASS, v1.ANALYSIS_VERDICT_FAIL


# It could be read in two ways.
def test_a_path_that_is_no_ascii_is_refused() -> None:
    with pytest.raises(ValueError, match="is no URL"):
        Address.of_url("http://a/ä")


def test_hosts_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(ValueError, match="is no host"):
        Analyzer(["checks", "http://a"])


def vector(*values: str) -> bytes:
    samples = [{"metric": {"a": "b"}, "value": [1435781451.781, value]} for value in values]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": samples}}).encode()


SCALAR = b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]},"warnings":["PromQL info: x"]}'


# L-31: as conditions read it. What is no number is an error, which says what was found.
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, vector("0.5"), 0.5),
        (200, vector("1e-7"), 1e-7),
        (200, vector("0", "3"), [0, 3]),
        (200, SCALAR, 2),
        (200, vector(), "no series matches"),
        (200, vector("NaN"), r'the value of {"a": "b"} is NaN'),
        (200, vector("1", "+Inf"), r"is \+Inf"),
        (200, vector("x"), "is x"),
        (200, SCALAR.replace(b"scalar", b"matrix"), "gives a matrix"),
        (200, SCALAR.replace(b"PromQL info: x", b"store x is gone"), "store x is gone"),
        (200, vector("1").replace(b'"value"', b'"histogram"'), "is a histogram"),
        (400, b'{"status":"error","errorType":"bad_data","error":"char 3"}', "bad_data: char 3"),
        (500, b"oops", "it answered 500"),
        (302, b"", "no redirect is followed"),
        (200, b"<html>", "not that of a Prometheus"),
        (200, b'{"status":"success"}', "gives a None"),
    ],
)
def test_what_prometheus_answers(status: int, body: bytes, expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            of_prometheus(Answer(status, body))
    else:
        found = of_prometheus(Answer(status, body))
        assert isinstance(found, str)
        assert json.loads(found) == expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b'{"errors": 0}', '{"errors": 0}'),
        (204, b"", "null"),
        (201, b" 3 ", "3"),
        (200, b"ok\n", '"ok"'),
        (200, b'{"verdict": 3}', '{"verdict": 3}'),
        (200, b'{"verdict": "pass"}', v1.MeasuredVerdict(verdict=PASS)),
        (200, b'{"verdict": "fail", "message": "so it is"}', v1.MeasuredVerdict(verdict=FAIL, message="so it is")),
    ],
)
def test_what_a_webhook_answers(status: int, body: bytes, expected: Result) -> None:
    assert of_webhook(Answer(status, body)) == expected
    with pytest.raises(ValueError, match=r"its verdict is 'maybe'"):
        of_webhook(Answer(200, b'{"verdict": "maybe"}'))
    with pytest.raises(ValueError, match="it answered 500"):
        of_webhook(Answer(500, body))


class Asked:
    """An HTTP server that answers as its path says, and records what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], str]] = []
        self.port = 0
        self.under_way = 0
        self.answering = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.path_qs, dict(request.headers), await request.text()))
        match request.path:
            case "/moved":
                raise web.HTTPTemporaryRedirect("/webhook")
            case "/long":
                return web.Response(body=b"x" * (MOST_BYTES + 1))
            case "/slow":
                self.under_way += 1
                await self.answering.wait()
                self.under_way -= 1
            case "/prometheus/api/v1/query":
                return web.Response(body=vector("3"))
        return web.json_response({"verdict": "pass"})


@pytest.fixture
async def http() -> AsyncIterator[Asked]:
    asked, application = Asked(), web.Application()
    application.router.add_route("*", "/{path:.*}", asked.handle)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    asked.port = runner.addresses[0][1]
    yield asked
    asked.answering.set()
    await runner.cleanup()


def webhook(asked: Asked, path: str, credential: str = "", check: str = "c") -> v1.Measure:
    call = v1.WebhookCall(url=f"http://127.0.0.1:{asked.port}{path}")
    return v1.Measure(id=v1.MeasurementId(stage="s", check=check), credential=credential, webhook=call)


# L-31: a POST of the rollout's status.
async def test_a_webhook_is_asked(http: Asked, tmp_path: Path) -> None:
    (tmp_path / "prom").write_text("secret\n")
    analyzer = Analyzer([f"127.0.0.1:{http.port}=prom"], credentials=tmp_path)
    for credential, header in (("", None), ("prom", "Bearer secret")):
        found = await analyzer.measure(SUBJECT, webhook(http, "/webhook?a=%2F", credential))
        assert found == v1.MeasuredVerdict(verdict=PASS)
        path, headers, body = http.requests.pop()
        assert (path, json.loads(body)) == ("/webhook?a=%2F", {"name": "foo", "state": "Soaking"})
        assert (headers.get("Authorization"), headers["Content-Type"]) == (header, "application/json")
    assert analyzer.hosts == [f"127.0.0.1:{http.port}"]


async def test_a_prometheus_is_asked(http: Asked) -> None:
    query = v1.PrometheusQuery(address=f"http://127.0.0.1:{http.port}/prometheus/", query='sum(rate(e{a="b"}[5m]))')
    found = await Analyzer(["127.0.0.1"]).measure(SUBJECT, v1.Measure(prometheus=query))
    assert found == "3.0"
    ((path, headers, body),) = http.requests
    assert (path, headers["Content-Type"]) == ("/prometheus/api/v1/query", "application/x-www-form-urlencoded")
    assert body == "query=sum%28rate%28e%7Ba%3D%22b%22%7D%5B5m%5D%29%29&timeout=10000ms"


# L-32
@pytest.mark.parametrize(
    ("path", "wrong"),
    [("/moved", "307, and no redirect is followed"), ("/long", "longer than"), ("/slow", "no answer within 3 s")],
)
async def test_a_call_has_limits(http: Asked, path: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=f"^127.0.0.1:{http.port}: .*{wrong}"):
        await Analyzer(["127.0.0.1"], timeout=3 if path == "/slow" else 10).measure(SUBJECT, webhook(http, path))
    assert len(http.requests) == 1


async def test_nobody_is_asked_who_is_not_allowed(http: Asked) -> None:
    with pytest.raises(ValueError, match=f"may not call 127.0.0.1:{http.port}"):
        await Analyzer(["localhost", "127.0.0.1:1"]).measure(SUBJECT, webhook(http, "/webhook"))
    assert http.requests == []
    with pytest.raises(ValueError, match="no provider"):
        await Analyzer(["127.0.0.1"]).measure(SUBJECT, v1.Measure())


# Slow hosts of one namespace do not stop the measurements of others.
async def test_the_calls_of_one_namespace_are_limited(http: Asked) -> None:
    analyzer = Analyzer(["127.0.0.1"])
    calls = [
        asyncio.create_task(analyzer.measure(SUBJECT, webhook(http, "/slow", check=str(number))))
        for number in range(10)
    ]
    await eventually(lambda: http.under_way == MOST_CALLS_OF_NAMESPACE, "the first calls")
    other = Subject(v1.WorkloadReference(kind="DaemonSet", namespace="other", name="foo", uid="u2"))
    assert await analyzer.measure(other, webhook(http, "/webhook")) == v1.MeasuredVerdict(verdict=PASS)
    assert http.under_way == MOST_CALLS_OF_NAMESPACE
    http.answering.set()
    assert len(await asyncio.gather(*calls)) == 10


async def test_a_check_has_one_call_at_once(http: Asked) -> None:
    analyzer = Analyzer(["127.0.0.1"])
    slow = asyncio.create_task(analyzer.measure(SUBJECT, webhook(http, "/slow")))
    await eventually(lambda: http.under_way == 1, "the first call")
    second = asyncio.create_task(analyzer.measure(SUBJECT, webhook(http, "/webhook")))
    await analyzer.measure(SUBJECT, webhook(http, "/webhook", check="another"))
    assert not second.done(), "the first call of the check has not ended"
    slow.cancel()
    assert await second == v1.MeasuredVerdict(verdict=PASS), "the turn is given back"


# A call that takes longer than the interval of its check is of no use.
async def test_the_interval_of_the_check_limits_the_time(http: Asked) -> None:
    of = Subject(WORKLOAD, interval=1)
    with pytest.raises(ValueError, match="no answer within 1 s"):
        await Analyzer(["127.0.0.1"], timeout=60).measure(of, webhook(http, "/slow"))
    of = Subject(WORKLOAD, interval=20)
    query = v1.PrometheusQuery(address=f"http://127.0.0.1:{http.port}/prometheus", query="1")
    measure = v1.Measure(id=v1.MeasurementId(stage="s", check="c"), prometheus=query)
    assert await Analyzer(["127.0.0.1"], timeout=60).measure(of, measure) == "3.0"
    assert http.requests[-1][2].endswith("timeout=20000ms")


# The service takes values of 64 KiB, whatever is read of an answer.
def test_values_are_limited() -> None:
    most = b'"' + b"x" * ((64 << 10) - 2) + b'"'
    assert of_webhook(Answer(200, most)) == most.decode()
    for body in (b"[" + most + b"]", b'{"verdict":"pass","message":' + most + b"}", b"\xff" * (30 << 10)):
        with pytest.raises(ValueError, match=r"the value has [0-9]{5} bytes, and 65536 are allowed"):
            of_webhook(Answer(200, body))
    # A character may take more bytes in JSON.
    with pytest.raises(ValueError, match="and 65536 are allowed"):
        of_webhook(Answer(200, b"x" + b"\n" * (40 << 10) + b"x"))
    with pytest.raises(ValueError, match="the value has 80001 bytes, and 65536 are allowed"):
        of_prometheus(Answer(200, vector(*["12345.5"] * 10_000)))


@pytest.mark.parametrize("content", [b"", b"\n", b"secret\nsecret", b"secret\xff", b"secret" * MOST_TOKEN_BYTES, None])
async def test_odd_tokens_are_refused_and_not_shown(http: Asked, tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        (tmp_path / "prom").mkdir()
    else:
        (tmp_path / "prom").write_bytes(content)
    hosts = ["127.0.0.1=prom"]
    with pytest.raises(ValueError, match="credential 'prom' cannot be used") as error:
        await Analyzer(hosts, credentials=tmp_path).measure(SUBJECT, webhook(http, "/webhook", "prom"))
    assert "secret" not in str(error.value)
    with pytest.raises(ValueError, match="no folder with credentials"):
        await Analyzer(hosts).measure(SUBJECT, webhook(http, "/webhook", "prom"))
    assert http.requests == []


class Verdicts(verdict_service_pb2_grpc.VerdictServiceServicer):
    """Decides what it was told, and records what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[v1.GetVerdictRequest, str | bytes | None]] = []
        self.code: grpc.StatusCode | None = None

    async def GetVerdict(self, request: v1.GetVerdictRequest, context: Any) -> v1.GetVerdictResponse:  # noqa: N802
        self.asked.append((request, dict(context.invocation_metadata()).get("authorization")))
        if self.code is not None:
            await context.abort(self.code, "not now")
        return v1.GetVerdictResponse(verdict=FAIL, message="too\nslow")


# L-31: gRPC, for plug-ins in any language, with and without TLS.
@pytest.mark.parametrize("tls", [True, False])
async def test_a_verdict_service_is_asked(tmp_path: Path, tls: bool) -> None:
    (tmp_path / "checks").write_text("secret")
    authority, verdicts, server = trustme.CA(), Verdicts(), grpc.aio.server()
    verdict_service_pb2_grpc.add_VerdictServiceServicer_to_server(verdicts, server)
    issued = authority.issue_cert("localhost")
    chain = b"".join(cert.bytes() for cert in issued.cert_chain_pems)
    own = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
    port = server.add_secure_port("localhost:0", own) if tls else server.add_insecure_port("localhost:0")
    await server.start()
    measure = v1.Measure(
        id=v1.MeasurementId(check="c", stage="canary"),
        policy_name="p",
        credential="checks",
        verdict_service=v1.VerdictCall(address=f"localhost:{port}", tls=tls),
    )
    trusted = authority.cert_pem.bytes()
    analyzer = Analyzer([f"localhost:{port}=checks"], credentials=tmp_path, authorities=trusted)
    try:
        found = await analyzer.measure(SUBJECT, measure)
        assert found == v1.MeasuredVerdict(verdict=FAIL, message="too\\nslow")
        ((request, token),) = verdicts.asked
        assert (request.id, request.policy_name, request.workload) == (measure.id, "p", WORKLOAD)
        assert (json.loads(request.status), token) == ({"name": "foo", "state": "Soaking"}, "Bearer secret")
        verdicts.code = grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(ValueError, match=f"^localhost:{port}: RESOURCE_EXHAUSTED: not now"):
            await analyzer.measure(SUBJECT, measure)
    finally:
        await server.stop(None)


# The example decides by a metric that it reads, and the executor has its verdict.
async def test_the_example_of_a_verdict_service() -> None:
    served = {"text": ""}

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=served["text"])

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
    example = CLIENT / "examples" / "verdict_service.py"
    of = ("--listen", "127.0.0.1:0", "--url", url, "--metric", "app_errors", "--below", "5")
    try:
        with running(sys.executable, example, *of) as program:
            listening = await asyncio.to_thread(program.wait_for, r"listening on (\S+)")
            call = v1.VerdictCall(address=listening[1], tls=False)
            ended = asyncio.Event()
            measurements = Measurements(Analyzer(["127.0.0.1"]), lambda _: ended.set())
            found = []
            for number, text in enumerate(
                (
                    '# TYPE app_errors counter\napp_errors{path="/a b"} 3\napp_errors 1 1435781\napp_errors_total 9\n',
                    'app_errors{path="/"} 3\napp_errors{path="/b"} 2.5\n',
                    "another 1\n",
                )
            ):
                served["text"] = text
                ended.clear()
                measurements.start(SUBJECT, v1.Measure(id=v1.MeasurementId(number=number), verdict_service=call))
                await asyncio.wait_for(ended.wait(), 60)
                found.append(measurements.results(SUBJECT.key, "u1")[-1])
            await measurements.close()
    finally:
        await runner.cleanup()
    good, bad, broken = found
    assert (good.verdict.verdict, good.verdict.message) == (PASS, "app_errors is 4, and 5 is the limit")
    assert (bad.verdict.verdict, bad.verdict.message) == (FAIL, "app_errors is 5.5, and 5 is the limit")
    assert broken.error.endswith("UNAVAILABLE: app_errors cannot be read: there is no such metric")
