"""Starts and stops programs, and makes virtual environments, for tests."""

import hashlib
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from .conftest import ROOT

CLIENT = ROOT / "clients" / "python"


def built(name: str) -> pathlib.Path:
    """A program of this workspace, which `make python` builds."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "debug" / name
    assert program.exists(), (
        f"{program} is not there; build it with: cargo build -p nodewise-server -p nodewise-testbed"
    )
    return program


def environment(name: str, *requirements: str) -> pathlib.Path:
    """The Python of a virtual environment with these arguments for pip, made when it is not there yet."""
    asked = hashlib.sha256("\n".join([sys.version, *requirements, *map(_content, requirements)]).encode()).hexdigest()
    folder = ROOT / "target" / "python" / f"{name}-{asked[:12]}"
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        complete.touch()
    return python


def _content(requirement: str) -> str:
    path = pathlib.Path(requirement)
    return path.read_text() if path.is_file() else ""


class Program:
    """A program that runs."""

    def __init__(self, process: "subprocess.Popen[str]", name: str) -> None:
        self.process = process
        self.output: list[str] = []
        self._name = name
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, pattern: str, timeout: float = 120) -> "re.Match[str]":
        """Waits for a line of output that matches."""
        until = time.monotonic() + timeout
        for line in self.output:
            if match := re.search(pattern, line):
                return match
        while True:
            left = until - time.monotonic()
            if left <= 0 or self._ended():
                raise AssertionError(f"{self._name} did not say {pattern!r}:\n{''.join(self.output)}")
            try:
                line = self._lines.get(timeout=min(left, 0.2))
            except queue.Empty:
                continue
            self.output.append(line)
            if match := re.search(pattern, line):
                return match

    def said(self) -> str:
        """All output until now."""
        while not self._lines.empty():
            self.output.append(self._lines.get())
        return "".join(self.output)

    def end(self, how: signal.Signals = signal.SIGTERM, timeout: float = 60) -> int:
        """Ends the program. Returns its exit status."""
        self.process.send_signal(how)
        status = self.process.wait(timeout)
        self._reader.join(5)
        return status

    def close(self) -> None:
        """Closes the output."""
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _ended(self) -> bool:
        return self.process.poll() is not None and self._lines.empty() and not self._reader.is_alive()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)


@contextmanager
def running(*command: object, env: Mapping[str, str] | None = None) -> Iterator[Program]:
    """Runs a program until the block is left."""
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(env or {})},
        cwd=ROOT,
    )
    program = Program(process, str(command[0]))
    try:
        yield program
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        program.close()


@contextmanager
def service_running() -> Iterator[str]:
    """Runs a replica of the service. Yields its URL."""
    with running(built("nodewise-server"), "--listen", "127.0.0.1:0") as server:
        address = server.wait_for(r"listening on (\S+)")[1]
        yield f"http://{address}"


@contextmanager
def control_plane_running(*args: object) -> Iterator[str]:
    """Runs a control plane with these arguments of the testbed. Yields the path of its kubeconfig."""
    with running(built("nodewise-testbed"), "up", *args) as testbed:
        yield testbed.wait_for(r"export KUBECONFIG=(\S+)", timeout=280)[1]
