"""The spans of a plan that is applied: of all of it, and of each batch."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from .. import v1
from .spans import NOTHING, Span, short_name, span, unsampled


class BatchTraces(NamedTuple):
    """What is told of a batch."""

    max_calls: int = 32
    """Most actions of a batch whose calls to the apiserver have a span each. A batch with more has only its own, and
    the apiserver is told to record nothing.
    """
    annotates_pods: bool = False
    """Created pods carry the context of their batch in `nodewise.dev/traceparent`."""


DEFAULT_TRACES = BatchTraces()
"""What is told if nobody asks for more or less."""


@contextmanager
def apply(plan: v1.Plan) -> Iterator[Span]:
    """The span of a plan that is applied; none for one without actions."""
    if not any(batch.actions for phase in plan.phases for batch in phase.batches):
        yield NOTHING
        return
    with span("apply", {"nodewise.plan.id": plan.plan_id}) as own:
        yield own


@contextmanager
def batch(phase: v1.PhaseKind.ValueType, actions: Sequence[v1.Action], max_calls: int) -> Iterator[Span]:
    """The span of a batch that is attempted; none for one without actions."""
    if not actions:
        yield NOTHING
        return
    with span(
        "batch",
        {"nodewise.phase": short_name(v1.PhaseKind.Name, phase, "PHASE_KIND_"), "nodewise.batch.actions": len(actions)},
    ) as own:
        if not own.is_recording:
            yield own
            return
        kinds = Counter(action.WhichOneof("kind") for action in actions)
        own.set({f"nodewise.batch.{kind}": count for kind, count in kinds.items() if kind})
        if len(actions) <= max_calls:
            yield own
            return
        with unsampled(own):
            yield own
