"""Writes the status (D-91): the cached object with new values. On any error, reads the live object and tries once
more.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from .. import convert, tracing, v1
from ..actuator import Actuator, ActuatorError, Written
from ..kinds import ObjectKey
from .reading import parse

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


async def write(
    actuator: Actuator,
    key: ObjectKey,
    served: bytes,
    read_live: Callable[[], Awaitable[dict[str, Any]]],
    update: v1.UpdateStatus,
) -> Written:
    """Writes the status of the workload `key`, whose cached JSON is `served`. `read_live` reads the live object."""
    if update.HasField("collision_count"):
        live = await read_live()
        _check_collision_count(key, live, update)
        return await actuator.replace_status(key, _changed(live, update))
    obj = parse(key, served)
    try:
        return await actuator.replace_status(key, _changed(obj, update))
    except ActuatorError as error:
        _log.debug("the status write of %s was refused; reading it and trying once more: %s", key, error)
    return await actuator.replace_status(key, _changed(await read_live(), update))


def _check_collision_count(key: ObjectKey, live: dict[str, Any], update: v1.UpdateStatus) -> None:
    """Raises `ActuatorError` if another writer changed the collision count since the snapshot."""
    present = (live.get("status") or {}).get("collisionCount")
    expected = update.expected_collision_count if update.HasField("expected_collision_count") else None
    if present != expected:
        raise ActuatorError(f"{key} has collision count {present}, the plan was made for {expected}")


def _changed(obj: dict[str, Any], update: v1.UpdateStatus) -> bytes:
    """The object with the fields replaced that `update` sets. Other fields stay."""
    status = obj["status"] = dict(obj.get("status") or {})
    if update.HasField("status"):
        status.update({name: getattr(update.status, field) for name, field in _FIELDS.items()})
    if update.HasField("collision_count"):
        status["collisionCount"] = update.collision_count
    return convert.to_json(obj)
