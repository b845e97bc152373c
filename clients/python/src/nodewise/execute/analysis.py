"""The measurements for RolloutPolicies, in snapshots and after plans; and conflicts of the statuses that count them."""

from collections.abc import Iterable, Iterator

from .. import v1
from ..apply import Applied
from ..measurements import Measurements
from ..objects import Workload
from ..policies import RolloutPolicy


def add(
    snapshot: v1.Snapshot, workload: Workload, policies: Iterable[RolloutPolicy], measurements: Measurements
) -> list[v1.MeasurementId]:
    """Adds to the snapshot of a workload with these policies what its plan needs for their analysis. Returns which
    measurements it has. Without policies nothing is added. What was measured for other policies is forgotten.
    """
    daemon_set = snapshot.workload.daemon_set
    if not daemon_set.rollout_policies:
        measurements.forget(workload.key)
        return []
    measurements.retain(workload.key, {policy.uid for policy in policies})
    daemon_set.analysis_hosts.extend(measurements.hosts)
    daemon_set.measurements.extend(measurements.results(workload.key, workload.uid))
    return [measurement.id for measurement in daemon_set.measurements]


def are_counted(plan: v1.Plan, applied: Applied) -> bool:
    """Whether the status that counts the measurements of the plan's snapshot is written: the write has succeeded, or
    there is none. It is in the first phase of its kind. Later ones are of policies that do not count.
    """
    results = {outcome.action_id: outcome.result for outcome in applied.outcomes}
    phases = (phase for phase in plan.phases if phase.kind == v1.PHASE_KIND_ROLLOUT_POLICIES)
    first = next(phases, v1.Phase())
    actions = (action.id for batch in first.batches for action in batch.actions)
    return all(results.get(action) == v1.RESULT_SUCCEEDED for action in actions)


def is_conflict(plan: v1.Plan, applied: Applied) -> bool:
    """Whether the plan ended because a RolloutPolicy has changed since the snapshot."""
    first = applied.first_failure
    return first is not None and first.http_status == 409 and first.action_id in _statuses(plan)


def _statuses(plan: v1.Plan) -> Iterator[int]:
    """The ids of the actions that write statuses of policies."""
    phases = (phase for phase in plan.phases if phase.kind == v1.PHASE_KIND_ROLLOUT_POLICIES)
    return (action.id for phase in phases for batch in phase.batches for action in batch.actions)
