"""Checks the actions on objects of any resource, as far as that needs no caches."""

from functools import cached_property
from typing import Any

from .. import v1
from . import object_patches, policies, replica_sets
from .asked import Asked
from .kinds import Write
from .values import parse


class Objects:
    """The actions of one plan on objects of any resource."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    @cached_property
    def _object(self) -> Any:
        return parse(self._asked.workload.object, "the workload")

    def check(self, action: v1.Action, write: Write) -> None:
        """Checks an action that does this. Raises `WrongError`."""
        if action.HasField("create_object"):
            replica_sets.check(action.create_object, self._object, self._asked.workload)
        elif write is Write.POLICY_STATUS:
            policies.check_patch(action.patch_object, self._asked)
        elif action.HasField("patch_object"):
            object_patches.check(write, action.patch_object, self._object, self._asked)
