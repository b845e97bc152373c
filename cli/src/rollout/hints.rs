//! The commands that may help with a rollout, for people to copy.

use nodewise_proto::{
    v1::{self, RolloutState},
    workload::REPLICA_SET,
};

use super::quote::word;
use crate::view;

/// The most pods whose logs are offered.
const MAX_LOGS: usize = 1;

/// Commands for a rollout that is not complete, the most useful one first.
pub(crate) fn of(status: &v1::WorkloadStatus) -> Vec<String> {
    if status.state() == RolloutState::Complete {
        return Vec::new();
    }
    let (kind, namespace) = (status.kind.to_ascii_lowercase(), word(&status.namespace));
    let target = format!("{kind}/{} -n {namespace}", word(&status.name));
    let mut hints = vec![format!("nodewise explain {target}")];
    let crashing = status
        .causes
        .iter()
        .find(|cause| cause.restarts > 0 && !cause.container.is_empty());
    if let Some(cause) = crashing {
        let failing = view::pods(status).filter(|pod| {
            pod.problem
                .as_ref()
                .is_some_and(|problem| problem.message == cause.message)
        });
        hints.extend(failing.take(MAX_LOGS).map(|pod| {
            format!(
                "kubectl logs {} -c {} -n {namespace} --previous",
                word(&pod.pod_name),
                word(&cause.container)
            )
        }));
    }
    if status.kind == REPLICA_SET {
        return hints;
    }
    if let Some(policy) = &status.policy {
        hints.extend(of_policy(policy, &target));
    } else if status.state() == RolloutState::Paused {
        hints.push(format!("nodewise rollout resume {target}"));
    }
    let is_held = status.state() == RolloutState::Stuck || !status.causes.is_empty();
    // A former revision without pods is not in the status.
    let has_former = status.revisions.len() > 1
        || status
            .revisions
            .iter()
            .any(|one| one.is_current && one.number > 1);
    if is_held && has_former {
        hints.push(format!("nodewise rollout diff {target}"));
        hints.push(format!("nodewise rollout undo {target}"));
    }
    hints
}

/// Whether an inconclusive check may hold the rollout. One that only errs goes on by itself.
fn has_inconclusive_check(policy: &v1::PolicyRollout) -> bool {
    let open = policy.stages.iter().filter(|stage| stage.state != "Complete");
    let mut checks = open.flat_map(|stage| &stage.checks);
    checks.any(|check| check.inconclusive > 0)
}

/// Commands for the policy in charge. That for an approval is with the approval.
fn of_policy(policy: &v1::PolicyRollout, target: &str) -> Vec<String> {
    let verbs: &[&str] = match policy.state.as_str() {
        "Invalid" => &[],
        "Paused" | "RolledBack" => &["resume"],
        "Rejected" => &["resume", "rollback"],
        "RollingBack" => &["pause"],
        "AnalysisHeld" if has_inconclusive_check(policy) => &["resume", "pause", "rollback"],
        _ => &["pause", "rollback"],
    };
    let command = |verb: &&str| format!("nodewise rollout {verb} {target}");
    verbs.iter().map(command).collect()
}
