"""Logs a plan: one line when it is about to be applied, and one line for each action."""

import logging
from collections import Counter

from . import v1
from .actions import actions_of
from .sanitize import one_line
from .tracing.spans import short_name

_NAMES = ("pod_name", "name", "reason")
"""Fields that name the subject of an action without an object reference."""


def log_plan(log: logging.Logger, plan: v1.Plan, *, writes: bool) -> None:
    """Logs a plan with actions that is about to be applied, or observed."""
    if not log.isEnabledFor(logging.INFO):
        return
    kinds = Counter(map(_kind, actions_of(plan)))
    if kinds:
        counts = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        verb = "applying" if writes else "observing"
        log.info("%s: %s plan %s: %s", _subject(plan.workload), verb, plan.plan_id, counts)


def log_action(
    log: logging.Logger, workload: v1.WorkloadReference, action: v1.Action, outcome: v1.Outcome, *, writes: bool
) -> None:
    """Logs the reason and the result of an action."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    log.debug(
        "%s: %s%s%s: %s%s",
        _subject(workload),
        _kind(action),
        _object(action),
        f", since {one_line(action.message)}" if action.message else "",
        short_name(v1.Result.Name, outcome.result, "RESULT_") if writes else "not written",
        f", {outcome.message}" if outcome.message else "",
    )


def _subject(workload: v1.WorkloadReference) -> str:
    return f"{workload.kind} {workload.namespace}/{workload.name}"


def _kind(action: v1.Action) -> str:
    return action.WhichOneof("kind") or "unknown"


def _object(action: v1.Action) -> str:
    """The subject of an action, and its node if there is one."""
    kind = action.WhichOneof("kind")
    if kind is None:
        return ""
    body = getattr(action, kind)
    fields = body.DESCRIPTOR.fields_by_name
    names = [getattr(body, field).name for field in ("pod", "revision", "object") if field in fields]
    names += [getattr(body, field) for field in _NAMES if field in fields]
    node = f" on node {body.node_name}" if "node_name" in fields else ""
    return "".join(f" {name}" for name in names if name) + node
