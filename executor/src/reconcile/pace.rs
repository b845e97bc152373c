//! When the next plan is asked for: as a plan or the answer to its report says, but not again and again for nothing.

use std::time::Duration;

use nodewise_proto::v1::{self, action::Kind};

use super::Ending;
use crate::apply::Applied;

/// A plan that created and deleted nothing is followed by another one no sooner than this, whatever the service says.
pub(super) const SOONEST: Duration = Duration::from_millis(100);

/// How a reconcile ends whose plan is to be followed by another one.
pub(super) const AT_ONCE: Ending = Ending::Settled {
    after: Some(Duration::ZERO),
};

/// When to come back after a plan of which nothing is known, or that did nothing: another one does not follow at once.
pub(super) fn later(after: Option<Duration>) -> Option<Duration> {
    after
        .filter(|after| !after.is_zero())
        .map(|after| after.max(SOONEST))
}

/// When to come back as the answer to a report says.
pub(super) fn answered(after: Option<Duration>, requeue: v1::Requeue, has_changed: bool) -> Option<Duration> {
    if has_changed && requeue != v1::Requeue::Backoff {
        return after;
    }
    after.map(|after| after.max(SOONEST))
}

/// Whether a plan has created or deleted pods, or found the name of one taken: then the next plan is another. Patches, a status and
/// Events can be written again and again, and so can revisions: one that has a finalizer is there after its delete.
pub(super) fn has_changed(plan: &v1::Plan, applied: &Applied) -> bool {
    plan.actions()
        .zip(&applied.outcomes)
        .any(|(action, outcome)| match outcome.result() {
            v1::Result::Succeeded => matches!(action.kind, Some(Kind::CreatePod(_) | Kind::DeletePod(_))),
            v1::Result::NameTaken => true,
            _ => false,
        })
}
