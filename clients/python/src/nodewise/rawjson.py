"""JSON whose parts stay the texts that they are.

The data of a ControllerRevision is what some client wrote, byte for byte: nested thousands deep, with numbers and
halves of characters that no value of Python holds. It must spoil itself only, so nothing here looks into parts.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property

import msgspec

UNREADABLE = (ValueError, msgspec.MsgspecError, RecursionError)
"""What reading JSON raises: what msgspec raises is a ValueError in its newer versions only."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw] | None)

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_FLAT = rb'[^"\[\]{}]*'


def _up_to(token: bytes, flat: bytes) -> re.Pattern[bytes]:
    """Matches whatever stands before a token, and the token if there is one: characters of `flat`, strings, and lists
    and objects with nothing but scalars and two levels of such within. There is no Python for each of these, so that a
    large object costs little however its members are nested.
    """
    nested = _STRING
    for _ in range(2):
        # No character can be matched in two ways, so that nothing is looked at over and over. The bound is for memory.
        nested = _STRING + rb"|[\[{]" + _FLAT + rb"(?:(?:" + nested + rb")" + _FLAT + rb"){0,100}[\]}]"
    return re.compile(flat + rb"(?:(?:" + nested + rb")" + flat + rb"){0,100}(" + token + rb")?", re.DOTALL)


_OUTSIDE = _up_to(rb"[\[{]+|[\]}]+|,", rb'[^"\[\]{},]*')
"""Up to what begins, ends or separates parts."""
_WITHIN = _up_to(rb"[\[{]+|[\]}]+", _FLAT)
"""Up to what begins or ends within a part."""
_KEY = re.compile(rb"\s*(" + _STRING + rb")\s*:\s*", re.DOTALL)


def members(text: bytes) -> dict[str, bytes]:
    """The members of an object. Raises ValueError for what is none."""
    try:
        return {key: bytes(value) for key, value in _MEMBERS.decode(text).items()}
    except (msgspec.MsgspecError, RecursionError):
        # Perhaps only what is within a member cannot be read.
        found = {}
        for part in _parts(text, b"{}"):
            key = _KEY.match(part)
            if key is None:
                raise ValueError("a member has no name") from None
            found[str(json.loads(key[1]))] = part[key.end() :].rstrip()
        return found


def elements(text: bytes) -> list[bytes]:
    """The elements of a list, of which there are none in `null`. Raises ValueError for what is no list."""
    try:
        return [bytes(element) for element in _ELEMENTS.decode(text) or ()]
    except (msgspec.MsgspecError, RecursionError):
        return [part.strip() for part in _parts(text, b"[]")]


def write(of: dict[str, bytes]) -> bytes:
    """An object with these members."""
    return b"{" + b",".join(msgspec.json.encode(key) + b":" + value for key, value in of.items()) + b"}"


class Served:
    """An object as it was served. Its members are looked for once."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    @cached_property
    def members(self) -> dict[str, bytes]:
        """The members, without `metadata.managedFields`: nothing is read of these, they may be larger than all the
        rest, and whoever may create or change an object may nest them thousands deep. Raises ValueError for what is no
        object.
        """
        found = members(self.text)
        if self.has_managed_fields and found.get("metadata", b"").startswith(b"{"):
            metadata = members(found["metadata"])
            metadata.pop("managedFields", None)
            found["metadata"] = write(metadata)
        return found

    @property
    def has_managed_fields(self) -> bool:
        """Whether it may have some."""
        return b"managedFields" in self.text

    @property
    def without_managed_fields(self) -> bytes:
        """Its text without them. Raises ValueError for what may have some and is no object."""
        return write(self.members) if self.has_managed_fields else self.text


def _parts(text: bytes, ends: bytes) -> Iterator[bytes]:
    """What is between the commas of an object or a list, without recursion and whatever is in there."""
    text = text.strip()
    if len(text) < 2 or text[:1] != ends[:1] or text[-1:] != ends[1:]:
        raise ValueError(f"is not within {ends.decode()}")
    depth, began, at = 1, 1, 1
    while depth > 0:
        found = (_OUTSIDE if depth == 1 else _WITHIN).match(text, at)
        if found is None or found.end() == at:
            raise ValueError("it has no end")
        at, token = found.end(), found[1] or b""
        if token == b",":
            yield text[began : at - 1]
            began = at
        elif token[:1] in (b"[", b"{"):
            depth += len(token)
        else:
            depth -= len(token)
    if depth < 0 or at != len(text):
        raise ValueError("it ends before its end")
    last = text[began:-1]
    if last.strip() or began > 1:
        yield last
