from typing import Any

import pytest

from nodewise.selector import Selector

A = {"app": "x", "tier": "a"}
WITHOUT = {"app": "x"}


def expression(operator: Any, values: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]}


# D-104, with the operators of D-22.
@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ({"matchLabels": {"app": "x"}}, A, True),
        ({"matchLabels": {"app": "y"}}, A, False),
        ({"matchLabels": {"app": "x", "tier": "b"}}, A, False),
        (expression("In", ["a", "b"]), A, True),
        (expression("In", ["b"]), A, False),
        (expression("NotIn", ["a"]), A, False),
        (expression("NotIn", ["a"]), WITHOUT, True),
        (expression("Exists", []), A, True),
        (expression("Exists", []), WITHOUT, False),
        (expression("DoesNotExist", None), WITHOUT, True),
        (expression("DoesNotExist", []), A, False),
        # Nil, empty and invalid ones match nothing.
        (None, A, False),
        ({}, A, False),
        (expression("Exists", ["a"]), A, False),
        (expression("In", []), A, False),
        (expression("Like", ["a"]), A, False),
        (expression("In", [1]), A, False),
        ({"matchLabels": {"app": "x"}, **expression("In", [])}, A, False),
        ({"matchLabels": "app"}, A, False),
        # Objects without labels are nobody's.
        (expression("DoesNotExist", []), {}, False),
    ],
)
def test_wakes_only_what_it_selects(selector: Any, labels: dict[str, str], expected: bool) -> None:
    assert Selector.parse(selector).matches(labels) is expected
