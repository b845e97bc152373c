"""D-102: which Events the apiserver gets of many similar ones."""

from nodewise import v1
from nodewise.actuator import WorkloadEvent
from nodewise.kube.correlate import CAPACITY, SIMILAR_WINDOW, Correlator, Create, Filtered, Patch, Recent, Verdict


def event(message: str, *, reason: str = "SuccessfulCreate", kind: str = "Normal") -> WorkloadEvent:
    return WorkloadEvent(v1.WorkloadReference(kind="DaemonSet", name="agent"), kind, reason, message)


def send(correlator: Correlator, of: WorkloadEvent, now: float = 0.0) -> Verdict:
    """Pretends that the apiserver took what was to be created."""
    identity, verdict = correlator.correlate("c", of, now)
    if isinstance(verdict, Create):
        correlator.sent(identity, verdict.message)
    return verdict


def test_sixty_creates_give_nine_single_events_and_one_that_ends_with_16() -> None:
    correlator = Correlator()
    verdicts = [send(correlator, event(f"Created pod: p-{number}")) for number in range(60)]
    assert verdicts[:9] == [Create(f"Created pod: p-{number}") for number in range(9)]
    combined = "(combined from similar events): Created pod: p-"
    assert verdicts[9] == Create(f"{combined}9")
    assert verdicts[24] == Patch(f"{combined}9", f"{combined}24", 16)
    assert verdicts[25:] == [Filtered()] * 35


def test_repetitions_are_counted() -> None:
    correlator, failure = Correlator(), event("Error creating: quota", reason="FailedCreate", kind="Warning")
    verdicts = [send(correlator, failure) for _ in range(4)]
    message = failure.message
    assert verdicts == [
        Create(message),
        Patch(message, message, 2),
        Patch(message, message, 3),
        Patch(message, message, 4),
    ]


def test_throttled_by_type_and_refilled() -> None:
    correlator, warning = Correlator(), event("quota", kind="Warning")
    assert Filtered() not in [send(correlator, warning) for _ in range(25)]
    assert send(correlator, warning) == Filtered()
    assert send(correlator, event("Deleted pod: p", reason="SuccessfulDelete")) != Filtered()
    assert send(correlator, warning, 299) == Filtered()
    verdict = send(correlator, warning, 301)
    assert isinstance(verdict, Patch)
    assert verdict.times == 28, "filtered ones are counted, too"


def test_similar_events_are_forgotten() -> None:
    correlator = Correlator()
    for number in range(12):
        send(correlator, event(str(number)))
    assert send(correlator, event("late"), SIMILAR_WINDOW + 1) == Create("late")


def test_a_lost_event_is_created_again() -> None:
    correlator, created = Correlator(), event("Created pod: p")
    identity, _ = correlator.correlate("c", created, 0)
    correlator.sent(identity, "agent.1")
    correlator.sent(identity, "")
    assert correlator.correlate("c", created, 0)[1] == Create("Created pod: p")


def test_a_full_table_forgets_the_least_recently_used() -> None:
    table: Recent[int, int] = Recent()
    for number in range(CAPACITY):
        table.entry(number, lambda: 0)
    table.entry(0, lambda: 1)
    table.entry(CAPACITY, lambda: 0)
    assert len(table) == CAPACITY
    assert 0 in table
    assert 1 not in table
