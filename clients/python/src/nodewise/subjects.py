"""What the measurements of one plan are about: read from the policies of its snapshot, each of which is parsed once.

A measurement may wait for its turn for long. So it gets only what its call needs, and not the policy.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from . import v1
from .actions import actions_of
from .measurements import INTERVAL, Subject
from .policies import RolloutPolicy

_INTERVAL = re.compile(r"(?=.)(?:([0-9]{1,6})h)?(?:([0-9]{1,7})m)?(?:([0-9]{1,9})s)?")
"""The syntax of durations in a RolloutPolicy."""


class Subjects:
    """The subjects of the measurements that a plan asks for."""

    def __init__(self, plan: v1.Plan, policies: Iterable[RolloutPolicy]) -> None:
        """`policies` are those of the plan's snapshot."""
        self._plan = plan
        self._policies = {policy.uid: policy for policy in policies}
        self._parsed: dict[str, dict[str, Any]] = {}

    def of(self, measure: v1.Measure) -> Subject:
        """The subject of one of them, with the status that the plan has written."""
        policy = self._policy(measure.id.policy_uid)
        workload = v1.WorkloadReference()
        workload.CopyFrom(self._plan.workload)
        return Subject(workload, _status(policy, workload), _interval(policy, measure.id))

    def _policy(self, uid: str) -> dict[str, Any]:
        """The policy of this uid as the plan leaves it; empty if it cannot be read."""
        parsed = self._parsed.get(uid)
        if parsed is None:
            policy = self._policies.get(uid)
            actions = (action for action in actions_of(self._plan) if action.HasField("patch_object"))
            patches = (action.patch_object for action in actions)
            patch = next((patch.patch for patch in patches if patch.object.uid == uid), b"")
            parsed = _merged({} if policy is None else _object(policy.object), _object(patch))
            self._parsed[uid] = parsed
        return parsed


def _status(policy: dict[str, Any], workload: v1.WorkloadReference) -> bytes:
    for target in _objects(policy.get("status"), "targets"):
        # A workload of that name that was replaced has another uid.
        if (target.get("name"), target.get("uid")) == (workload.name, workload.uid):
            return json.dumps(target).encode()
    return b"{}"


def _interval(policy: dict[str, Any], measurement: v1.MeasurementId) -> float:
    """The interval of a check. The name of a wave begins with that of its stage."""
    for stage in _objects(policy.get("spec"), "stages"):
        name = stage.get("name")
        if not isinstance(name, str) or not f"{measurement.stage}/".startswith(f"{name}/"):
            continue
        for check in _objects(stage, "analysis"):
            text = check.get("interval")
            found = _INTERVAL.fullmatch(text) if isinstance(text, str) else None
            if check.get("name") != measurement.check or found is None:
                continue
            hours, minutes, seconds = (int(part or 0) for part in found.groups())
            # A call could not be made in no time at all.
            return 3_600.0 * hours + 60.0 * minutes + seconds or INTERVAL
    return INTERVAL


def _objects(value: Any, member: str) -> Iterator[dict[str, Any]]:
    """The objects in the list that a member of an object has."""
    found = value.get(member) if isinstance(value, dict) else None
    return (entry for entry in (found if isinstance(found, list) else ()) if isinstance(entry, dict))


def _object(text: bytes) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _merged(target: Any, patch: Any) -> Any:
    """Applies a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
