//! One step of the strategy Recreate (P-38 to P-40).

use crate::{
    core::plan::Reason,
    deployment::{cleanup, lookup, plan_builder::PlanBuilder, status},
};

/// Plans one step. An error ends the sync.
pub(crate) fn plan(builder: &mut PlanBuilder<'_>) -> Result<(), String> {
    if stop_old(builder) || has_old_pods(builder) {
        return Ok(());
    }
    lookup::create_if_missing(builder)?;
    if let Some(set) = builder.new.as_ref().and_then(|new| new.set) {
        let replicas = builder.deployment.replicas;
        let message = format!(
            "no pod of an older template is left, and {} has {} of {replicas} replicas",
            set.name, set.replicas
        );
        builder.scale(set, replicas, Reason::Recreate, message);
    }
    if status::is_complete(builder.deployment, &builder.deployment.status) {
        let old = builder.old.clone();
        cleanup::plan(builder, old);
    }
    Ok(())
}

/// Scales every old set to 0 (P-38). Returns whether there is one to scale.
fn stop_old(builder: &mut PlanBuilder<'_>) -> bool {
    let active = builder.active_old();
    for set in &active {
        let message = format!("{} stops before pods of the present template start", set.name);
        builder.scale(set, 0, Reason::Recreate, message);
    }
    !active.is_empty()
}

/// Whether there are pods of an older template, even if they are being deleted (P-39).
pub(crate) fn has_old_pods(builder: &PlanBuilder<'_>) -> bool {
    let reported = builder
        .numbers
        .sum(builder.old.iter().map(|set| set.status.replicas));
    reported > 0 || builder.old.iter().any(|set| set.unfinished_pods > 0)
}
