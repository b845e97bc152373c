"""Spans, and the propagation of their context."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

try:
    from opentelemetry import context, propagate, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    _tracer = None
else:
    _tracer = trace.get_tracer("nodewise")
    _w3c = TraceContextTextMapPropagator()

Attributes: TypeAlias = "Mapping[str, AttributeValue]"


class Span:
    """A span, or no span."""

    __slots__ = ("_span",)

    def __init__(self, span: "trace.Span | None" = None) -> None:
        self._span = span

    @property
    def is_recording(self) -> bool:
        """Whether the span records. Expensive attributes are only computed if so."""
        return self._span is not None and self._span.is_recording()

    @property
    def context(self) -> "trace.SpanContext | None":
        """The span context, for links."""
        return None if self._span is None else self._span.get_span_context()

    @property
    def traceparent(self) -> str:
        """The W3C traceparent; empty if the span does not record."""
        if self._span is None or not self.is_recording:
            return ""
        return _w3c_headers(self._span).get("traceparent", "")

    def set(self, attributes: Attributes) -> None:
        """Adds attributes."""
        if self._span is not None:
            for name, value in attributes.items():
                self._span.set_attribute(name, value)

    def event(self, name: str, attributes: Attributes, at: int) -> None:
        """Adds an event at a time in nanoseconds since 1970."""
        if self._span is not None:
            self._span.add_event(name, attributes, at)

    def fail(self, reason: str, error_type: str = "") -> None:
        """Sets the error status, with a text for people and a type for programs."""
        if self._span is None:
            return
        if error_type:
            self._span.set_attribute("error.type", error_type)
        self._span.set_status(trace.Status(trace.StatusCode.ERROR, reason))

    def record_defect(self, error: BaseException) -> None:
        """Records a defect that ended the span."""
        if self._span is not None:
            self._span.record_exception(error)
            self.fail(f"{type(error).__name__}: {error}")


NO_SPAN = Span()
"""No span."""


def is_set_up() -> bool:
    """Whether an SDK is set up."""
    nobody = (trace.ProxyTracerProvider, trace.NoOpTracerProvider) if _tracer is not None else ()
    return _tracer is not None and not isinstance(trace.get_tracer_provider(), nobody)


@contextmanager
def span(
    name: str, attributes: "Attributes | None" = None, *, client: bool = False, expects_errors: bool = False
) -> Iterator[Span]:
    """A child span of the current one, around a block. An exception of the block sets the error status, unless
    exceptions are expected: then the caller sets the status.
    """
    if _tracer is None or not is_set_up():
        yield NO_SPAN
        return
    with _tracer.start_as_current_span(
        name,
        kind=trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL,
        attributes=attributes,
        record_exception=not expects_errors,
        set_status_on_exception=not expects_errors,
    ) as started:
        yield Span(started)


@contextmanager
def root(
    name: str, attributes: Attributes, links: "Sequence[tuple[trace.SpanContext, Attributes]]" = ()
) -> Iterator[Span]:
    """A root span around a block. The block sets the error status itself."""
    if _tracer is None or not is_set_up():
        yield NO_SPAN
        return
    with _tracer.start_as_current_span(
        name,
        context=context.Context(),
        attributes=attributes,
        links=[trace.Link(linked, attributes) for linked, attributes in links],
        record_exception=False,
        set_status_on_exception=False,
    ) as started:
        yield Span(started)


@contextmanager
def unsampled(span: Span) -> Iterator[None]:
    """Records nothing inside this block: calls get the span's context with the sampled flag off."""
    of = span.context
    if of is None:
        yield
        return
    with trace.use_span(_with_flags(of, of.trace_flags & ~trace.TraceFlags.SAMPLED)):
        yield


@contextmanager
def detached() -> Iterator[None]:
    """Tasks that are created inside this block belong to no trace."""
    if _tracer is None:
        yield
        return
    token = context.attach(context.Context())
    try:
        yield
    finally:
        context.detach(token)


def short_name(names: Callable[[Any], str], value: int, prefix: str) -> str:
    """The name of an enum value, without its prefix; its number if this client does not know it."""
    try:
        return names(value).removeprefix(prefix)
    except ValueError:
        return str(value)


def is_recorded() -> bool:
    """Whether the current span records."""
    return _tracer is not None and trace.get_current_span().is_recording()


def ids() -> tuple[str, str] | None:
    """The ids of the current trace and span; None if there is none."""
    if _tracer is None:
        return None
    present = trace.get_current_span().get_span_context()
    if not present.is_valid:
        return None
    return trace.format_trace_id(present.trace_id), trace.format_span_id(present.span_id)


def headers() -> dict[str, str]:
    """The headers with the current span for a planning service. Uses the propagator of the SDK, by default W3C trace
    context.
    """
    carrier: dict[str, str] = {}
    if _tracer is not None:
        propagate.inject(carrier)
    return carrier


def w3c_headers() -> dict[str, str]:
    """The headers with the current span for an apiserver, which reads only W3C trace context."""
    return {} if _tracer is None else _w3c_headers(trace.get_current_span())


def _w3c_headers(span: "trace.Span") -> dict[str, str]:
    carrier: dict[str, str] = {}
    of = span.get_span_context()
    # Only the flag of W3C level 1 is sent. OpenTelemetry for Go before 1.43, and with it kube-apiserver up to at least
    # 1.36, drops a context with other flags.
    plain = _with_flags(of, of.trace_flags & trace.TraceFlags.SAMPLED)
    _w3c.inject(carrier, trace.set_span_in_context(plain, context.Context()))
    return carrier


def _with_flags(of: "trace.SpanContext", flags: int) -> "trace.Span":
    return trace.NonRecordingSpan(
        trace.SpanContext(of.trace_id, of.span_id, False, trace.TraceFlags(flags), of.trace_state)
    )


def context_of(traceparent: str) -> "trace.SpanContext | None":
    """The span context of a W3C traceparent; None if it is invalid."""
    if _tracer is None or not traceparent:
        return None
    found = trace.get_current_span(_w3c.extract({"traceparent": traceparent}, context.Context())).get_span_context()
    return found if found.is_valid else None
