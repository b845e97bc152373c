"""Tests importing the package, each time in its own process."""

import subprocess
import sys

import pytest


def run(program: str, *, without: str = "") -> "subprocess.CompletedProcess[str]":
    """Runs a program where a package cannot be imported."""
    start = f"import sys; sys.modules.update(dict.fromkeys({without.split()!r}))\n"
    return subprocess.run([sys.executable, "-c", start + program], capture_output=True, text=True, check=False)


def test_everything_that_is_documented_is_there_at_once() -> None:
    program = """
import nodewise
nodewise.sync.PlanClient, nodewise.convert.items, nodewise.v1.Plan
for name in nodewise.__all__:
    getattr(nodewise, name)
from nodewise import Actuator, ActuatorError, BrokenError, EndedError, PlanService
"""
    ran = run(program)
    assert not ran.returncode, ran.stderr


@pytest.mark.parametrize("missing", ["aiohttp", "kubernetes"])
@pytest.mark.parametrize(
    "program",
    [
        "import nodewise; nodewise.Reconciler",
        "from nodewise import KubeClient",
        "from nodewise.reconciler import Config",
        "import nodewise; nodewise.sync.Reconciler('http://127.0.0.1:1').__enter__()",
    ],
)
def test_what_to_install_is_said_where_the_extra_is_missing(program: str, missing: str) -> None:
    ran = run(program, without=missing)
    assert ran.returncode
    said = f"the Reconciler and the KubeClient need the package {missing}: pip install 'nodewise[kube]'"
    assert ran.stderr.splitlines()[-1] == f"ModuleNotFoundError: {said}"


def test_the_plan_client_needs_no_extra() -> None:
    program = (
        "import nodewise; nodewise.PlanClient('http://127.0.0.1:1'); nodewise.EndedError; nodewise.sync.PlanClient"
    )
    ran = run(program, without="aiohttp kubernetes opentelemetry")
    assert not ran.returncode, ran.stderr
