//! The order of decisions in a plan, and the gates that hold decisions up (D-71).

use crate::{
    core::{
        batches,
        cancellation::Cancellation,
        expectations,
        plan::{Action, ActionKind, EventType, Phase, PhaseKind, Plan, Reason, Verdict},
        selector,
        snapshot::{Deviation, Scope, Snapshot},
        staleness,
    },
    daemonset::{
        bucket_summary::Detail,
        companion,
        context::PlanContext,
        plan_builder::PlanBuilder,
        plan_cache::PlanCache,
        policy_writes,
        revisions::{Halt, Resolution},
        slow_start,
        workload::{DaemonSet, UpdateStrategy},
    },
    rollout::{governing::Policies, policy::Policy, write::StatusWrite},
};

/// Plans for one workload. `None` if cancelled.
pub(crate) fn plan(
    snapshot: &Snapshot<DaemonSet>,
    cache: &mut PlanCache,
    cancellation: Cancellation<'_>,
) -> Option<Plan> {
    if let Some(stale) = staleness::plan(snapshot) {
        return Some(stale);
    }
    let scope = snapshot.options.scope;
    match inactive(snapshot) {
        // The other controller reports it.
        Some(_) if scope == Scope::Rollouts => return Some(Plan::nothing(snapshot, Verdict::Noop)),
        Some(Inactive::SelectingAll { literally }) => return Some(selecting_all(snapshot, literally)),
        Some(Inactive::Deleting) => return Some(Plan::nothing(snapshot, Verdict::Noop)),
        None => {}
    }
    if scope == Scope::Rollouts {
        return plan_rollout(snapshot, cache, cancellation);
    }
    let context = PlanContext::of(snapshot, cache, Detail::Notable, cancellation)?;
    if let Some(halt) = &context.resolution.halt {
        return Some(halted(snapshot, &context.resolution, halt));
    }
    let builder = PlanBuilder::new(snapshot, &context, cache.identities.get(), cancellation);
    if builder.is_cut() {
        return Some(builder.claims_only());
    }
    let expected = snapshot.state.expectations.as_ref();
    match expectations::pending(expected, snapshot.now) {
        Some(left) => match expected.and_then(|expected| slow_start::unseen(expected, &snapshot.options)) {
            Some(unseen) => builder.creates_on_other_nodes(left, &unseen),
            None => Some(builder.status_only(left)),
        },
        None => builder.in_full(),
    }
}

/// Plans only the rollout, beside another controller. `None` if cancelled.
fn plan_rollout(
    snapshot: &Snapshot<DaemonSet>,
    cache: &mut PlanCache,
    cancellation: Cancellation<'_>,
) -> Option<Plan> {
    let ds = &snapshot.workload;
    let policies = Policies::of(&ds.rollout.policies, &ds.name, &ds.rollout.labels);
    match companion::rollout_request(ds) {
        // A policy takes the place of the annotations.
        _ if policies.governing.is_some() && ds.strategy == UpdateStrategy::OnDelete => {}
        companion::RolloutRequest::None if let Some(governing) = policies.governing => {
            return Some(rolled_out_by_another(snapshot, governing.policy));
        }
        companion::RolloutRequest::None => return Some(Plan::nothing(snapshot, Verdict::Noop)),
        companion::RolloutRequest::Wrong(because) => {
            let reason = (Reason::InvalidAnnotation, "an annotation is of no use".to_owned());
            return Some(warning(snapshot, reason, "InvalidRollout", because));
        }
        companion::RolloutRequest::Rollouts(_) => {}
    }
    let context = PlanContext::of(snapshot, cache, Detail::Notable, cancellation)?;
    if companion::is_unrecorded(&context.resolution) {
        return Some(Plan::nothing(snapshot, Verdict::Noop));
    }
    let builder = PlanBuilder::without_claims(snapshot, &context, cancellation);
    match expectations::pending(snapshot.state.expectations.as_ref(), snapshot.now) {
        Some(left) => Some(builder.rollout_held_up(left)),
        None => builder.rollout_only(),
    }
}

/// A plan that only writes into the status of a policy that another controller rolls the workload out, whatever the policy says.
fn rolled_out_by_another(snapshot: &Snapshot<DaemonSet>, policy: &Policy) -> Plan {
    let write = policy_writes::has_no_say(policy, &snapshot.workload, snapshot.now);
    let StatusWrite::Yes(action) = write else {
        return Plan::nothing(snapshot, Verdict::Noop);
    };
    Plan {
        phases: vec![Phase::new(
            PhaseKind::RolloutPolicies,
            batches::at_once(vec![*action]),
        )],
        ..Plan::nothing(snapshot, Verdict::Apply)
    }
}

/// Why nothing is decided for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inactive {
    /// The selector is empty (D-71). `literally` is whether upstream's test recognizes that, too.
    SelectingAll { literally: bool },
    /// The workload is being deleted (D-71).
    Deleting,
}

/// Why nothing is decided; `None` if decisions are made.
pub(crate) fn inactive(snapshot: &Snapshot<DaemonSet>) -> Option<Inactive> {
    let ds = &snapshot.workload;
    let by_meaning = snapshot.options.deviates(Deviation::EmptySelectorByMeaning);
    match &ds.selector {
        Some(selector) if selector::is_empty(selector, by_meaning) => Some(Inactive::SelectingAll {
            literally: selector::is_empty(selector, false),
        }),
        _ => ds.deleting.then_some(Inactive::Deleting),
    }
}

fn selecting_all(snapshot: &Snapshot<DaemonSet>, literally: bool) -> Plan {
    let message = "This daemon set is selecting all pods. A non-empty selector is required.";
    let because = "the selector is empty".to_owned();
    let deviation = (!literally).then_some(Deviation::EmptySelectorByMeaning);
    Plan {
        deviations: deviation.into_iter().collect(),
        ..warning(
            snapshot,
            (Reason::SelectingAll, because),
            "SelectingAll",
            message.to_owned(),
        )
    }
}

/// The longest message of an Event that the apiserver accepts, in bytes.
pub(crate) const MAX_EVENT_MESSAGE: usize = 1024;

/// A plan with a warning event as its only action. The message is cut to [`MAX_EVENT_MESSAGE`], since it may quote a long
/// annotation.
pub(crate) fn warning(
    snapshot: &Snapshot<DaemonSet>,
    (reason, because): (Reason, String),
    event: &'static str,
    mut message: String,
) -> Plan {
    message.truncate(message.floor_char_boundary(MAX_EVENT_MESSAGE));
    let event = Action {
        reason,
        message: because,
        kind: ActionKind::EmitEvent {
            event_type: EventType::Warning,
            reason: event,
            message,
        },
    };
    Plan {
        phases: vec![Phase::new(PhaseKind::Events, batches::at_once(vec![event]))],
        ..Plan::nothing(snapshot, Verdict::Apply)
    }
}

/// A plan that only raises the collision count, because the name of the next revision is taken (D-62).
fn halted(snapshot: &Snapshot<DaemonSet>, resolution: &Resolution<'_>, halt: &Halt) -> Plan {
    Plan {
        phases: vec![Phase::new(
            PhaseKind::Status,
            batches::at_once(vec![halt.action.clone()]),
        )],
        error: Some(halt.error.clone()),
        deviations: resolution.deviations.clone(),
        ..Plan::nothing(snapshot, Verdict::Apply)
    }
}
