"""Adds trace ids to log records."""

import logging

from . import spans


class _Ids(logging.Filter):
    """Adds `trace_id` and `span_id`, in hex, to records inside a trace."""

    def filter(self, record: logging.LogRecord) -> bool:
        ids = spans.ids()
        if ids is not None:
            record.__dict__["trace_id"], record.__dict__["span_id"] = ids
        return True


_IDS = _Ids()


def logger(name: str) -> logging.Logger:
    """The logger of a module."""
    # A filter of the package's own logger would not apply to records of its child loggers.
    log = logging.getLogger(name)
    log.addFilter(_IDS)
    return log
