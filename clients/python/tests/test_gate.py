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
    gate.restart_versions()
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
