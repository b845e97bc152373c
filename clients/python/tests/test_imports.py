"""The modules of the package do not import each other in a circle."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodewise


def _modules(root: Path) -> dict[str, Path]:
    """The files of the modules below `root`, by the names of the modules."""
    modules = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def _imported(module: str, path: Path) -> Iterator[str]:
    """Every name that a module imports: in full, wherever in the file, also for types only."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + ([node.module] if node.module else [])
            yield from (".".join([*base, alias.name]) for alias in node.names)


def _circle(root: Path) -> list[str]:
    """Modules below `root` of which each imports the one before it; empty if there is no circle."""
    modules = _modules(root)
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for module, path in modules.items():
        for name in _imported(module, path):
            # What is no module is defined in the module before the last dot.
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules:
                graph[module].add(target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    source = Path(nodewise.__file__).parent.parent
    assert len(_modules(source)) > 50
    assert _circle(source) == []


@pytest.mark.parametrize(
    "back",
    [
        "import made.a",
        "import made.a as other",
        "from made import a",
        "from made.a import A",
        "from .. import a",
        "from ..a import A",
        "def later():\n    from ..a import A",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..a import A",
    ],
)
def test_a_circle_is_found_however_an_import_is_written(tmp_path: Path, back: str) -> None:
    files = {"__init__.py": "", "a.py": "from .inner import B", "inner/__init__.py": "from .b import B"}
    for name, text in (files | {"inner/b.py": "B = 1"}).items():
        path = tmp_path / "made" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    assert _circle(tmp_path) == []
    (tmp_path / "made/inner/b.py").write_text(back)
    assert set(_circle(tmp_path)) == {"made.a", "made.inner", "made.inner.b"}
