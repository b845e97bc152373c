"""Writes the generated code of `nodewise.v1` to a folder: `python tools/generate.py FOLDER`.

Use the versions of tools/requirements.txt. Code from a newer generator checks at import that the protobuf runtime is as
new, so every user would need that version. Code from this version has no such check, and works with all versions that
pyproject.toml allows.
"""

import importlib.resources
import pathlib
import sys

from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"


def generate(folder: pathlib.Path) -> None:
    """Generates messages, services and their type stubs."""
    sources = sorted(path.relative_to(PROTO) for path in PROTO.glob("nodewise/v1/*.proto"))
    known = importlib.resources.files("grpc_tools") / "_proto"
    folder.mkdir(parents=True, exist_ok=True)
    status = protoc.main(
        [
            "protoc",
            f"-I{PROTO}",
            f"-I{known}",
            f"--python_out={folder}",
            f"--mypy_out=quiet:{folder}",
            *map(str, sources),
        ]
    )
    # Only one file has a service. For the others the generator would write empty modules.
    services = [source for source in sources if b"\nservice " in (PROTO / source).read_bytes()]
    status = status or protoc.main(
        [
            "protoc",
            f"-I{PROTO}",
            f"-I{known}",
            f"--grpc_python_out={folder}",
            f"--mypy_grpc_out=quiet:{folder}",
            *map(str, services),
        ]
    )
    if status:
        sys.exit(status)


if __name__ == "__main__":
    generate(pathlib.Path(sys.argv[1]))
