//! The gate of expectations (chapter 11): creates and deletes that no watch has shown yet.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::core::snapshot::{Expectations, ExpectedCreate};

/// Expectations that are strictly older hold nothing up any more (D-72).
const LIFETIME: SignedDuration = SignedDuration::from_mins(5);
/// Added to the rest of a lifetime, since expectations hold at its very end.
const TICK: Duration = Duration::from_millis(1);

/// How long expectations may still hold up this workload; `None` when they are satisfied.
pub(crate) fn pending(expectations: Option<&Expectations>, now: Timestamp) -> Option<Duration> {
    let expectations =
        expectations.filter(|pair| !pair.creates.is_empty() || !pair.delete_uids.is_empty())?;
    // Those of the future count as set now: the clock was set back.
    let set_at = expectations.set_at.min(now);
    let left = LIFETIME.saturating_sub(now.duration_since(set_at));
    (!left.is_negative()).then(|| left.unsigned_abs().saturating_add(TICK))
}

/// What a plan leaves to be expected. A plan without creates and deletes overwrites what was expected before, like any
/// other (D-72).
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
