"""JSON whose parts stay the texts that they are.

The data of a ControllerRevision is what some client wrote, byte for byte: nested thousands deep, with numbers and
halves of characters that no value of Python holds. It must spoil itself only, so nothing here looks into parts.
"""

import json
import re
from collections.abc import Iterator

import msgspec

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw] | None)

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = re.compile(_STRING + rb"|[\[\]{},]", re.DOTALL)
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


def members_of_object(text: bytes) -> dict[str, bytes]:
    """The members of a served object, without its `metadata.managedFields`: nothing is read of these, they may be
    larger than all the rest, and whoever may create or change an object may nest them thousands deep. Raises ValueError
    for what is no object.
    """
    found = members(text)
    if b"managedFields" in text and found.get("metadata", b"").startswith(b"{"):
        metadata = members(found["metadata"])
        metadata.pop("managedFields", None)
        found["metadata"] = write(metadata)
    return found


def without_managed_fields(text: bytes) -> bytes:
    """A served object without its `metadata.managedFields`. Raises ValueError for what has some and is no object."""
    return write(members_of_object(text)) if b"managedFields" in text else text


def _parts(text: bytes, ends: bytes) -> Iterator[bytes]:
    """What is between the commas of an object or a list, without recursion and whatever is in there."""
    text = text.strip()
    if len(text) < 2 or text[:1] != ends[:1] or text[-1:] != ends[1:]:
        raise ValueError(f"is not within {ends.decode()}")
    depth, began = 0, 1
    for token in _TOKEN.finditer(text):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
                if depth == 0 and token.end() != len(text):
                    raise ValueError("it ends before its end")
            case b"," if depth == 1:
                yield text[began : token.start()]
                began = token.end()
    if depth != 0:
        raise ValueError("it has no end")
    last = text[began:-1]
    if last.strip() or began > 1:
        yield last
