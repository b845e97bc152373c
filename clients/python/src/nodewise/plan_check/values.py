"""Reads and compares JSON values for the check."""

import json
from collections.abc import Iterable
from typing import Any


class WrongError(Exception):
    """An action or a plan breaks a rule."""


def parse(text: bytes, what: str) -> Any:
    """Reads JSON. Raises `WrongError`, which names the text.

    A plan's JSON is sent to the apiserver unchanged, so every reader must see the same values. Duplicate keys are
    refused: of these, parsers take either value.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise WrongError(f"{what} has the key {quoted(key)} twice in one object")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=members)
    except (ValueError, RecursionError):
        raise WrongError(f"{what} is not JSON") from None


MAX_WRITTEN = 3 << 20
"""Most bytes of a written object or patch: an apiserver accepts no longer request. A plan may make a burst of pods from
one manifest.
"""


def parse_written(text: bytes, what: str) -> Any:
    """Reads JSON that is to be written to the cluster. Raises `WrongError`."""
    if len(text) > MAX_WRITTEN:
        raise WrongError(f"{what} has {len(text)} bytes, and {MAX_WRITTEN} are the most")
    return parse(text, what)


def quoted(text: str) -> str:
    """The text in quotation marks."""
    return json.dumps(text, ensure_ascii=False)


def text(value: Any) -> str:
    """A value as canonical JSON. Python itself considers 1 and True equal."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON."""
    return text(one) == text(other)


def at(value: Any, *path: str) -> Any:
    """The value at a path of members; None if there is none."""
    for member in path:
        value = value.get(member) if isinstance(value, dict) else None
    return value


def object_at(value: Any, *path: str) -> dict[str, Any]:
    """The object at a path; an empty one if there is none."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def list_at(value: Any, *path: str) -> list[Any]:
    """The list at a path; an empty one if there is none."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def other_than(members: dict[str, Any], allowed: Iterable[str]) -> str | None:
    """A member that is not allowed; None if there is none."""
    return min(set(members) - set(allowed), default=None)


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)
