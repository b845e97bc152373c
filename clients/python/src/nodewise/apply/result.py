"""The result of one action, and what follows from it."""

from dataclasses import dataclass
from typing import NamedTuple

from .. import v1
from ..actions import removed_pod
from ..actuator import ActuatorError, Blocked, Written
from ..kinds import ObjectKey, Resource


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A write of the executor that a later snapshot must show (D-109)."""

    resource: Resource
    """Pods, the resource of the workload, or that of an object that an action names."""
    resource_version: str
    """The resourceVersion that the write returned. Never empty."""
    created_pod: str = ""
    """The name of the created pod, if it was in the plan. An expectation also waits for that name."""


class Colliding(NamedTuple):
    """A live object whose name a create found taken."""

    resource: Resource
    object: bytes
    """The object as JSON."""


@dataclass(slots=True)
class ActionResult:
    """The result of one action."""

    outcome: v1.Outcome
    write: OwnWrite | None = None
    colliding: Colliding | None = None
    vanished: ObjectKey | None = None
    """The object that an adoption did not find."""
    sealed: ObjectKey | None = None
    """The revision, or the pod to adopt, that the apiserver refuses to change."""
    blocked: Blocked | None = None
    """The eviction that a PodDisruptionBudget did not allow."""
    ends_plan: bool = False
    """The rest of the plan must not be carried out, whether or not the action failed."""

    @classmethod
    def skipped(cls, action: v1.Action, why: str = "", *, ignored: bool = False) -> "ActionResult":
        """The action was not attempted. If that is `ignored`, it is no reason to retry."""
        outcome = _outcome(action, v1.RESULT_SKIPPED)
        outcome.message, outcome.ignored = why, ignored
        return cls(outcome)

    @classmethod
    def succeeded(cls, action: v1.Action) -> "ActionResult":
        """The action succeeded."""
        return cls(_outcome(action, v1.RESULT_SUCCEEDED))

    @classmethod
    def failed(cls, action: v1.Action, error: ActuatorError) -> "ActionResult":
        """The action failed."""
        return cls.refused(action, v1.RESULT_FAILED, error)

    @classmethod
    def refused(cls, action: v1.Action, result: v1.Result.ValueType, error: ActuatorError) -> "ActionResult":
        """The call failed, with this result for the plan."""
        outcome = _outcome(action, result)
        outcome.message, outcome.http_status = error.message, error.http_status
        return cls(outcome)

    @classmethod
    def not_allowed(cls, action: v1.Action, blocked: Blocked) -> "ActionResult":
        """A PodDisruptionBudget does not allow an eviction now."""
        outcome = _outcome(action, v1.RESULT_BLOCKED)
        outcome.message, outcome.http_status = blocked.message, 429
        return cls(outcome, blocked=blocked)

    @classmethod
    def recorded(cls, action: v1.Action, resource: Resource, written: Written) -> "ActionResult":
        """A success that the caches must show before the next plan."""
        result = cls.succeeded(action)
        if written.resource_version:
            result.write = OwnWrite(resource, written.resource_version, action.create_pod.pod_name)
        return result


def _outcome(action: v1.Action, result: v1.Result.ValueType) -> v1.Outcome:
    """An outcome, with the pod or uid of the expectation that it concerns."""
    outcome = v1.Outcome(action_id=action.id, result=result)
    match action.WhichOneof("kind"):
        case "create_pod":
            create = action.create_pod
            outcome.created_pod.CopyFrom(v1.ExpectedCreate(pod_name=create.pod_name, node_name=create.node_name))
        case _:
            removed = removed_pod(action)
            if removed is not None:
                outcome.deleted_pod_uid = removed.uid
    return outcome
