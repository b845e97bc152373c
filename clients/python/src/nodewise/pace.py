"""When the next plan is asked for: as a plan or the answer to its report says, but not again and again for nothing."""

from . import times, v1
from .actions import actions_of
from .apply import Applied

_CHANGES = ("create_pod", "delete_pod")

SOONEST = 0.1
"""A plan that created and deleted no pod is followed by another one no sooner than this, in seconds, whatever the
service says.
"""


def of_plan(plan: v1.Plan) -> float | None:
    """When to come back after a plan of which nothing is known, or that did nothing: another one does not follow at
    once.
    """
    after = _requeue_after(plan)
    return max(after, SOONEST) if after else None


def of_answer(response: v1.ReportResponse, changed: bool) -> float | None:
    """When to come back as the answer to a report says."""
    after = _requeue_after(response)
    if after is None or (changed and response.requeue != v1.REQUEUE_BACKOFF):
        return after
    return max(after, SOONEST)


def has_changed(plan: v1.Plan, applied: Applied) -> bool:
    """Whether a plan has created or deleted a pod, or found the name of one taken: then the next one is another. There
    is no end to revisions that can be created, patches, statuses and Events.
    """
    return any(
        outcome.result == v1.RESULT_NAME_TAKEN
        or (outcome.result == v1.RESULT_SUCCEEDED and action.WhichOneof("kind") in _CHANGES)
        for action, outcome in zip(actions_of(plan), applied.outcomes, strict=True)
    )


def _requeue_after(said: v1.Plan | v1.ReportResponse) -> float | None:
    """When to come back, in seconds; none where nothing is said or the time is negative."""
    if not said.HasField("requeue_after"):
        return None
    after = times.seconds(said.requeue_after)
    return None if after < 0 else after
