"""The generated code is fresh, and works with the oldest dependencies that pyproject.toml allows as well as with the
newest.
"""

import os
import pathlib
import re
import subprocess

import pytest

from .programs import CLIENT, environment

V1 = CLIENT / "src" / "nodewise" / "v1"


@pytest.mark.timeout(900)
def test_it_is_fresh(tmp_path: pathlib.Path) -> None:
    python = environment("generator", "-r", str(CLIENT / "tools" / "requirements.txt"))
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    command = [python, CLIENT / "tools" / "generate.py", tmp_path]
    subprocess.run(command, check=True, env={**os.environ, "PATH": path})
    fresh = {path.name: path.read_text() for path in (tmp_path / "nodewise" / "v1").iterdir()}
    committed = {path.name: path.read_text() for path in V1.glob("*_pb2*")}
    assert len(fresh) > 10
    assert sorted(fresh) == sorted(committed)
    for name, text in fresh.items():
        assert text == committed[name], f"{name} is not what the proto says; see README.md, Working on it"


def oldest() -> list[str]:
    """The lower bound of every dependency."""
    bounds = re.findall(r'"([a-z-]+)>=([\d.]+)"', (CLIENT / "pyproject.toml").read_text())
    return [f"{name}=={version}" for name, version in bounds if name != "hatchling"]


@pytest.mark.timeout(900)
def test_the_oldest_dependencies_do() -> None:
    pins = oldest()
    assert {pin.split("==")[0] for pin in pins} >= {"grpcio", "protobuf", "msgspec", "aiohttp", "kubernetes"}
    locked = (CLIENT / "requirements.txt").read_text()
    # Traces are recorded by an SDK as old as the API.
    pins += [pin.replace("-api", "-sdk") for pin in pins if pin.startswith("opentelemetry-api")]
    runner = re.findall(r"^(?:pytest|pytest-asyncio|pytest-timeout|trustme)==.*$", locked, re.MULTILINE)
    python = environment("oldest", *pins, *runner)
    tests = ["test_vectors", "test_client", "test_health", "test_kube", "test_apply", "test_execute", "test_tracing"]
    command: list[str | pathlib.Path] = [
        python,
        "-W",
        "ignore",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
    ]
    command += [CLIENT / "tests" / f"{name}.py" for name in tests]
    ran = subprocess.run(
        command,
        cwd=CLIENT,
        env={**os.environ, "PYTHONPATH": str(CLIENT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
