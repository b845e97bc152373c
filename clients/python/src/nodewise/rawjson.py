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
_BLANKS = b" \t\n\r"
_KEY = re.compile(rb"\s*(" + _STRING + rb")\s*:\s*", re.DOTALL)


def members(text: bytes) -> dict[str, bytes]:
    """The members of an object. Raises ValueError for what is none."""
    try:
        return {key: bytes(value) for key, value in _MEMBERS.decode(text).items()}
    except (msgspec.MsgspecError, RecursionError):
        # Perhaps only what is within a member cannot be read.
        return {key: text[span] for key, span in places(text).items()}


def places(text: bytes) -> dict[str, slice]:
    """Where the members of an object are, whatever is within them. Raises ValueError for what is no object."""
    found = {}
    for part in _parts(text, slice(0, len(text)), b"{}"):
        key = _KEY.match(text, part.start, part.stop)
        if key is None:
            raise ValueError("a member has no name") from None
        found[str(json.loads(key[1]))] = _trimmed(text, slice(key.end(), part.stop))
    return found


def elements(text: bytes) -> list[bytes]:
    """The elements of a list, of which there are none in `null`. Raises ValueError for what is no list."""
    try:
        return [bytes(element) for element in _ELEMENTS.decode(text) or ()]
    except (msgspec.MsgspecError, RecursionError):
        return list(elements_at(text, slice(0, len(text))))


def elements_at(text: bytes, place: slice) -> Iterator[bytes]:
    """The elements of a list that is part of a text, one after the other, whatever is within them. Raises ValueError
    for what is no list, perhaps only after some elements.
    """
    for part in _parts(text, place, b"[]"):
        yield text[_trimmed(text, part)]


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


def _trimmed(text: bytes, place: slice) -> slice:
    """Without the blanks around it. It is not copied for that."""
    begin, end = place.start, place.stop
    while begin < end and text[begin] in _BLANKS:
        begin += 1
    while begin < end and text[end - 1] in _BLANKS:
        end -= 1
    return slice(begin, end)


def _parts(text: bytes, place: slice, ends: bytes) -> Iterator[slice]:
    """What is between the commas of an object or a list that is part of a text, without recursion and whatever is in
    there.
    """
    place = _trimmed(text, place)
    end = place.stop
    if end - place.start < 2 or text[place.start] != ends[0] or text[end - 1] != ends[1]:
        raise ValueError(f"is not within {ends.decode()}")
    depth, began = 1, place.start + 1
    at = began
    is_one_of_many = False
    while depth > 0:
        found = (_OUTSIDE if depth == 1 else _WITHIN).match(text, at, end)
        if found is None or found.end() == at:
            raise ValueError("it has no end")
        at, token = found.end(), found[1] or b""
        if token == b",":
            yield slice(began, at - 1)
            began, is_one_of_many = at, True
        elif token[:1] in (b"[", b"{"):
            depth += len(token)
        else:
            depth -= len(token)
    if depth < 0 or at != end:
        raise ValueError("it ends before its end")
    last = _trimmed(text, slice(began, end - 1))
    if is_one_of_many or last.start < last.stop:
        yield last
