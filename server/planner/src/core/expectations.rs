//! Expectations: creates and deletes that the caches do not show yet. While there are any, further ones are held up (D-72).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::{
    plan::{Action, ActionKind},
    snapshot::{Expectations, ExpectedCreate},
};

/// Expectations older than this have expired (D-72).
const LIFETIME: SignedDuration = SignedDuration::from_mins(5);
/// Added to the rest of the lifetime, because expectations are still valid at its very end.
const TICK: Duration = Duration::from_millis(1);

/// The time until the expectations expire; `None` if there are none or they have expired.
pub(crate) fn pending(expectations: Option<&Expectations>, now: Timestamp) -> Option<Duration> {
    let expectations =
        expectations.filter(|pair| !pair.creates.is_empty() || !pair.delete_uids.is_empty())?;
    // A time in the future counts as now: the clock was set back.
    let set_at = expectations.set_at.min(now);
    let left = LIFETIME.saturating_sub(now.duration_since(set_at));
    (!left.is_negative()).then(|| left.unsigned_abs().saturating_add(TICK))
}

/// The expectations after a plan; `None` if it creates and deletes nothing. They replace those of earlier plans (D-72).
pub(crate) fn set(
    now: Timestamp,
    creates: Vec<ExpectedCreate>,
    delete_uids: Vec<String>,
) -> Option<Expectations> {
    (!creates.is_empty() || !delete_uids.is_empty()).then_some(Expectations {
        set_at: now,
        creates,
        delete_uids,
    })
}

/// The expectations for these creates.
pub(crate) fn of_creates(actions: &[Action]) -> Vec<ExpectedCreate> {
    let expected = actions.iter().filter_map(|action| match &action.kind {
        ActionKind::CreatePod { pod_name, node_name } => Some(ExpectedCreate {
            pod_name: pod_name.clone(),
            node_name: node_name.clone(),
        }),
        _ => None,
    });
    expected.collect()
}
