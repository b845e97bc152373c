"""Deletes and evicts objects, and decides what each refusal means."""

import enum

from .. import tracing, v1
from ..actuator import Actuator, ActuatorError, Refusal
from ..kinds import ObjectKey
from .reading import parse_metadata
from .result import ActionResult

_log = tracing.logger(__name__)


class _DeletedState(enum.Enum):
    """What a live read shows of an object whose delete was refused or had no clear response."""

    GONE = enum.auto()
    """It does not exist, or another object has its name."""
    DELETING = enum.auto()
    """It is being deleted."""
    UNCHANGED = enum.auto()
    """It exists and is not being deleted, or the read failed."""


async def delete(
    actuator: Actuator, action: v1.Action, key: ObjectKey, uid: str | None, resource_version: str | None = None
) -> ActionResult:
    """Deletes an object. The uid and the resourceVersion are preconditions, if they are given."""
    try:
        if resource_version is None:
            await actuator.delete(key, uid)
        else:
            await actuator.delete(key, uid, resource_version)
    except Exception as raised:
        return await _not_removed(actuator, action, key, uid, ActuatorError.of(raised))
    return ActionResult.succeeded(action)


async def evict(actuator: Actuator, action: v1.Action, key: ObjectKey, uid: str) -> ActionResult:
    """Evicts the pod of this uid. A pod that a PodDisruptionBudget protects stays."""
    try:
        blocked = await actuator.evict(key, uid)
    except Exception as raised:
        return await _not_removed(actuator, action, key, uid, ActuatorError.of(raised))
    if blocked is not None:
        _log.info("%s is not evicted now: %s", key, blocked.message)
        return ActionResult.not_allowed(action, blocked)
    return ActionResult.succeeded(action)


async def _not_removed(
    actuator: Actuator, action: v1.Action, key: ObjectKey, uid: str | None, error: ActuatorError
) -> ActionResult:
    """Interprets the error of a delete."""
    if error.refusal is Refusal.NOT_FOUND:
        return ActionResult.refused(action, v1.RESULT_NOT_FOUND, error)
    if error.refusal is Refusal.CONFLICT or error.is_unclear:
        match await _state_after_delete(actuator, key, uid):
            case _DeletedState.GONE:
                return ActionResult.refused(action, v1.RESULT_NOT_FOUND, error)
            case _DeletedState.DELETING:
                # The pod is being deleted, so the delete happened. Reported as failed, the expectation would be
                # dropped, and the next plan could take down another pod.
                return ActionResult.succeeded(action)
    return ActionResult.failed(action, error)


async def _state_after_delete(actuator: Actuator, key: ObjectKey, uid: str | None) -> _DeletedState:
    """Reads what happened to an object of that name and uid."""
    try:
        metadata = parse_metadata(key, await actuator.read(key))
    except ActuatorError as error:
        return _DeletedState.GONE if error.refusal is Refusal.NOT_FOUND else _DeletedState.UNCHANGED
    if uid is not None and metadata.get("uid", uid) != uid:
        return _DeletedState.GONE
    return _DeletedState.DELETING if metadata.get("deletionTimestamp") else _DeletedState.UNCHANGED
