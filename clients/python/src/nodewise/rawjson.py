"""Splits JSON into parts without parsing the parts.

The data of a ControllerRevision is what some client wrote, byte for byte: nested thousands of levels deep, or with
numbers and half surrogate pairs that Python cannot represent. Such data must not make other objects unreadable.

`msgspec` splits most texts. If it refuses a text, a scanner in this module splits it.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import msgspec

UNREADABLE = (ValueError, msgspec.MsgspecError, RecursionError)
"""The exceptions of reading JSON. The exceptions of msgspec are ValueErrors only in its newer versions."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _List(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    items: list[msgspec.Raw] | None = None


_LIST = msgspec.json.Decoder(_List)
_EVENT = re.compile(rb'\{"type":"([A-Z]+)","object":(\{.*\})\}\s*', re.DOTALL)
"""An event as an apiserver writes it. The match does not look into the object, which may be large."""

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_FLAT = rb'[^"\[\]{}]*'


def _up_to(token: bytes, flat: bytes) -> re.Pattern[bytes]:
    """Matches the text before a token, and the token if there is one: characters of `flat`, strings, and lists and
    objects with at most two levels of nesting. The regular expression engine skips these without Python code, so a
    large object is fast however its members are nested.
    """
    nested = _STRING
    for _ in range(2):
        # No character matches in two ways, so there is no backtracking. The bound limits memory.
        nested = _STRING + rb"|[\[{]" + _FLAT + rb"(?:(?:" + nested + rb")" + _FLAT + rb"){0,100}[\]}]"
    return re.compile(flat + rb"(?:(?:" + nested + rb")" + flat + rb"){0,100}(" + token + rb")?", re.DOTALL)


_OUTSIDE = _up_to(rb"[\[{]+|[\]}]+|,", rb'[^"\[\]{},]*')
"""Up to a bracket or a comma between parts."""
_WITHIN = _up_to(rb"[\[{]+|[\]}]+", _FLAT)
"""Up to a bracket inside a part."""
_BLANKS = b" \t\n\r"
_KEY = re.compile(rb"\s*(" + _STRING + rb")\s*:\s*", re.DOTALL)


def members(text: bytes) -> dict[str, bytes]:
    """The members of an object. Raises ValueError if the text is not an object."""
    try:
        return {key: bytes(value) for key, value in _MEMBERS.decode(text).items()}
    except (msgspec.MsgspecError, RecursionError):
        # Perhaps only the content of a member cannot be read.
        return {key: text[span] for key, span in member_slices(text).items()}


def member_slices(text: bytes) -> dict[str, slice]:
    """The positions of the members of an object, without parsing their values. Raises ValueError if the text is not an
    object.
    """
    found = {}
    for part in _parts(text, slice(0, len(text)), b"{}"):
        key = _KEY.match(text, part.start, part.stop)
        if key is None:
            raise ValueError("a member has no name") from None
        found[str(json.loads(key[1]))] = _trimmed(text, slice(key.end(), part.stop))
    return found


def elements_at(text: bytes, span: slice) -> Iterator[bytes]:
    """Yields the elements of a list inside a text, without parsing them. Raises ValueError if it is not a list,
    possibly after some elements.
    """
    for part in _parts(text, span, b"[]"):
        yield text[_trimmed(text, part)]


class List(NamedTuple):
    """A served list."""

    metadata: bytes
    """The JSON of `metadata`; `null` if there is none."""
    items: Iterator[bytes]
    """Each item as served. Raises ValueError if `items` is not a list, possibly after some items."""


def read_list(text: bytes) -> List:
    """Splits a list of objects. Raises ValueError if the text is not an object."""
    try:
        whole = _LIST.decode(text)
        return List(bytes(whole.metadata), map(bytes, whole.items or ()))
    except (msgspec.MsgspecError, RecursionError):
        # Perhaps only the content of an item cannot be read.
        slices = member_slices(text)
    items = slices.get("items")
    is_empty = items is None or text.startswith(b"null", items.start, items.stop)
    metadata = text[slices["metadata"]] if "metadata" in slices else b"null"
    return List(metadata, iter(()) if items is None or is_empty else elements_at(text, items))


def read_event(line: bytes) -> tuple[str, bytes]:
    """The type and the object of a watch event. Raises ValueError or KeyError if the text is not an event."""
    usual = _EVENT.fullmatch(line)
    if usual is not None:
        return usual[1].decode(), usual[2]
    found = members(line)
    return str(json.loads(found["type"])), found["object"]


def write(of: dict[str, bytes]) -> bytes:
    """Writes an object with these members."""
    return b"{" + b",".join(msgspec.json.encode(key) + b":" + value for key, value in of.items()) + b"}"


class Served:
    """An object as the apiserver served it. Its members are split once."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    @cached_property
    def members(self) -> dict[str, bytes]:
        """The members, without `metadata.managedFields`, which nothing reads, and which anyone who may change an object
        may nest thousands of levels deep. Raises ValueError if the text is not an object.
        """
        found = members(self.text)
        if self.has_managed_fields and found.get("metadata", b"").startswith(b"{"):
            metadata = members(found["metadata"])
            metadata.pop("managedFields", None)
            found["metadata"] = write(metadata)
        return found

    @property
    def has_managed_fields(self) -> bool:
        """Whether the text may contain managedFields."""
        return b"managedFields" in self.text

    @property
    def without_managed_fields(self) -> bytes:
        """The text without managedFields. Raises ValueError if it may contain some and is not an object."""
        return write(self.members) if self.has_managed_fields else self.text


def _trimmed(text: bytes, span: slice) -> slice:
    """The position without surrounding whitespace. Copies nothing."""
    begin, end = span.start, span.stop
    while begin < end and text[begin] in _BLANKS:
        begin += 1
    while begin < end and text[end - 1] in _BLANKS:
        end -= 1
    return slice(begin, end)


def _parts(text: bytes, span: slice, ends: bytes) -> Iterator[slice]:
    """Yields the positions between the commas of an object or list inside a text, without recursion and without
    parsing.
    """
    span = _trimmed(text, span)
    end = span.stop
    if end - span.start < 2 or text[span.start] != ends[0] or text[end - 1] != ends[1]:
        kind = "object" if ends == b"{}" else "list"
        raise ValueError(f"is no JSON {kind}: it is not within {ends.decode()}")
    depth, began = 1, span.start + 1
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
