"""What plans for each kind of workload may contain."""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .. import v1
from ..kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, Resource
from . import names
from .asked import Asked, ViolationError
from .values import WrongError, quoted


class Write(enum.Enum):
    """What an action on an object of any resource does."""

    CREATE = enum.auto()
    """Create an object that the workload controls."""
    PATCH = enum.auto()
    """Change, adopt or release an object that the workload controls."""
    DELETE = enum.auto()
    """Delete an object that the workload controls."""
    STATUS = enum.auto()
    """Patch the workload's own status."""
    ROLLBACK = enum.auto()
    """Patch the workload itself: restore an earlier template."""
    POLICY_STATUS = enum.auto()
    """Patch the status of a RolloutPolicy."""


@dataclass(frozen=True, slots=True)
class KindRules:
    """What plans for one kind of workload may contain."""

    actions: frozenset[str]
    """The actions, besides those on objects of any resource."""
    writes: frozenset[Write]
    """The actions on objects of any resource."""
    status_metadata: tuple[str, ...] = ()
    """The members of metadata in a patch of the workload's status."""
    pod_hash: int = 0
    """The number of letters of the hash in the names of pods."""


_RULES: Mapping[str, KindRules] = {
    DAEMON_SET.name: KindRules(
        actions=frozenset(
            {
                "create_revision",
                "update_revision",
                "delete_revision",
                "adopt_revision",
                "release_revision",
                "adopt_pod",
                "release_pod",
                "relabel_pod",
                "create_pod",
                "delete_pod",
                "evict_pod",
                "update_status",
                "emit_event",
                "measure",
            }
        ),
        writes=frozenset({Write.POLICY_STATUS}),
        pod_hash=names.LENGTH,
    ),
    REPLICA_SET.name: KindRules(
        actions=frozenset({"emit_event", "adopt_pod", "release_pod", "create_pod", "delete_pod"}),
        writes=frozenset({Write.STATUS}),
        status_metadata=("uid", "resourceVersion"),
        pod_hash=5,
    ),
    DEPLOYMENT.name: KindRules(
        actions=frozenset({"emit_event"}),
        writes=frozenset({Write.CREATE, Write.PATCH, Write.DELETE, Write.STATUS, Write.ROLLBACK}),
        status_metadata=("uid", "resourceVersion", "annotations"),
    ),
}


def rules_of(asked: Asked) -> KindRules:
    """The rules for the kind of the workload."""
    return _RULES[asked.kind.name]


def check(actions: Sequence[v1.Action], asked: Asked) -> None:
    """Checks that there are only actions that the kind of workload needs. An action of an unknown kind is not carried
    out, so it is no violation. Raises `ViolationError`.
    """
    rules = rules_of(asked)
    for action in actions:
        kind = action.WhichOneof("kind")
        if kind is None:
            continue
        try:
            write = write_of(action, asked)
        except WrongError as wrong:
            raise ViolationError(str(wrong), action) from None
        if not (kind in rules.actions if write is None else write in rules.writes):
            raise ViolationError(f"a plan for a {asked.kind} has no such action", action)


def write_of(action: v1.Action, asked: Asked) -> Write | None:
    """What an action on an object of any resource does; None for other actions. Raises `WrongError` if no plan for the
    workload can have it.
    """
    match action.WhichOneof("kind"):
        case "create_object":
            return _of_controlled(action.create_object, asked, Write.CREATE)
        case "delete_object":
            return _of_controlled(action.delete_object, asked, Write.DELETE)
        case "patch_object":
            return _patch(action.patch_object, asked)
    return None


def _of_controlled(body: v1.CreateObject | v1.DeleteObject, asked: Asked, write: Write) -> Write:
    resource = _resource(body, asked)
    if resource is not asked.controls.resource:
        raise WrongError(f"it creates or deletes an object of {resource.value}")
    return write


def _patch(patch: v1.PatchObject, asked: Asked) -> Write:
    resource = _resource(patch, asked)
    if resource is Resource.POLICIES:
        return Write.POLICY_STATUS
    if resource is asked.kind.resource and asked.is_workload(patch.object):
        if patch.subresource == "":
            return Write.ROLLBACK
        if patch.subresource == "status":
            return Write.STATUS
    elif resource is asked.controls.resource and patch.subresource == "":
        return Write.PATCH
    raise WrongError(f"it patches {quoted(patch.object.name)} with the subresource {quoted(patch.subresource)}")


def _resource(body: v1.CreateObject | v1.PatchObject | v1.DeleteObject, asked: Asked) -> Resource:
    """The resource that an action names: the workload's, that of what it controls, or that of its RolloutPolicies."""
    if not body.HasField("resource"):
        raise WrongError("it names no resource")
    named = body.resource
    policies = [Resource.POLICIES] if asked.has_policies else []
    for resource in (asked.kind.resource, asked.controls.resource, *policies):
        if resource.identity == (named.group, named.version, named.resource):
            return resource
    what = f"{quoted(named.resource)} of {named.group}/{named.version}"
    raise WrongError(f"it writes {what}, which its kind of workload does not")


def writes(actions: Sequence[v1.Action], asked: Asked) -> Iterator[tuple[v1.Action, Write]]:
    """The actions on objects of any resource, and what they do. `check` was called before."""
    for action in actions:
        write = write_of(action, asked)
        if write is not None:
            yield action, write
