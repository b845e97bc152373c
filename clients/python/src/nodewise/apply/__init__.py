"""Applies a plan: its phases in order, batch by batch. Returns the outcome of every action.

This package decides only what the contract leaves to the executor: run conditions, stopping after a failed batch, and
what a refusal means for each kind of write.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from .. import plan_log, tracing, v1
from ..actuator import Actuator, ActuatorError, Blocked
from ..kinds import DAEMON_SET, Kind, ObjectKey
from ..tracing import DEFAULT_TRACES, BatchTraces
from .action import Context
from .patching import is_adoption, is_create
from .result import ActionResult, Colliding, OwnWrite

__all__ = ["DEFAULT_CONCURRENCY", "Applied", "Colliding", "OwnWrite", "apply"]

_log = tracing.logger(__name__)

DEFAULT_CONCURRENCY = 250
"""Most concurrent calls of one batch: the default burst."""

_T = TypeVar("_T")


@dataclass(slots=True)
class Applied:
    """The result of applying a plan."""

    outcomes: list[v1.Outcome] = field(default_factory=list)
    """One per action of the plan, in the plan's order."""
    writes: list[OwnWrite] = field(default_factory=list)
    """Writes that the caches must show before the next plan: pod creates, adoptions, status writes."""
    colliding: list[Colliding] = field(default_factory=list)
    """Live objects that already have the name of a CreateRevision or CreateObject. The executor plans again at once
    with them.
    """
    vanished: list[ObjectKey] = field(default_factory=list)
    """Orphans that were gone when the executor adopted them. The executor plans again at once without them."""
    sealed: list[ObjectKey] = field(default_factory=list)
    """Revisions, and pods to adopt, that the apiserver refuses to change. The executor plans again at once, and the
    next plan leaves them as they are.
    """
    blocked: dict[str, Blocked] = field(default_factory=dict)
    """Evictions that a PodDisruptionBudget did not allow, by the uid of the pod."""
    taken_names: list[str] = field(default_factory=list)
    """Names of new pods that other pods already have. The executor reports them and plans again at once. This is not a
    failure.
    """
    failed: bool = False
    """An action failed, of a phase whose failures count."""
    aborted: bool = False
    """A failed phase, an object that differs from the plan, or a create that found its name taken or its namespace
    terminating ended the plan. No later action was attempted.
    """
    batches: int = 0
    """The number of attempted batches that have actions."""

    @property
    def is_outdated(self) -> bool:
        """Whether an object differs from the plan, though no action failed."""
        return bool(self.vanished or self.sealed)

    @property
    def failures(self) -> list[v1.Outcome]:
        """The outcomes of failed actions."""
        return [outcome for outcome in self.outcomes if _is_failure(outcome)]

    @property
    def first_failure(self) -> v1.Outcome | None:
        """The outcome of the failed action with the lowest id. Failures that do not count are left out."""
        counted = (outcome for outcome in self.failures if not outcome.ignored)
        return min(counted, key=lambda outcome: outcome.action_id, default=None)

    def _take(self, phase: v1.Phase, result: ActionResult) -> bool:
        failed = _is_failure(result.outcome)
        result.outcome.ignored |= failed and phase.ignores_failure
        self.failed |= failed and _counts_failures(phase)
        self.outcomes.append(result.outcome)
        _keep(self.writes, result.write)
        _keep(self.colliding, result.colliding)
        _keep(self.vanished, result.vanished)
        _keep(self.sealed, result.sealed)
        if result.blocked is not None:
            self.blocked[result.outcome.deleted_pod_uid] = result.blocked
        if result.outcome.result == v1.RESULT_NAME_TAKEN and result.colliding is None:
            self.taken_names.append(result.outcome.created_pod.pod_name)
        return failed


def _is_failure(outcome: v1.Outcome) -> bool:
    """A name collision is not a failure. The next plan follows at once and uses another name."""
    return outcome.result == v1.RESULT_FAILED


def _counts_failures(phase: v1.Phase) -> bool:
    """Whether a failure in this phase counts. Events are best effort: the plan continues if they fail."""
    return phase.kind != v1.PHASE_KIND_EVENTS and not phase.ignores_failure


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
    kind: Kind = DAEMON_SET,
    start: Callable[[v1.Measure], None] = lambda _: None,
) -> Applied:
    """Applies `plan` to the workload of this kind whose cached JSON is `served`, with at most `concurrency` concurrent
    calls. `left_out` maps the ids of actions that must not be carried out to the reason: their objects changed after
    the snapshot. `start` starts a measurement, and returns at once; the default starts none.

    Returns when every call has a response or has timed out. If cancelled, returns when every call has ended. A plan
    without actions gives an empty result.
    """
    with tracing.apply(plan) as span:
        applied = await _run(
            Context(actuator, plan, served, left_out, kind=kind, start=start), plan, concurrency, traces
        )
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
        needless = phase.requires_failure and not (any_failure or applied.aborted)
        stopped = applied.aborted or (phase.requires_success and any_failure) or needless
        phase_failed = ends_plan = False
        for batch in phase.batches:
            results = [ActionResult.skipped(action, ignored=needless) for action in batch.actions]
            if not stopped:
                failure = applied.first_failure
                context.failure = "" if failure is None else failure.message
                results = await _traced_batch(context, phase.kind, batch, limit, traces)
                applied.batches += bool(batch.actions)
            for action, result in zip(batch.actions, results, strict=True):
                ends_plan |= result.ends_plan
                phase_failed |= applied._take(phase, result)
                plan_log.log_action(_log, plan.workload, action, result.outcome, writes=context.actuator.writes)
            # Later batches rely on an adopted object.
            stopped = stopped or phase_failed or ends_plan or applied.is_outdated
        counted_failure = phase_failed and _counts_failures(phase)
        any_failure |= counted_failure
        applied.aborted |= (counted_failure and phase.aborts_on_failure) or ends_plan or applied.is_outdated
    return applied


async def _traced_batch(
    context: Context,
    phase: v1.PhaseKind.ValueType,
    batch: v1.Batch,
    limit: asyncio.Semaphore,
    traces: BatchTraces,
) -> list[ActionResult]:
    with tracing.batch(phase, batch.actions, traces.max_calls) as span:
        if traces.annotates_pods and span.traceparent:
            context.annotate_pods(span.traceparent)
        results = await _run_batch(context, batch, limit)
        if span.is_recording:
            failed = sum(_is_failure(result.outcome) for result in results)
            span.set({"nodewise.batch.succeeded": len(results) - failed, "nodewise.batch.failed": failed})
    return results


async def _run_batch(context: Context, batch: v1.Batch, limit: asyncio.Semaphore) -> list[ActionResult]:
    """Runs one batch. Returns the results in the order of its actions."""
    unconfirmed: ActuatorError | None = None
    if batch.confirm_workload:
        try:
            await context.confirm_workload()
        except Exception as error:
            unconfirmed = ActuatorError.of(error)

    async def run(action: v1.Action) -> ActionResult:
        why = context.left_out.get(action.id)
        if why is not None:
            return ActionResult.skipped(action, why)
        if unconfirmed is not None and (is_adoption(action) or is_create(action)):
            result = ActionResult.failed(action, unconfirmed)
            result.ends_plan = is_create(action)
            return result
        async with limit:
            return await context.run(action)

    # Waits for all calls, also if one fails or all are cancelled.
    ran = await asyncio.gather(*map(run, batch.actions), return_exceptions=True)
    return [
        result if isinstance(result, ActionResult) else ActionResult.failed(action, ActuatorError.of(result))
        for action, result in zip(batch.actions, ran, strict=True)
    ]
