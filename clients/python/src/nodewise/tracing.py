"""Traces, when `opentelemetry-api` is installed (`pip install nodewise[otel]`): one span a reconcile, with the plan,
each phase of it and the report below, and W3C trace context to the service and to the apiserver. Without the package,
or without an SDK that is set up, all of this does nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

try:
    from opentelemetry import propagate, trace
except ImportError:
    _tracer = None
else:
    _tracer = trace.get_tracer("nodewise")


@contextmanager
def span(name: str, *, client: bool = False, **attributes: "AttributeValue") -> Iterator[None]:
    """A span around a block, with attributes whose names have dots for double underscores."""
    if _tracer is None:
        yield
        return
    kind = trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    with _tracer.start_as_current_span(name, kind=kind, attributes=named):
        yield


def describe(**attributes: "AttributeValue") -> None:
    """Attributes of the present span."""
    if _tracer is not None:
        for name, value in attributes.items():
            trace.get_current_span().set_attribute(name.replace("__", "."), value)


def context() -> dict[str, str]:
    """The headers that carry the present span to whoever is called."""
    headers: dict[str, str] = {}
    if _tracer is not None:
        propagate.inject(headers)
    return headers
