"""Checks the Events of a plan: people read them as messages of the controller."""

import re

from .. import v1
from .values import WrongError

_MAX_REASON = 128
"""Longest reason that an apiserver accepts."""
_MAX_MESSAGE = 1024
"""Longest message that an apiserver accepts, in bytes."""
_CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*")


def check(action: v1.Action) -> None:
    """Checks the Events that an action emits. Raises `WrongError`."""
    if action.HasField("emit_event"):
        _check(action.emit_event)
    for event in action.success_events:
        _check(event)
    if action.HasField("failure_event"):
        _check(action.failure_event)


def _check(event: v1.EmitEvent) -> None:
    if event.type not in ("Normal", "Warning"):
        raise WrongError("the type of its event is neither Normal nor Warning")
    if len(event.reason) > _MAX_REASON or not _CAMEL_CASE.fullmatch(event.reason):
        raise WrongError(
            f"the reason of its event is no word in UpperCamelCase of at most {_MAX_REASON} letters and digits"
        )
    size = len(event.message.encode())
    if size > _MAX_MESSAGE:
        raise WrongError(f"the message of its event has {size} bytes, and {_MAX_MESSAGE} are the most")
