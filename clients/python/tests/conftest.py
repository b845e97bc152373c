import json
import pathlib
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def vector(name: str) -> dict[str, Any]:
    """One vector."""
    found: dict[str, Any] = json.loads((ROOT / "proto" / "testdata" / f"{name}.json").read_text())
    return found


def vectors(name: str) -> list[dict[str, Any]]:
    """The vectors that every client and the server are tested with."""
    found: list[dict[str, Any]] = json.loads((ROOT / "proto" / "testdata" / f"{name}.json").read_text())
    assert found, f"{name}.json has no vectors"
    return found


def cases(name: str, title: str = "name") -> pytest.MarkDecorator:
    """Runs a test for each vector. `title` is the member that names a vector."""
    found = vectors(name)
    ids = [str(case.get(title, index)) for index, case in enumerate(found)]
    return pytest.mark.parametrize("case", found, ids=ids)
