"""Tests the controller of one kind with a simulated clock."""

from types import SimpleNamespace

import pytest

from nodewise import Config, Unreachable, UnreachableError, controller
from nodewise.controller import Controller
from nodewise.kinds import DAEMON_SET
from nodewise.queue import RateLimits
from nodewise.reconcile_traces import ReconcileTraces

from .objects import KEY
from .test_execute import Rig


# W12: a request that takes the whole deadline at every replica does not keep a worker busy for ever.
@pytest.mark.parametrize(("took", "delay"), [(0, 7), (3, 7), (4, 8), (60, 120)])
async def test_a_slow_failure_is_retried_later(monkeypatch: pytest.MonkeyPatch, took: float, delay: float) -> None:
    rig, clock = Rig(UnreachableError("it does not answer")), 100.0
    monkeypatch.setattr(controller, "time", SimpleNamespace(monotonic=lambda: clock))

    def wait() -> None:
        nonlocal clock
        clock += took

    rig.service.on_plan = wait
    made = Controller(DAEMON_SET, Config(unreachable_delay=7, rest=0), RateLimits(), rig.state, ReconcileTraces())
    made.start(rig.executor)
    made.synced()
    assert isinstance(await made.reconcile(KEY), Unreachable)
    assert made._queue.next_change() == clock + delay
    await made.cancel()
