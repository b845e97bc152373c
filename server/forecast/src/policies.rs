//! The RolloutPolicies of a play. Nobody is there to approve a stage or to measure anything, so every approval is given at once, and
//! every check passes.

use jiff::Timestamp;
use nodewise_planner::{
    daemonset::{DaemonSet, RolloutInputs},
    plan::{Action, ActionKind, Resource},
    report::OutcomeResult,
    rollout::{
        measurement::{Measurement, MeasurementResult, Verdict},
        status::{PolicyStatus, State, TargetStatus},
    },
};
use serde_json::Value;

use crate::world;

/// The most measurements that are kept for the next plans: as many as a request may have.
const MOST_MEASUREMENTS: usize = 1_000;

/// Carries out what a plan does for policies. `None` for all other actions.
pub(crate) fn write(inputs: &mut RolloutInputs, action: &Action, now: Timestamp) -> Option<OutcomeResult> {
    match &action.kind {
        ActionKind::PatchObject {
            resource: Resource::RolloutPolicies,
            object,
            patch,
            ..
        } => Some(patch_status(inputs, &object.uid, &world::json(patch))),
        ActionKind::Measure(request) => {
            inputs.measurements.push(Measurement {
                id: request.id.clone(),
                time: now,
                result: MeasurementResult::Verdict(Verdict::Pass, "the play takes it as passed".to_owned()),
            });
            let excess = inputs.measurements.len().saturating_sub(MOST_MEASUREMENTS);
            inputs.measurements.drain(..excess);
            Some(OutcomeResult::Succeeded)
        }
        _ => None,
    }
}

fn patch_status(inputs: &mut RolloutInputs, uid: &str, patch: &Value) -> OutcomeResult {
    let Some(policy) = inputs.policies.iter_mut().find(|policy| policy.uid == uid) else {
        return OutcomeResult::Failed;
    };
    let Ok(status) = serde_json::from_value::<PolicyStatus>(patch["status"].clone()) else {
        return OutcomeResult::Failed;
    };
    let pending = status
        .targets
        .iter()
        .find_map(|target| target.pending_approval.as_ref());
    if let Some(pending) = pending {
        policy.requests.approve = Some(pending.digest.clone());
    }
    policy.status = status;
    OutcomeResult::Succeeded
}

/// The rollout of the workload, if a policy rules it.
fn target(workload: &DaemonSet) -> Option<&TargetStatus> {
    let mut policies = workload.rollout.policies.iter();
    policies.find_map(|policy| policy.status.target(&workload.name, &workload.uid))
}

/// The state of the rollout, if a policy rules it.
pub(crate) fn state(workload: &DaemonSet) -> Option<State> {
    target(workload).map(|target| target.state)
}

/// What the rollout waits for, if a policy rules it and it is not over.
pub(crate) fn message(workload: &DaemonSet) -> Option<String> {
    let target = target(workload)?;
    (target.state != State::Complete).then(|| target.message.clone())
}
