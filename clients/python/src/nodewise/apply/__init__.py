"""Applies a plan: its phases in order, batch by batch, and says what became of every action.

Nothing is decided here but what the contract leaves to the executor: run conditions, stopping after a failed batch, and
what a refusal means for the kind of write that was refused.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from .. import plan_log, tracing, v1
from ..actuator import Actuator, ActuatorError
from ..kinds import ObjectKey
from ..tracing import DEFAULT_TRACES, BatchTraces
from .action import Context, Done, OwnWrite, is_adoption

__all__ = ["DEFAULT_CONCURRENCY", "Applied", "OwnWrite", "apply"]

_log = tracing.logger(__name__)

DEFAULT_CONCURRENCY = 250
"""Most calls of one batch that are under way at the same time: as many as a burst has."""

_T = TypeVar("_T")


@dataclass(slots=True)
class Applied:
    """What became of a plan."""

    outcomes: list[v1.Outcome] = field(default_factory=list)
    """One per action of the plan, in the plan's order."""
    writes: list[OwnWrite] = field(default_factory=list)
    """Writes that the caches have to show before the next plan: pod creates, adoptions, status writes."""
    colliding_revisions: list[bytes] = field(default_factory=list)
    """ControllerRevisions, as live JSON, whose names a CreateRevision found taken: plan again at once with them."""
    vanished: list[ObjectKey] = field(default_factory=list)
    """Orphans that an adoption did not find: plan again at once without them."""
    sealed: list[ObjectKey] = field(default_factory=list)
    """Revisions, and pods to adopt, that cannot be changed. The next plan, at once, has to leave them as they are."""
    taken_names: list[str] = field(default_factory=list)
    """Names of new pods that are taken by other pods: report, and plan again at once. Nothing failed for it."""
    failed: bool = False
    """Some action outside the events phase failed."""
    aborted: bool = False
    """A failed phase, or something that is not as it was planned, ended the plan: nothing that comes later was done."""
    batches: int = 0
    """How many batches with actions were attempted."""

    @property
    def is_outdated(self) -> bool:
        """Something is not as it was planned, though nothing failed for it."""
        return bool(self.vanished or self.sealed)

    @property
    def failures(self) -> list[v1.Outcome]:
        """What failed."""
        return [outcome for outcome in self.outcomes if _is_failure(outcome)]

    def _take(self, phase: v1.Phase, done: Done) -> bool:
        failed = _is_failure(done.outcome)
        self.failed |= failed and phase.kind != v1.PHASE_KIND_EVENTS
        self.outcomes.append(done.outcome)
        _keep(self.writes, done.write)
        _keep(self.colliding_revisions, done.colliding_revision)
        _keep(self.vanished, done.vanished)
        _keep(self.sealed, done.sealed)
        if done.outcome.result == v1.RESULT_NAME_TAKEN:
            self.taken_names.append(done.outcome.created_pod.pod_name)
        return failed


def _is_failure(outcome: v1.Outcome) -> bool:
    """A name that is taken is no failure: the next plan, which follows at once, has another one."""
    return outcome.result == v1.RESULT_FAILED


def _keep(kept: list[_T], new: _T | None) -> None:
    if new is not None:
        kept.append(new)


async def apply(
    actuator: Actuator,
    plan: v1.Plan,
    served: bytes,
    concurrency: int = DEFAULT_CONCURRENCY,
    traces: BatchTraces = DEFAULT_TRACES,
    *,
    left_out: Mapping[int, str] = MappingProxyType({}),
) -> Applied:
    """Applies `plan` for the workload whose cached JSON is `served`, with at most `concurrency` calls at once.
    `left_out` tells by their ids why actions are not carried out: what they are about has changed since the snapshot.

    Returns when every call has been answered or has timed out; one that is cancelled, when every call has ended. Plans
    with nothing to apply give an empty answer.
    """
    with tracing.apply(plan) as span:
        applied = await _run(Context(actuator, plan, served, left_out), plan, concurrency, traces)
        span.set(
            {
                "nodewise.apply.actions": len(applied.outcomes),
                "nodewise.apply.failed": len(applied.failures),
                "nodewise.apply.batches": applied.batches,
            }
        )
    return applied


async def _run(context: Context, plan: v1.Plan, concurrency: int, traces: BatchTraces) -> Applied:
    limit = asyncio.Semaphore(max(concurrency, 1))
    applied = Applied()
    any_failure = False
    for phase in plan.phases:
        stopped = applied.aborted or (phase.requires_success and any_failure)
        phase_failed = False
        for batch in phase.batches:
            dones = [Done.skipped(action) for action in batch.actions]
            if not stopped:
                dones = await _traced_batch(context, phase.kind, batch, limit, traces)
                applied.batches += bool(batch.actions)
            for action, done in zip(batch.actions, dones, strict=True):
                phase_failed |= applied._take(phase, done)
                plan_log.tell_action(_log, plan.workload, action, done.outcome, writes=context.actuator.writes)
            # What follows an adoption rests on the object being there.
            stopped = stopped or phase_failed or applied.is_outdated
        # Events are best effort: whatever becomes of them, the plan goes on.
        if phase.kind != v1.PHASE_KIND_EVENTS:
            any_failure |= phase_failed
            applied.aborted |= (phase_failed and phase.aborts_on_failure) or applied.is_outdated
    return applied


async def _traced_batch(
    context: Context,
    phase: v1.PhaseKind.ValueType,
    batch: v1.Batch,
    limit: asyncio.Semaphore,
    traces: BatchTraces,
) -> list[Done]:
    with tracing.batch(phase, batch.actions, traces.max_calls) as span:
        if traces.annotates_pods and span.traceparent:
            context.annotate_pods(span.traceparent)
        dones = await _run_batch(context, batch, limit)
        if span.is_recording:
            failed = sum(_is_failure(done.outcome) for done in dones)
            span.set({"nodewise.batch.succeeded": len(dones) - failed, "nodewise.batch.failed": failed})
    return dones


async def _run_batch(context: Context, batch: v1.Batch, limit: asyncio.Semaphore) -> list[Done]:
    """Runs one batch; answers in the batch's order."""
    unconfirmed: ActuatorError | None = None
    if batch.confirm_workload:
        try:
            await context.confirm_workload()
        except Exception as error:
            unconfirmed = ActuatorError.of(error)

    async def run(action: v1.Action) -> Done:
        why = context.left_out.get(action.id)
        if why is not None:
            return Done.skipped(action, why)
        if unconfirmed is not None and is_adoption(action):
            return Done.failed(action, unconfirmed)
        async with limit:
            return await context.run(action)

    # Whatever becomes of one, and also when all are cancelled, the others are waited for.
    ran = await asyncio.gather(*map(run, batch.actions), return_exceptions=True)
    return [
        done if isinstance(done, Done) else Done.failed(action, ActuatorError.of(done))
        for action, done in zip(batch.actions, ran, strict=True)
    ]
