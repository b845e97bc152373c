"""The actions of a plan."""

from collections.abc import Iterator

from . import v1


def actions_of(plan: v1.Plan) -> Iterator[v1.Action]:
    """The actions of a plan, in its order. The outcomes of a report have the same order."""
    return (action for phase in plan.phases for batch in phase.batches for action in batch.actions)


def removed_pod(action: v1.Action) -> v1.ObjectReference | None:
    """The pod that an action deletes or evicts; None for all other actions."""
    match action.WhichOneof("kind"):
        case "delete_pod":
            return action.delete_pod.pod
        case "evict_pod":
            return action.evict_pod.pod
    return None
