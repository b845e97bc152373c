"""The actions of a plan."""

from collections.abc import Iterator

from . import v1


def actions_of(plan: v1.Plan) -> Iterator[v1.Action]:
    """The actions of a plan, in its order. The outcomes of a report have the same order."""
    return (action for phase in plan.phases for batch in phase.batches for action in batch.actions)
