//! Plans as messages.

use nodewise_planner::{
    plan::{Batch, Phase, PhaseKind, Plan, PodManifest, Rollout, Status, Verdict, When},
    snapshot::Scope,
};
use nodewise_proto::v1;
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use super::{
    action, duration, hex, state,
    status::{daemon_set, other_status},
};
use crate::{limits::Limits, parse::options, warnings::Warnings};

/// The plan for a workload as a message, with the plan's id and the ids of its actions.
pub(crate) fn plan(
    plan: Plan,
    workload: v1::WorkloadReference,
    scope: Scope,
    warnings: &Warnings,
) -> v1::Plan {
    let (warnings, more_warnings) = warnings.to_messages();
    let mut ids = 1..;
    let (requeue_after, requeue_reason) = match plan.requeue {
        // Capped: a pod may claim to be ready since the year 9999, and the report that repeats this delay must be valid.
        Some(requeue) => (
            Some(duration(requeue.delay.min(Limits::LONGEST_REQUEUE))),
            requeue.reason,
        ),
        None => (None, String::new()),
    };
    let PodManifest {
        json,
        node_name_pointers,
    } = plan.pod_manifest.unwrap_or(PodManifest {
        json: Vec::new(),
        node_name_pointers: Vec::new(),
    });
    let mut message = v1::Plan {
        verdict: verdict(plan.verdict).into(),
        plan_id: String::new(),
        workload: Some(workload),
        phases: plan
            .phases
            .into_iter()
            .map(|steps| phase(steps, &mut ids))
            .collect(),
        pod_manifest: json.into(),
        node_name_pointers,
        state: Some(state(plan.state)),
        requeue_after,
        requeue_reason,
        error: plan.error.unwrap_or_default(),
        daemon_set_status: plan.status.as_ref().and_then(Status::daemon_set).map(daemon_set),
        status: plan.status.and_then(other_status),
        rollout: plan.rollout.map(rollout),
        deviations: plan
            .deviations
            .into_iter()
            .map(|deviation| options::to_message(deviation).into())
            .collect(),
        scope: match scope {
            Scope::Workload => v1::Scope::Unspecified.into(),
            Scope::Rollouts => v1::Scope::Rollouts.into(),
        },
        warnings,
        more_warnings,
        rollout_policy_uids: plan.policy_uids,
    };
    message.deviations.sort_unstable();
    message.plan_id = hex(&Sha256::digest(message.encode_to_vec()));
    message
}

fn verdict(verdict: Verdict) -> v1::Verdict {
    match verdict {
        Verdict::Apply => v1::Verdict::Apply,
        Verdict::StatusOnly => v1::Verdict::StatusOnly,
        Verdict::Stale => v1::Verdict::Stale,
        Verdict::Noop => v1::Verdict::Noop,
    }
}

fn phase(phase: Phase, ids: &mut impl Iterator<Item = u32>) -> v1::Phase {
    let kind = match phase.kind {
        PhaseKind::Revisions => v1::PhaseKind::Revisions,
        PhaseKind::Claims => v1::PhaseKind::Claims,
        PhaseKind::Events => v1::PhaseKind::Events,
        PhaseKind::Creates => v1::PhaseKind::Creates,
        PhaseKind::Deletes => v1::PhaseKind::Deletes,
        PhaseKind::Cleanup => v1::PhaseKind::Cleanup,
        PhaseKind::Status => v1::PhaseKind::Status,
        PhaseKind::Rollback => v1::PhaseKind::Rollback,
        PhaseKind::ReplicaSets => v1::PhaseKind::ReplicaSets,
        PhaseKind::OldReplicaSets => v1::PhaseKind::OldReplicaSets,
        PhaseKind::Failure => v1::PhaseKind::Failure,
        PhaseKind::RolloutPolicies => v1::PhaseKind::RolloutPolicies,
        PhaseKind::Analysis => v1::PhaseKind::Analysis,
    };
    v1::Phase {
        kind: kind.into(),
        batches: phase
            .batches
            .into_iter()
            .map(|actions| batch(actions, ids))
            .collect(),
        aborts_on_failure: phase.kind.aborts_on_failure(),
        requires_success: phase.when == When::AfterSuccess,
        requires_failure: phase.when == When::AfterFailure,
        ignores_failure: phase.ignores_failure,
    }
}

fn batch(batch: Batch, ids: &mut impl Iterator<Item = u32>) -> v1::Batch {
    v1::Batch {
        // `ids` must be the second iterator: `zip` polls the first one first, and would lose an id at the end of each batch.
        actions: batch
            .actions
            .into_iter()
            .zip(ids.by_ref())
            .map(|(write, id)| action::action(write, id))
            .collect(),
        confirm_workload: batch.confirm_workload,
    }
}

fn rollout(rollout: Rollout) -> v1::Rollout {
    v1::Rollout {
        current_hash: rollout.current_hash,
        current_revision: rollout.current_revision,
        desired: rollout.desired,
        max_unavailable: rollout.max_unavailable,
        max_surge: rollout.max_surge,
        unavailable: rollout.unavailable,
        surging: rollout.surging,
        outdated: rollout.nodes.outdated,
        without_pod: rollout.nodes.without_pod,
        updated_unavailable: rollout.nodes.updated_unavailable,
        updated_available: rollout.nodes.updated_available,
    }
}
