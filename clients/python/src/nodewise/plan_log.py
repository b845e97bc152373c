"""What the log says of a plan: a line when it is about to be applied, and a line for each of its actions."""

import logging
from collections import Counter

from . import v1
from .actions import actions_of
from .kinds import Key
from .told import in_short
from .tracing.spans import short_name

_NAMES = ("pod_name", "name", "reason")
"""Fields that say what an action is about which refers to no object."""


def tell_plan(log: logging.Logger, plan: v1.Plan, *, writes: bool) -> None:
    """Tells of a plan that is about to be applied, or observed, if there is anything to do."""
    if not log.isEnabledFor(logging.INFO):
        return
    kinds = Counter(map(_kind, actions_of(plan)))
    if kinds:
        counts = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        log.info("%s: %s plan %s: %s", _key(plan.workload), "applying" if writes else "observing", plan.plan_id, counts)


def tell_action(
    log: logging.Logger, workload: v1.WorkloadReference, action: v1.Action, outcome: v1.Outcome, *, writes: bool
) -> None:
    """Tells why the plan had an action, and what became of it."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    log.debug(
        "%s: %s%s%s: %s%s",
        _key(workload),
        _kind(action),
        _object(action),
        f", since {in_short(action.message)}" if action.message else "",
        short_name(v1.Result.Name, outcome.result, "RESULT_") if writes else "not written",
        f", {outcome.message}" if outcome.message else "",
    )


def _key(workload: v1.WorkloadReference) -> Key:
    return Key(workload.namespace, workload.name)


def _kind(action: v1.Action) -> str:
    return action.WhichOneof("kind") or "unknown"


def _object(action: v1.Action) -> str:
    """What an action is about, and the node if it is about one."""
    kind = action.WhichOneof("kind")
    if kind is None:
        return ""
    body = getattr(action, kind)
    fields = body.DESCRIPTOR.fields_by_name
    names = [getattr(body, field).name for field in ("pod", "revision") if field in fields]
    names += [getattr(body, field) for field in _NAMES if field in fields]
    node = f" on node {body.node_name}" if "node_name" in fields else ""
    return "".join(f" {name}" for name in names if name) + node
