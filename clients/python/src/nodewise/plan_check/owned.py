"""The objects that a workload controls or that a plan adopts for it, as the caches show them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from .. import v1
from ..objects import Workload
from . import named
from .asked import Asked, Caches


def objects(actions: Sequence[v1.Action], asked: Asked, caches: Caches) -> list[Workload]:
    """The objects that the workload controls, or that one of these actions adopts, ordered by name."""
    adopted = named.adopted(actions, asked)
    claimable = caches.claimable(asked.controls, asked.workload)
    return [found for found in claimable if found.controller is not None or identity(found) in adopted]


def identity(found: Workload) -> named.Identity:
    """The name and the uid of an object."""
    return named.Identity(found.key.name, found.uid)


def last_change(objects: Iterable[Workload], asked: Asked, caches: Caches) -> int:
    """The number of the last change of any of these objects, or of the last removal of any object of their resource."""
    resource, namespace = asked.controls.resource, asked.workload.key.namespace
    names = ["", *(found.key.name for found in objects)]
    return max(caches.changed(resource, namespace, name) for name in names)


def read(found: Workload) -> Any:
    """The JSON of an object; None if it cannot be read."""
    try:
        return json.loads(found.object)
    except (ValueError, RecursionError):
        return None
