import json
from types import MappingProxyType
from typing import Any

import pytest
from kubernetes.client import ApiClient, V1ControllerRevision, V1DaemonSet, V1Node, V1Pod

from nodewise import convert, times
from nodewise.convert import ConversionError
from nodewise.kinds import DAEMON_SET
from nodewise.objects import Revision, Workload

POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"b": "2", "a": "1"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "du", "controller": True}
        ],
    },
    "spec": {"nodeName": "n", "containers": []},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}
NODE: dict[str, Any] = {
    "metadata": {"name": "n", "uid": "nu", "labels": {"os": "linux"}},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
}


def typed(obj: dict[str, Any], kind: type) -> Any:
    """The object as the kubernetes client reads it."""

    return ApiClient().deserialize(json.dumps(obj), kind.__name__, "application/json")


def test_every_form_of_an_object_gives_the_same_projection() -> None:
    for obj, kind, project in ((POD, V1Pod, convert.pod), (NODE, V1Node, convert.node)):
        expected = project(obj)
        text = json.dumps(obj)
        for form in (text, text.encode(), MappingProxyType(obj), typed(obj, kind)):
            assert project(form) == expected


def test_typed_objects_travel_as_json() -> None:
    obj = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"minReadySeconds": 5}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}
    obj["spec"].update(spec)  # type: ignore[attr-defined]
    assert json.loads(convert.daemon_set(typed(obj, V1DaemonSet)).object) == obj
    revision = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "r"},
        "data": {"n": 1},
        "revision": 1,
    }
    carried = convert.controller_revision(typed(revision, V1ControllerRevision), read_after_name_collision=True)
    assert json.loads(carried.object) == revision
    assert carried.read_after_name_collision


# Served JSON is sent byte for byte, without managedFields, and with the fields that lists leave out.
@pytest.mark.parametrize(
    ("served", "sent"),
    [
        (
            '{"kind":"K","apiVersion":"v","metadata":{"name":"n","managedFields":[{"fieldsV1":{"f:a":{}}}],"uid":"u"},'
            '"spec":{ "a": [1.50, 1e400, 12345678901234567890123, "é<\\u003c"] }}',
            '{"apiVersion":"v","kind":"K","metadata":{"name":"n","uid":"u"},'
            '"spec":{ "a": [1.50, 1e400, 12345678901234567890123, "é<\\u003c"] }}',
        ),
        ('{"metadata":{"name":"n"}}', '{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"n"}}'),
        (
            '{"spec":{"managedFields":1},"kind":"K","apiVersion":"v","metadata":{"labels":{"managedFields":"4"}}}',
            '{"apiVersion":"v","kind":"K","spec":{"managedFields":1},"metadata":{"labels":{"managedFields":"4"}}}',
        ),
        ('{"kind": "K", "apiVersion": "v",  "x": 1}', '{"kind": "K", "apiVersion": "v",  "x": 1}'),
    ],
)
def test_what_was_served_is_sent(served: str, sent: str) -> None:
    got = convert.served(served, "DaemonSet").decode()
    assert got == sent


def test_what_cannot_be_parsed_names_the_whole() -> None:
    for wrong in (b"{", "[]", b"\xff", 3, '{"metadata":'):
        with pytest.raises(ConversionError) as error:
            convert.pod(wrong)
        assert error.value.path == "."


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"spec": {"nodeName": 1}}, "spec.nodeName"),
        ({"spec": []}, "spec"),
        ({"status": {"conditions": [{"type": "Other"}, {"type": "Ready"}]}}, "status.conditions[1]"),
        ({"status": {"conditions": ["x"]}}, "status.conditions[0]"),
        ({"metadata": {**POD["metadata"], "labels": {"a": None}}}, "metadata.labels"),
        (
            {"metadata": {**POD["metadata"], "ownerReferences": [{"controller": "yes"}]}},
            "metadata.ownerReferences[0].controller",
        ),
        ({"metadata": {**POD["metadata"], "deletionTimestamp": ""}}, "metadata.deletionTimestamp"),
    ],
)
def test_errors_name_the_field(change: dict[str, Any], path: str) -> None:
    with pytest.raises(ConversionError) as error:
        convert.pod({**POD, **change})
    assert error.value.path == path


def test_half_a_surrogate_pair_is_written_as_an_escape() -> None:
    assert convert.to_json({"a": "\ud800", "é": 1.0}) == b'{"a":"\\ud800","\\u00e9":1.0}'
    assert convert.to_json({"é": 1.0}) == '{"é":1.0}'.encode()
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        convert.to_json({"a": float("nan")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", (0, 0)),
        ("2026-01-01T01:00:00.123456789123+01:00", (1767225600, 123456789)),
        ("2016-12-31T23:59:60Z", (1483228799, 0)),
        ("0001-01-01T00:00:00+14:00", (times.FIRST_SECOND, 0)),
        ("-0001-12-31T00:01:00Z", (times.FIRST_SECOND, 0)),
        ("0000-01-01T00:00:00Z", (times.FIRST_SECOND, 0)),
        ("9999-12-31T23:59:59Z", (times.LAST_SECOND, 0)),
        ("12026-02-29T00:00:00Z", (times.LAST_SECOND, 0)),
    ],
)
def test_times(text: str, expected: tuple[int, int]) -> None:
    assert times.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "26-01-01T00:00:00Z"],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        times.parse(text)


def test_items_of_a_list_stay_what_they_are() -> None:
    assert convert.items(b'{"items":[{"a": 1.50},{"b":"\xc3\xa9"}]}') == [b'{"a": 1.50}', b'{"b":"\xc3\xa9"}']
    assert convert.items(b'{"items":null}') == []


# Python may be unable to represent its data.
def test_the_data_of_a_revision_is_not_looked_into() -> None:
    deep = "[" * 500 + "]" * 500
    served = '{"metadata":{"name":"r","namespace":"ns"},"data":{"n":1e999,"s":"\\ud800","d":' + deep + "}}"
    revision = Revision.read(served)
    assert revision.object is not None
    assert b'"n":1e999,"s":"\\ud800"' in revision.object


def test_a_daemon_set_whose_spec_cannot_be_read_is_kept_as_it_is() -> None:
    kept = Workload.read(DAEMON_SET, '{"metadata":{"name":"d","namespace":"ns","uid":"u"},"spec":"odd"}')
    assert kept.min_ready_seconds == 0
    assert not kept.selector.matches({"a": "b"})
    with pytest.raises(ConversionError) as error:
        Workload.read(DAEMON_SET, "{}")
    assert error.value.path in (".", "metadata.name")
