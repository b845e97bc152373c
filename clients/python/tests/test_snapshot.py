"""Tests which revisions are sent if there are more than fit into a request."""

import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise import snapshot, v1
from nodewise.live import LiveObjects
from nodewise.objects import Revision
from nodewise.receiver import Receiver
from nodewise.state import State
from nodewise.store import Applied

from .objects import daemon_set, filled, revision

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (4500, "abcde"),
        (4499, "abcd"),
        # Revision e would fit, but ranks after one that does not.
        (3999, "abc"),
        (2999, "bc"),
        (1999, "c"),
        (1, "c"),
        (-1, "c"),
    ],
)
def test_the_own_and_the_new_ones_come_first(room: int, expected: str) -> None:
    revisions = [
        revision("a", owner=None, number=9, size=1000),
        revision("b", number=1, size=1000),
        revision("c", number=10, size=1000),
        revision("d", owner=None, number=8, size=1000),
        revision("e", owner=None, number=8, size=500),
    ]
    assert "".join(fits.name for fits in snapshot.fitting(revisions, room)) == expected
    assert snapshot.fitting([], room) == []


# The number only ranks revisions: an invalid one hides no revision.
@pytest.mark.parametrize(("number", "expected"), [(7, 7), (None, 0), ("7", 0), (True, 0), ([1], 0)])
def test_the_number_of_a_revision(number: Any, expected: int) -> None:
    assert revision(number=number).number == expected


@pytest.mark.parametrize(
    ("cached", "live", "expected", "left_out"),
    [
        # They fit exactly.
        (
            [revision("a", owner=None, size=8 * MEBIBYTE), revision("b", size=8 * MEBIBYTE)],
            [],
            [("a", False), ("b", False)],
            0,
        ),
        # Orphans do not fit.
        (
            [
                revision("a", owner=None, number=5, size=8 * MEBIBYTE),
                revision("b", number=2, size=8 * MEBIBYTE),
                revision("c", owner=None, number=6, size=8 * MEBIBYTE + 1),
            ],
            [],
            [("b", False)],
            2,
        ),
        # Revisions that were read live rank first.
        (
            [revision("a", number=5, size=8 * MEBIBYTE), revision("b", number=6, size=8 * MEBIBYTE)],
            [revision("live", owner=None, size=MEBIBYTE)],
            [("b", False), ("live", True)],
            1,
        ),
        # One revision is always sent, however large the others are.
        (
            [revision("a", number=5, size=MEBIBYTE), revision("live", number=9, size=MEBIBYTE)],
            [revision("live", number=9, size=16 * MEBIBYTE)],
            [("a", False), ("live", True)],
            0,
        ),
    ],
)
def test_what_is_too_large_together_is_left_out(
    cached: list[Revision], live: list[Revision], expected: list[tuple[str, bool]], left_out: int
) -> None:
    state = filled(State(1, v1.PlanOptions()), *map(Applied, cached))
    for one in cached:
        state.store.keep_whole(one)
    taken = snapshot.take(
        state.store, daemon_set(), v1.ReconcileState(), LiveObjects(live), now=Timestamp(), receiver=Receiver()
    )
    sent = [
        (json.loads(sent.object)["metadata"]["name"], sent.read_after_name_collision)
        for sent in taken.snapshot.revisions
    ]
    assert (sent, taken.left_out) == (expected, left_out)
