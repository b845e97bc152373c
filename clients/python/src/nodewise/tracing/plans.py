"""The spans of applying a plan: one for the plan, and one for each batch."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from .. import v1
from .spans import NO_SPAN, Span, short_name, span, unsampled


class BatchTraces(NamedTuple):
    """How much is traced of a batch."""

    max_calls: int = 32
    """Most actions of a batch whose calls to the apiserver each have a span. A larger batch has only its own span, and
    the apiserver is told not to record its calls.
    """
    annotates_pods: bool = False
    """Whether created pods get the trace context of their batch in `nodewise.dev/traceparent`."""


DEFAULT_TRACES = BatchTraces()
"""The default."""


@contextmanager
def apply(plan: v1.Plan) -> Iterator[Span]:
    """The span of applying a plan; none without actions."""
    if not any(batch.actions for phase in plan.phases for batch in phase.batches):
        yield NO_SPAN
        return
    with span("apply", {"nodewise.plan.id": plan.plan_id}) as own:
        yield own


@contextmanager
def batch(phase: v1.PhaseKind.ValueType, actions: Sequence[v1.Action], max_calls: int) -> Iterator[Span]:
    """The span of a batch; none without actions."""
    if not actions:
        yield NO_SPAN
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
