//! The measurements for RolloutPolicies, in snapshots and after plans.

use std::sync::Arc;

use nodewise_projection::{RolloutPolicy, Workload};
use nodewise_proto::v1::{self, workload::Kind};
use nodewise_runtime::measurements::Measurements;

/// Adds to the snapshot of a workload what its plan needs for the analysis of policies. Returns which measurements it has.
/// Without policies nothing is added. What was measured for policies that the snapshot has no more is forgotten: no plan reads it.
pub(super) fn add(
    snapshot: &mut v1::Snapshot,
    workload: &Workload,
    policies: &[Arc<RolloutPolicy>],
    measurements: &Measurements,
) -> Vec<v1::MeasurementId> {
    let kind = snapshot
        .workload
        .as_mut()
        .and_then(|workload| workload.kind.as_mut());
    let Some(Kind::DaemonSet(daemon_set)) = kind else {
        return Vec::new();
    };
    if daemon_set.rollout_policies.is_empty() {
        measurements.forget(&workload.key);
        return Vec::new();
    }
    let is_sent = |uid: &str| policies.iter().any(|policy| policy.uid == uid);
    measurements.retain(&workload.key, &is_sent);
    daemon_set.analysis_hosts = measurements.hosts();
    daemon_set.measurements = measurements.results(&workload.key, &workload.uid);
    let ids = daemon_set.measurements.iter();
    ids.filter_map(|measurement| measurement.id.clone()).collect()
}

/// Whether the status that counts the measurements of the plan's snapshot is written: the write has succeeded, or there is none. It is
/// in the first phase of its kind. Later ones are of policies that do not count.
pub(super) fn are_counted(plan: &v1::Plan, outcomes: &[v1::Outcome]) -> bool {
    let of_policies = |phase: &&v1::Phase| phase.kind() == v1::PhaseKind::RolloutPolicies;
    let first = plan.phases.iter().find(of_policies).into_iter();
    let mut writes = first
        .flat_map(|phase| &phase.batches)
        .flat_map(|batch| &batch.actions);
    writes.all(|write| {
        let outcome = outcomes.iter().find(|outcome| outcome.action_id == write.id);
        outcome.is_some_and(|outcome| outcome.result() == v1::Result::Succeeded)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_actions;
    use nodewise_proto::v1::Result::{Failed, Skipped, Succeeded};
    use nodewise_proto::v1::{PhaseKind, action};

    // A result that no status has counted must be in the next snapshot again.
    #[test]
    fn measurements_are_counted_when_the_statuses_are_written() {
        let patches = vec![action::Kind::PatchObject(Box::default()); 2];
        let plan = with_actions(PhaseKind::RolloutPolicies, patches);
        let outcome = |action_id, result: v1::Result| v1::Outcome {
            action_id,
            result: result.into(),
            ..v1::Outcome::default()
        };
        for (results, expected) in [
            (vec![Succeeded, Succeeded], true),
            (vec![Succeeded, Failed], false),
            (vec![Failed, Skipped], false),
            (vec![Succeeded], false),
        ] {
            let outcomes: Vec<_> = (1..)
                .zip(&results)
                .map(|(id, result)| outcome(id, *result))
                .collect();
            assert_eq!(are_counted(&plan, &outcomes), expected, "{results:?}");
        }
        let other = with_actions(
            PhaseKind::Deletes,
            vec![action::Kind::EvictPod(v1::EvictPod::default())],
        );
        assert!(are_counted(&other, &[outcome(1, Failed)]), "it writes no status");
        assert!(are_counted(&v1::Plan::default(), &[]));
    }
}
