"""Traces, when `opentelemetry-api` is installed (`pip install nodewise[otel]`) and an SDK is set up. Without either,
all of this does nothing.

One trace for each reconcile: its root is in `nodewise.reconciles`; the spans of its plan, its writes and its calls, the
context that goes with these, and the trace of a log record are here.
"""

from .calls import ApiCall, Rpc, api_call, rpc
from .logs import logger
from .plans import DEFAULT_TRACES, BatchTraces, apply, batch
from .spans import NOTHING, Span, detached, headers, is_set_up, span, w3c_headers

__all__ = [
    "DEFAULT_TRACES",
    "NOTHING",
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
