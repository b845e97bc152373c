"""Traces, if `opentelemetry-api` is installed (`pip install nodewise[otel]`) and an SDK is set up. Otherwise this
package does nothing.

Each reconcile is one trace. Its root span is in `nodewise.reconcile_traces`. This package has the spans of its plan,
its writes and its calls, the propagation of their context, and the trace ids of log records.
"""

from .calls import ApiCall, Rpc, api_call, rpc
from .logs import logger
from .plans import DEFAULT_TRACES, BatchTraces, apply, batch
from .spans import NO_SPAN, Span, detached, headers, is_set_up, span, w3c_headers

__all__ = [
    "DEFAULT_TRACES",
    "NO_SPAN",
    "ApiCall",
    "BatchTraces",
    "Rpc",
    "Span",
    "api_call",
    "apply",
    "batch",
    "detached",
    "headers",
    "is_set_up",
    "logger",
    "rpc",
    "span",
    "w3c_headers",
]
