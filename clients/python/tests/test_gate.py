from collections.abc import Callable

from nodewise.gate import Behind, Gate, Reached
from nodewise.kinds import Key, Resource

KEY = Key("ns", "foo")
PODS, DAEMON_SETS = Resource.PODS, Resource.DAEMON_SETS


def at(pods: str, daemon_sets: str = "") -> Reached:
    return lambda resource: pods if resource is PODS else daemon_sets


# D-110: no plan while the cache is behind. After that the record is dropped.
def test_refuses_until_the_cache_has_reached_our_write() -> None:
    gate = Gate()
    gate.record(KEY, "u1", PODS, "10")
    assert gate.check(KEY, at("5")) == Behind(PODS, "10", "5")
    assert gate.check(KEY, at("10")) is None
    assert gate.check(KEY, at("5")) is None, "forgotten once reached"


# D-110: a waiting workload is returned once, as soon as every cache is up to date, or its record is gone.
def test_tells_who_need_not_wait_any_more() -> None:
    gate = Gate()
    gate.record(KEY, "u1", PODS, "10")
    assert gate.opened(at("10")) == [], "nobody was refused"
    assert gate.check(KEY, at("5"))
    assert gate.opened(at("9")) == []
    assert gate.opened(at("11")) == [KEY]
    assert gate.opened(at("11")) == []
    assert gate.check(KEY, at("5"))
    gate.clear(KEY)
    assert gate.opened(at("5")) == [KEY]


# D-109: the highest version per resource, separately for pods and daemonsets.
def test_remembers_the_highest_write_of_each_resource() -> None:
    gate = Gate()
    gate.record(KEY, "u1", PODS, "10")
    gate.record(KEY, "u1", PODS, "9")
    gate.record(KEY, "u1", DAEMON_SETS, "7")
    assert gate.check(KEY, at("9", "7"))
    assert gate.check(KEY, at("10", "6"))
    assert gate.check(KEY, at("10", "7")) is None


# D-111: versions that cannot be compared do not block.
def test_odd_versions_do_not_block() -> None:
    gate = Gate()
    for written, reached in (("abc", "5"), ("10", ""), ("10", "0")):
        gate.record(KEY, "u1", PODS, written)
        assert gate.check(KEY, at(reached)) is None


# D-112
def test_writes_are_forgotten_when_versions_begin_anew() -> None:
    gate = Gate()
    gate.record(KEY, "u1", PODS, "1000")
    gate.record(KEY, "u1", DAEMON_SETS, "20")
    assert gate.check(KEY, at("500", "10"))
    assert gate.restarts == 0
    gate.restart_versions()
    assert gate.restarts == 1
    assert gate.opened(at("10", "10")) == [KEY]
    gate.record(KEY, "u1", PODS, "501")
    assert gate.check(KEY, at("500", "20")), "what is written after that counts"
    assert gate.check(KEY, at("501", "20")) is None


# D-112
def test_records_belong_to_a_uid() -> None:
    gate = Gate()
    gate.record(KEY, "u1", PODS, "10")
    gate.clear(KEY, "u2")
    assert gate.check(KEY, at("5")), "a record of another uid is not cleared"
    gate.record(KEY, "u2", DAEMON_SETS, "3")
    assert gate.check(KEY, at("5", "3")) is None
    gate.record(KEY, "u2", PODS, "10")
    gate.clear(KEY, "u2")
    assert gate.check(KEY, at("5")) is None


# Created pods are unseen until the cache has reached the version that the create returned. No workload waits for them.
def test_created_pods_are_unseen_until_the_cache_has_reached_them() -> None:
    gate = Gate()
    gate.record_create(KEY, "u1", "a", "10")
    gate.record_create(KEY, "u1", "b", "12")
    assert gate.check(KEY, at("5")) is None, "no workload waits for them"
    assert gate.unseen_creates(KEY, "u1", at("9")) == ["a", "b"]
    assert gate.unseen_creates(KEY, "u2", at("9")) == [], "of another workload"
    assert gate.unseen_creates(KEY, "u1", at("10")) == ["b"]
    assert gate.unseen_creates(KEY, "u1", at("9")) == ["b"], "forgotten once reached"
    gate.record(KEY, "u1", DAEMON_SETS, "20")
    assert gate.check(KEY, at("12", "19"))
    assert gate.unseen_creates(KEY, "u1", at("9")) == [], "forgotten, although the workload waits for another write"
    gate.record_create(KEY, "u2", "c", "13")
    gate.clear(KEY, "u1")
    assert gate.unseen_creates(KEY, "u2", at("9")) == ["c"], "a record of another uid is not cleared"
    clears: list[Callable[[], None]] = [lambda: gate.clear(KEY, "u2"), lambda: gate.clear(KEY), gate.restart_versions]
    for clear in clears:
        gate.record_create(KEY, "u2", "d", "14")
        clear()
        assert gate.unseen_creates(KEY, "u2", at("9")) == []
    gate.record_create(KEY, "u1", "e", "14")
    gate.record_create(KEY, "u1", "f", "9")
    gate.await_creates(KEY, "u2")
    assert gate.check(KEY, at("8")) is None, "another workload was meant"
    gate.await_creates(KEY, "u1")
    assert gate.check(KEY, at("13")), "it waits for all of them"
    assert gate.check(KEY, at("14")) is None
