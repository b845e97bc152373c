"""Tests splitting JSON, with any content, and without handling each character in Python."""

import random
import re

import pytest

from nodewise import rawjson
from nodewise.kinds import Resource
from nodewise.kube import watch
from nodewise.kube.client import KubeClient
from nodewise.store import Applied, Event

DEEP = b"[" * 1_500 + b"]" * 1_500
"""Deeper than compiled decoders accept."""


def value(chance: random.Random, depth: int) -> bytes:
    """Random JSON, with whitespace, and sometimes with deep nesting."""
    blank = chance.choice([b"", b"", b" ", b"\n\t"])
    kind = chance.randrange(9) if depth < 6 else chance.randrange(3)
    match kind:
        case 0:
            text = chance.choice([b"0", b"-1.5e999", b"true", b"null"])
        case 1 | 2:
            text = b'"' + b"".join(chance.choices([b"a", b"]", b"{", b",", b":", b'\\"', b"\\\\", b"\xff"], k=4)) + b'"'
        case 3:
            text = DEEP
        case 4 | 5 | 6:
            count = chance.choice([0, 1, 3, 300 if depth < 2 else 2])
            text = b"[" + blank + b",".join(value(chance, depth + 2) for _ in range(count)) + b"]"
        case _:
            of = [b'"%d"%s:%s' % (key, blank, value(chance, depth + 1)) for key in range(chance.randrange(4))]
            text = b"{" + b",".join(of) + blank + b"}"
    return blank + text + blank


@pytest.mark.parametrize("seed", range(30))
def test_parts_are_what_the_whole_was_made_of(seed: int) -> None:
    chance = random.Random(seed)
    made = {f'k"{key}': value(chance, 0) for key in range(chance.randrange(1, 8))}
    made["deep"] = DEEP
    whole = rawjson.write(made)
    assert rawjson.members(whole) == {key: part.strip() for key, part in made.items()}
    elements = [part.strip() for part in made.values()]
    text = b" [" + b",".join(made.values()) + b"]\n"
    assert list(rawjson.elements_at(text, slice(0, len(text)))) == elements


@pytest.mark.parametrize("end", [b"", b"}}", b'"', b',"b":1', b'}{"a":1}', b"]}", b'"}'])
def test_what_is_no_object_is_refused(end: bytes) -> None:
    with pytest.raises(ValueError, match=r"is not within|it has no end|it ends before its end|a member has no name"):
        rawjson.members(b'{"a":' + DEEP + end)


@pytest.mark.parametrize("item", [b'{"a":1}', b'{"a":' + DEEP + b"}"], ids=["plain", "deep"])
def test_lists_and_events_are_read_whatever_is_in_their_objects(item: bytes) -> None:
    found = rawjson.read_list(b'{"metadata":{"resourceVersion":"7"},"items":[' + item + b", " + item + b"]}")
    assert found.metadata == b'{"resourceVersion":"7"}'
    assert list(found.items) == [item, item]
    for line in (b'{"type":"ADDED","object":' + item + b"}\n", b'{"object": ' + item + b', "type": "ADDED"}'):
        assert rawjson.read_event(line) == ("ADDED", item)


@pytest.mark.parametrize("items", [b"", b',"items":null', b',"items":[]'])
def test_a_list_may_be_empty(items: bytes) -> None:
    for kind in (b'"List"', DEEP):
        assert list(rawjson.read_list(b'{"kind":' + kind + items + b"}").items) == []
    assert rawjson.read_list(b"{}").metadata == b"null"


def test_what_is_no_list_or_event_is_refused() -> None:
    with pytest.raises(ValueError, match="is not within"):
        list(rawjson.read_list(b'{"items":{}}').items)
    with pytest.raises(KeyError):
        rawjson.read_event(b'{"type":"ADDED"}')


class Counting:
    """A pattern that counts its matches."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.count = 0

    def match(self, text: bytes, at: int, end: int) -> re.Match[bytes] | None:
        self.count += 1
        return self._pattern.match(text, at, end)


# This blocks the event loop: a revision of 1 MB may arrive every few milliseconds.
@pytest.mark.parametrize("part", [b"0,", b"{},", b'"",', b'{"a":["]"]},', b"[" * 1_000 + b"]" * 1_000 + b","])
def test_a_large_and_deep_object_is_jumped_over_once(monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    data = b"[" * 1_500 + part * (1_000_000 // len(part)) + b"0" + b"]" * 1_500
    metadata = b'{"namespace":"ns","name":"r","resourceVersion":"11","managedFields":[]}'
    line = b'{"type":"ADDED","object":{"metadata":' + metadata + b',"data":' + data + b"}}"
    outside, within = Counting(rawjson._OUTSIDE), Counting(rawjson._WITHIN)
    monkeypatch.setattr(rawjson, "_OUTSIDE", outside)
    monkeypatch.setattr(rawjson, "_WITHIN", within)
    shown: list[Event] = []
    client = object.__new__(KubeClient)
    follower = watch._Follower(client, Resource.REVISIONS, None, shown.append, restored=lambda _: None, kinds=[])
    follower._take(line)
    (event,) = shown
    assert isinstance(event, Applied)
    assert event.object.resource_version == "11"
    assert outside.count + within.count < len(line) / 80
