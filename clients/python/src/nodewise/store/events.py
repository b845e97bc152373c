"""The events of a watch, and the cache changes that an event makes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .. import v1
from ..kinds import Key, Kind, Resource
from ..objects import Node, Pod, Revision, Workload
from ..policies import RolloutPolicy

Watched: TypeAlias = Workload | Pod | Node | Revision | RolloutPolicy


@dataclass(frozen=True, slots=True)
class Applied:
    """An object was added or modified."""

    object: Watched


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object was deleted. This is its last state."""

    object: Watched


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete list: the first one, or one after a gap. Objects that it does not have are gone. A list without a
    resourceVersion says that the resource is not installed.
    """

    resource: Resource
    objects: list[Watched]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """It is not known any more which objects of the resource there are, until the next `Listed`."""

    resource: Resource
    reason: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed. The watch of this resource has reached this version."""

    resource: Resource
    resource_version: str


@dataclass(frozen=True, slots=True)
class RevisionPage:
    """A part of an incomplete list of revisions. After the last part, `Listed` follows without revisions."""

    revisions: list[Revision]
    is_first: bool
    """The first page of a list. Pages of an earlier, incomplete list are void."""


Event: TypeAlias = Applied | Deleted | Listed | Unknown | Bookmark | RevisionPage
"""An event of a watch. Events of one resource are in the order of the watch. There is no order across resources."""


class WorkloadChange(NamedTuple):
    """A workload changed. In each of these changes, `old` is None if the object is new, and `new` is None if it is
    gone.
    """

    old: Workload | None
    new: Workload | None


class PodChange(NamedTuple):
    """A pod of this namespace changed."""

    namespace: str
    old: v1.Pod | None
    new: v1.Pod | None


class NodeChange(NamedTuple):
    """A node changed."""

    old: v1.Node | None
    new: v1.Node | None


class RevisionChange(NamedTuple):
    """A revision changed."""

    old: Revision | None
    new: Revision | None


class PolicyChange(NamedTuple):
    """A RolloutPolicy changed."""

    old: RolloutPolicy | None
    new: RolloutPolicy | None


Transition: TypeAlias = WorkloadChange | PodChange | NodeChange | RevisionChange | PolicyChange
Visit: TypeAlias = Callable[[Transition], None]


def resource_of(obj: Watched) -> Resource:
    """The resource of an object."""
    match obj:
        case Workload():
            return obj.kind.resource
        case Pod():
            return Resource.PODS
        case Node():
            return Resource.NODES
        case Revision():
            return Resource.REVISIONS
        case RolloutPolicy():
            return Resource.POLICIES


def is_kept(obj: Watched, kinds: Collection[Kind]) -> bool:
    """Whether an object is cached if these kinds of workload are: of pods and revisions only orphans, and those that a
    workload of these kinds controls.
    """
    match obj:
        case Pod(projection=pod):
            return not pod.HasField("controller") or _is_of(pod.controller.kind, kinds)
        case Revision(controller=controller):
            return controller is None or _is_of(controller.kind, kinds)
        case _:
            return True


def _is_of(name: str, kinds: Collection[Kind]) -> bool:
    return any(kind.name == name for kind in kinds)


def identity(obj: Watched) -> Key:
    """The namespace and name of an object, and the kind of a workload."""
    match obj:
        case Workload():
            return obj.key
        case Node():
            return Key("", obj.projection.name)
        case Pod():
            return Key(obj.namespace, obj.projection.name)
        case Revision() | RolloutPolicy():
            return Key(obj.namespace, obj.name)
