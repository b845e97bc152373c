//! The slow start of creates across plans (deviation `SLOW_START_ACROSS_PLANS`).
//!
//! Upstream begins the slow start of each sync with one create. After a burst of creates it waits until its cache shows all of
//! them. Nodewise continues the slow start from plan to plan, and does not wait: creates are idempotent, so outstanding creates are
//! known by their names.

use jiff::SignedDuration;

use crate::core::{
    outcome::{Outcome, OutcomeResult, Subject},
    snapshot::{Deviation, Expectations, Options, SlowStart, Snapshot},
};

/// After this time without creates the slow start begins again, because a quota or an admission plugin may have changed.
const LIFETIME: SignedDuration = SignedDuration::from_secs(30);

/// The size of the first batch of a plan that creates pods of this revision.
pub(crate) fn first_batch<W>(snapshot: &Snapshot<W>, hash: &str) -> u32 {
    let options = &snapshot.options;
    if !options.deviates(Deviation::SlowStartAcrossPlans) {
        return 1;
    }
    valid_state(snapshot, hash).map_or(1, |known| within_burst(known.size, options))
}

/// Limits a batch size to the burst, but not below 1.
fn within_burst(size: u32, options: &Options) -> u32 {
    let burst = u32::try_from(options.burst).unwrap_or(u32::MAX);
    size.min(burst).max(1)
}

/// The state of the slow start, if it is recent and of this revision.
fn valid_state<'a, W>(snapshot: &'a Snapshot<W>, hash: &str) -> Option<&'a SlowStart> {
    let known = snapshot.state.slow_start.as_ref()?;
    let age = snapshot.now.duration_since(known.last);
    let recent = !age.is_negative() && age <= LIFETIME;
    (recent && known.revision_hash == hash).then_some(known)
}

/// Whether the last plan that created pods of this revision was less than a second ago.
pub(crate) fn is_recent<W>(snapshot: &Snapshot<W>, hash: &str) -> bool {
    valid_state(snapshot, hash)
        .is_some_and(|known| snapshot.now.duration_since(known.last) < SignedDuration::from_secs(1))
}

/// The state of the slow start after a plan. `first` is the size of its first batch of creates; `None` if it creates nothing.
pub(crate) fn state_after_plan<W>(
    snapshot: &Snapshot<W>,
    hash: &str,
    first: Option<u32>,
) -> Option<SlowStart> {
    if !snapshot.options.deviates(Deviation::SlowStartAcrossPlans) {
        return snapshot.state.slow_start.clone();
    }
    match first {
        Some(size) => Some(SlowStart {
            size,
            revision_hash: hash.to_owned(),
            last: snapshot.now,
        }),
        None => valid_state(snapshot, hash).cloned(),
    }
}

/// The state of the slow start after the outcomes of creates. Each create that succeeded raises the size by one, which continues
/// the batches 1, 2, 4, … A create that failed resets the slow start.
pub(crate) fn state_after_outcomes(
    known: SlowStart,
    outcomes: &[Outcome],
    options: &Options,
) -> Option<SlowStart> {
    if !options.deviates(Deviation::SlowStartAcrossPlans) {
        return Some(known);
    }
    let creates = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.subject, Some(Subject::CreatedPod(_))));
    let mut size = known.size;
    for outcome in creates {
        match outcome.result {
            OutcomeResult::Succeeded | OutcomeResult::AlreadyExists => size = size.saturating_add(1),
            OutcomeResult::Failed | OutcomeResult::NamespaceTerminating => return None,
            // These outcomes say nothing about whether pods can be created.
            OutcomeResult::NameTaken
            | OutcomeResult::NotFound
            | OutcomeResult::Skipped
            | OutcomeResult::Blocked => {}
        }
    }
    Some(SlowStart {
        size: within_burst(size, options),
        ..known
    })
}

/// Whether the executor may plan again at once after a plan whose creates the burst has cut.
pub(crate) fn may_plan_again_at_once(options: &Options) -> bool {
    let needed = [Deviation::SlowStartAcrossPlans, Deviation::IdempotentCreates];
    needed.into_iter().all(|deviation| options.deviates(deviation))
}

/// Whether further creates may be planned while these are outstanding: no deletes are outstanding, and each create has a derived
/// name.
pub(crate) fn may_create_meanwhile(expected: &Expectations, options: &Options) -> bool {
    let known =
        expected.delete_uids.is_empty() && expected.creates.iter().all(|create| !create.pod_name.is_empty());
    known && options.deviates(Deviation::SlowStartAcrossPlans)
}
