"""Writes the status (D-91): the cached object with new values. On any error, reads the live object and tries once
more.
"""

from typing import TYPE_CHECKING, Any

from .. import convert, tracing, v1
from ..actuator import ActuatorError, Written
from .reading import parse

if TYPE_CHECKING:
    from .action import Context

_log = tracing.logger(__name__)

_FIELDS = {
    "currentNumberScheduled": "current_number_scheduled",
    "numberMisscheduled": "number_misscheduled",
    "desiredNumberScheduled": "desired_number_scheduled",
    "numberReady": "number_ready",
    "updatedNumberScheduled": "updated_number_scheduled",
    "numberAvailable": "number_available",
    "numberUnavailable": "number_unavailable",
    "observedGeneration": "observed_generation",
}


async def write(context: "Context", update: v1.UpdateStatus) -> Written:
    """Writes the workload's status."""
    key = context.workload_key
    if update.HasField("collision_count"):
        return await _write_collision_count(context, update)
    obj = parse(key, context.served)
    try:
        return await context.actuator.replace_status(key, _changed(obj, update))
    except ActuatorError as error:
        _log.debug("the status write of %s was refused; reading it and trying once more: %s", key, error)
    live = await context.read_workload()
    return await context.actuator.replace_status(key, _changed(live, update))


async def _write_collision_count(context: "Context", update: v1.UpdateStatus) -> Written:
    """Raises the collision count, unless another writer changed it since the snapshot."""
    key = context.workload_key
    live = await context.read_workload()
    present = (live.get("status") or {}).get("collisionCount")
    expected = update.expected_collision_count if update.HasField("expected_collision_count") else None
    if present != expected:
        raise ActuatorError(f"{key} has collision count {present}, the plan was made for {expected}")
    return await context.actuator.replace_status(key, _changed(live, update))


def _changed(obj: dict[str, Any], update: v1.UpdateStatus) -> bytes:
    """The object with the fields replaced that `update` sets. Other fields stay."""
    status = obj["status"] = dict(obj.get("status") or {})
    if update.HasField("status"):
        status.update({name: getattr(update.status, field) for name, field in _FIELDS.items()})
    if update.HasField("collision_count"):
        status["collisionCount"] = update.collision_count
    return convert.to_json(obj)
