"""Tests the queue with a simulated clock."""

import pytest

from nodewise.handlers import Urgency
from nodewise.queue import Queue, RateLimits

NORMAL, URGENT = Urgency.NORMAL, Urgency.URGENT


def new(rest: float = 0.0) -> Queue[str]:
    return Queue(RateLimits(), rest, 0.0)


def turn(queue: Queue[str], now: float) -> str | None:
    """Works on the next key, in no time."""
    key = queue.take(now)
    if key is not None:
        queue.done(key, now)
    return key


def test_a_key_is_in_work_once_at_a_time() -> None:
    queue = new()
    for key in ("a", "b", "a"):
        queue.add(key, NORMAL, 0)
    assert queue.take(0) == "a"
    queue.add("a", NORMAL, 0)
    assert [queue.take(0), queue.take(0)] == ["b", None]
    queue.done("a", 0)
    assert queue.take(0) == "a"
    assert queue.take(0) is None


# One delay per key is kept: the earliest.
def test_delays() -> None:
    queue = new()
    queue.add_after("a", 5, 0)
    queue.add_after("a", 9, 0)
    assert queue.next_change() == 5
    queue.add_after("a", 2, 0)
    assert queue.next_change() == 2
    assert queue.take(1.9) is None
    assert turn(queue, 2) == "a"
    assert queue.take(100) is None
    assert queue.idle
    queue.add_after("a", 0, 100)
    assert turn(queue, 100) == "a"


# Back-off doubles from 5 ms to 1000 s. After 100 failures, all keys together get 10 per second.
def test_retries_back_off() -> None:
    queue = new()
    delays = [queue.add_rate_limited("a", 60.0 * n) for n in range(40)]
    assert delays == pytest.approx([min(0.005 * 2**n, 1000) for n in range(40)])
    queue.forget("a")
    assert queue.add_rate_limited("a", 2400) == pytest.approx(0.005)


def test_retries_share_tokens() -> None:
    queue = new()
    for key in range(100):
        assert queue.add_rate_limited(str(key), 0) == pytest.approx(0.005)
    assert queue.add_rate_limited("100", 0) == pytest.approx(0.1)
    assert queue.add_rate_limited("101", 0) == pytest.approx(0.2)
    assert queue.add_rate_limited("102", 1) == pytest.approx(0.005), "refilled by 10, 2 owed"


# A client that makes one workload fail, and queues it again and again, must not delay the retries of others.
def test_a_key_that_is_woken_before_its_retry_takes_no_token() -> None:
    queue, now = new(), 0.0
    for _ in range(1_000):
        queue.add("a", NORMAL, now)
        assert turn(queue, now) == "a"
        queue.add_rate_limited("a", now)
        now += 0.001
    assert queue.add_rate_limited("b", now) == pytest.approx(0.005)


def test_nobody_waits_longer_for_a_token_than_for_a_retry() -> None:
    queue = Queue[str](RateLimits(max_delay=60.0), 0.0, 0.0)
    delays = [queue.add_rate_limited(str(key), 0) or 0.0 for key in range(10_000)]
    assert max(delays) == delays[-1] == 60.0
    assert queue.add_rate_limited("late", 59) == pytest.approx(1.1), "and tokens come back"


# A burst of events causes two reconciles: one at once, and one after the pause.
def test_bursts_are_coalesced() -> None:
    queue = new(0.020)
    queue.add("a", NORMAL, 0)
    assert turn(queue, 0) == "a", "the first is never delayed"
    turns = []
    for ms in range(1, 60):
        if ms <= 15:
            queue.add("a", NORMAL, ms / 1000)
        if turn(queue, ms / 1000):
            turns.append(ms)
    assert turns == [20]
    assert queue.idle
    queue.add("a", NORMAL, 1)
    assert turn(queue, 1) == "a", "nor the first after a quiet time"


def test_a_delay_ends_a_cooldown() -> None:
    queue = new(0.020)
    queue.add("a", NORMAL, 0)
    assert queue.take(0) == "a"
    queue.add_after("a", 0.001, 0)
    assert queue.take(0.001) is None, "in work"
    queue.done("a", 0.002)
    assert turn(queue, 0.002) == "a"


def test_a_rest_is_a_change_only_for_keys_that_wait() -> None:
    queue = new(0.020)
    queue.add("a", NORMAL, 0)
    turn(queue, 0)
    assert queue.next_change() is None
    queue.add("a", NORMAL, 0.001)
    assert queue.next_change() == pytest.approx(0.020)


def test_urgent_keys_come_first_but_not_always() -> None:
    queue = new()
    queue.add("normal", NORMAL, 0)
    for number in range(10):
        queue.add(f"urgent-{number}", URGENT, 0)
    taken = [queue.take(0) for _ in range(11)]
    assert taken[:8] == [f"urgent-{number}" for number in range(8)]
    assert taken[8:] == ["normal", "urgent-8", "urgent-9"]


def test_a_key_may_become_urgent() -> None:
    queue = new()
    for key in ("a", "b"):
        queue.add(key, NORMAL, 0)
    queue.add("b", URGENT, 0)
    assert [queue.take(0), queue.take(0)] == ["b", "a"]


def test_the_urgent_worker_leaves_long_ones_alone() -> None:
    queue = new()
    queue.add("a", NORMAL, 0)
    assert queue.take_urgent(0) is None
    queue.add("a", URGENT, 0)
    assert queue.take_urgent(0) == "a"
    queue.done("a", 1.5)
    queue.add("a", URGENT, 2)
    assert queue.take_urgent(2) is None
    assert turn(queue, 2) == "a"
    queue.add("a", URGENT, 3)
    assert queue.take_urgent(3) == "a", "its last turn was short"


def test_an_urgent_turn_that_came_to_nothing_is_owed() -> None:
    queue = new()
    queue.add("a", URGENT, 0)
    assert queue.take(0) == "a"
    queue.keep_urgency("a")
    queue.done("a", 0)
    queue.add("b", NORMAL, 0)
    queue.add("a", NORMAL, 0)
    assert queue.take(0) == "a"


# After the shutdown, queued keys are still handed out, also those that were added again during their work. No new keys
# are accepted.
def test_shutting_down_drains() -> None:
    queue = new(0.020)
    for key in ("a", "b"):
        queue.add(key, NORMAL, 0)
    queue.add_after("c", 1, 0)
    assert queue.take(0) == "a"
    queue.add("a", NORMAL, 0)
    queue.shut_down(0)
    queue.add("d", NORMAL, 0)
    assert queue.take(0) == "b"
    assert queue.take(0) is None
    assert not queue.finished, "a is still in work and to be looked at"
    queue.done("a", 0)
    assert queue.take(0) == "a"
    assert queue.finished


# Time during which a key is in work or in its cooldown does not count as waiting.
def test_how_long_a_key_waited() -> None:
    queue = new(0.020)
    queue.add("a", NORMAL, 0)
    assert queue.waited("a") == 0, "it is not in work"
    queue.add("a", URGENT, 1)
    assert queue.take(3) == "a"
    assert queue.waited("a") == 3, "since it was first added"
    queue.add("a", NORMAL, 4)
    queue.done("a", 5)
    assert queue.take(5.5) == "a"
    assert queue.waited("a") == pytest.approx(0), "handed out when its rest was over"
    queue.done("a", 6)
    queue.add_after("a", 10, 6)
    assert queue.take(15) is None
    assert queue.take(16) == "a"
    assert queue.waited("a") == 0
    queue.done("a", 16)
    assert queue.waited("a") == 0
