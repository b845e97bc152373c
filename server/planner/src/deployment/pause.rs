//! The condition `Progressing` of a paused Deployment (P-46).

use crate::deployment::{
    conditions::{self, PAUSED, PROGRESSING, RESUMED, TIMED_OUT},
    plan_builder::PlanBuilder,
};

/// Notes that the Deployment is paused, or no longer. The time of the latter starts the progress deadline again.
pub(crate) fn keep_books(builder: &mut PlanBuilder<'_>) {
    let deployment = builder.deployment;
    let reason = conditions::progress_reason(&builder.conditions);
    if deployment.deadline().is_none() || reason == TIMED_OUT {
        return;
    }
    let (reason, message) = match (deployment.paused, reason == PAUSED) {
        (true, false) => (PAUSED, "Deployment is paused"),
        (false, true) => (RESUMED, "Deployment is resumed"),
        _ => return,
    };
    let condition = conditions::new(PROGRESSING, "Unknown", reason, message, builder.snapshot.now);
    conditions::set(&mut builder.conditions, condition);
}
