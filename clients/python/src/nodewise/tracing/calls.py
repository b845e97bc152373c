"""One span for each call, by OpenTelemetry's conventions for RPC and for HTTP clients."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

from .. import v1
from .spans import NO_SPAN, Span, is_recorded, is_set_up, short_name, span

_SERVICE = "nodewise.v1.ReconcileService"
_PORTS = {"http": 80, "https": 443}


class Rpc:
    """The span of a call of the planning service. The caller records its result."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def asks(self, request: v1.PlanRequest | v1.ExplainRequest | v1.SimulateRequest) -> None:
        """Records the size of the request."""
        if self._span.is_recording:
            self._span.set({"nodewise.request.bytes": request.ByteSize()})

    def planned(self, plan: v1.Plan) -> None:
        """Records the plan of the response."""
        if self._span.is_recording:
            actions = sum(len(batch.actions) for phase in plan.phases for batch in phase.batches)
            verdict = short_name(v1.Verdict.Name, plan.verdict, "VERDICT_")
            self._span.set({"nodewise.plan.actions": actions, "nodewise.plan.verdict": verdict})

    def answered(self) -> None:
        """Records success."""
        self._span.set({"rpc.response.status_code": "OK"})

    def failed(self, code: str, reason: str) -> None:
        """Records a failure, with the name of the gRPC status."""
        self._span.set({"rpc.response.status_code": code})
        self._span.fail(reason, code)


@contextmanager
def rpc(method: str, address: str) -> Iterator[Rpc]:
    """The span of a call of the planning service at `HOST:PORT`."""
    if not is_set_up():
        yield Rpc(NO_SPAN)
        return
    host, _, port = address.rpartition(":")
    attributes: dict[str, str | int] = {
        "rpc.system.name": "grpc",
        "rpc.method": f"{_SERVICE}/{method}",
        "server.address": host.strip("[]"),
        "server.port": int(port),
    }
    with span(f"{_SERVICE}/{method}", attributes, client=True, expects_errors=True) as own:
        call = Rpc(own)
        try:
            yield call
        except asyncio.CancelledError:
            call.failed("CANCELLED", "the call was cancelled")
            raise


class ApiCall(NamedTuple):
    """A call to an apiserver."""

    method: str
    url: str
    """Whole, with its query."""
    template: str
    """The path, with `{namespace}` and `{name}` as placeholders."""
    namespace: str

    @property
    def _attributes(self) -> dict[str, str | int]:
        url = urlsplit(self.url)
        return {
            "http.request.method": self.method,
            "url.template": self.template,
            "url.full": self.url,
            "server.address": url.hostname or "",
            "server.port": url.port or _PORTS.get(url.scheme, 0),
            "k8s.namespace.name": self.namespace,
        }


@contextmanager
def api_call(call: ApiCall) -> Iterator[Span]:
    """The span of a call to an apiserver. No span outside of a trace, or in a batch whose calls have no spans."""
    if not is_recorded():
        yield NO_SPAN
        return
    with span(f"{call.method} {call.template}", call._attributes, client=True, expects_errors=True) as own:
        try:
            yield own
        except BaseException as error:
            status = getattr(error, "http_status", 0)
            if status:
                own.set({"http.response.status_code": status})
            own.fail(str(error), str(status) if status else _class_of(error))
            raise


def _class_of(error: BaseException) -> str:
    """The error type of a call without a response."""
    cause = error.__cause__ or error
    if isinstance(cause, asyncio.CancelledError):
        return "cancelled"
    return "timeout" if isinstance(cause, asyncio.TimeoutError) else "connection"
