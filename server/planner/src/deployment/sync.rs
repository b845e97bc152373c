//! The order of decisions in a plan (P-10).

use crate::{
    core::{
        batches,
        cancellation::Cancellation,
        plan::{Action, ActionKind, EventType, Phase, PhaseKind, Plan, Reason, Verdict},
        selector,
        snapshot::{Deviation, Scope, Snapshot},
        staleness,
        status::Status,
    },
    deployment::{
        cleanup, lookup, pause,
        plan_builder::{Ending, PlanBuilder},
        recreate, rollback, rolling, scaling, status_write,
        workload::{Deployment, Strategy},
    },
};

/// Plans for one Deployment. `None` if cancelled.
pub(crate) fn plan(snapshot: &Snapshot<Deployment>, cancellation: Cancellation<'_>) -> Option<Plan> {
    if let Some(stale) = staleness::plan(snapshot) {
        return Some(stale);
    }
    // Nodewise makes the decisions about a Deployment's rollout only together with all others.
    if snapshot.options.scope == Scope::Rollouts {
        return Some(Plan::nothing(snapshot, Verdict::Noop));
    }
    if let Some(selecting_all) = selecting_all(snapshot) {
        return Some(selecting_all);
    }
    let (builder, ending) = decide(snapshot, cancellation)?;
    Some(builder.finish(ending))
}

/// All decisions about a Deployment whose selector is not empty. `None` if cancelled.
pub(crate) fn decide<'a>(
    snapshot: &'a Snapshot<Deployment>,
    cancellation: Cancellation<'_>,
) -> Option<(PlanBuilder<'a>, Ending)> {
    let deployment = &snapshot.workload;
    if deployment.deleting {
        let mut builder = PlanBuilder::new(snapshot, "", cancellation)?;
        lookup::update(&mut builder);
        return Some((builder, Ending::PlainStatus));
    }
    if deployment.paused {
        return paused(snapshot, cancellation);
    }
    let mut builder = look_up(snapshot, &name_in_question(deployment), cancellation)?;
    if let Some(requested) = rollback::requested(deployment) {
        let result = rollback::plan(&mut builder, requested);
        return Some((builder, result.map_or_else(Ending::Error, |()| Ending::Early)));
    }
    if scaling::is_due(&builder) {
        let mut builder = look_up(snapshot, "", cancellation)?;
        scaling::plan(&mut builder);
        return Some((builder, Ending::PlainStatus));
    }
    let result = match &deployment.strategy {
        Strategy::RollingUpdate(_) => rolling::plan(&mut builder),
        Strategy::Recreate => recreate::plan(&mut builder),
        Strategy::Unknown(strategy) => Err(format!("unexpected deployment strategy type: {strategy}")),
    };
    let ending = result.map_or_else(Ending::Error, |()| Ending::RolloutStatus);
    Some((builder, ending))
}

/// A paused Deployment: sizes and history, but no rollout (P-47).
fn paused<'a>(
    snapshot: &'a Snapshot<Deployment>,
    cancellation: Cancellation<'_>,
) -> Option<(PlanBuilder<'a>, Ending)> {
    let mut builder = look_up(snapshot, "", cancellation)?;
    scaling::plan(&mut builder);
    if rollback::requested(builder.deployment).is_none() {
        let old = scaling::newest_first(&builder);
        cleanup::plan(&mut builder, old);
    }
    Some((builder, Ending::PlainStatus))
}

/// Starts a plan with what comes before all other decisions: the bookkeeping of a pause, and the lookup of the new set.
fn look_up<'a>(
    snapshot: &'a Snapshot<Deployment>,
    taken: &str,
    cancellation: Cancellation<'_>,
) -> Option<PlanBuilder<'a>> {
    let mut builder = PlanBuilder::new(snapshot, taken, cancellation)?;
    if !taken.is_empty() && builder.new.is_some() {
        // Nothing is created, so a set that the executor read after a name collision is like any other.
        builder = PlanBuilder::new(snapshot, "", cancellation)?;
    }
    pause::keep_books(&mut builder);
    lookup::update(&mut builder);
    Some(builder)
}

/// The name of the ReplicaSet to create, if the executor found it taken (P-27). Empty if not.
fn name_in_question(deployment: &Deployment) -> String {
    let was_read = deployment.sets.iter().any(|set| set.read_after_name_collision);
    if was_read {
        lookup::name(deployment)
    } else {
        String::new()
    }
}

/// Whether the selector is empty, and whether upstream sees that, too. An absent selector counts as empty.
pub(crate) fn is_selecting_all(snapshot: &Snapshot<Deployment>) -> Option<bool> {
    let by_meaning = snapshot.options.deviates(Deviation::EmptySelectorByMeaning);
    match &snapshot.workload.selector {
        None => Some(true),
        Some(selector) => {
            selector::is_empty(selector, by_meaning).then(|| selector::is_empty(selector, false))
        }
    }
}

/// The plan for a Deployment with an empty selector: a warning, and the generation is observed. Failures are ignored.
fn selecting_all(snapshot: &Snapshot<Deployment>) -> Option<Plan> {
    let literally = is_selecting_all(snapshot)?;
    let deployment = &snapshot.workload;
    let event = Action {
        reason: Reason::SelectingAll,
        message: "the selector is empty".to_owned(),
        kind: ActionKind::EmitEvent {
            event_type: EventType::Warning,
            reason: "SelectingAll",
            message: "This deployment is selecting all pods. A non-empty selector is required.".to_owned(),
        },
    };
    let mut phases = vec![Phase::new(PhaseKind::Events, batches::at_once(vec![event]))];
    let mut status = deployment.status.clone();
    if status.observed_generation < deployment.generation {
        status.observed_generation = deployment.generation;
        let action = status_write::observe_generation(deployment);
        phases.push(Phase {
            ignores_failure: true,
            ..Phase::new(PhaseKind::Status, batches::at_once(vec![action]))
        });
    }
    let deviation = (!literally).then_some(Deviation::EmptySelectorByMeaning);
    Some(Plan {
        phases,
        status: Some(Status::Deployment(status)),
        deviations: deviation.into_iter().collect(),
        ..Plan::nothing(snapshot, Verdict::Apply)
    })
}
