//! A slow start that remembers: how many creates go out at once, and which may while earlier ones are not seen yet.
//!
//! Upstream begins each sync's slow start with one create and waits, after as many as the burst, until its watch has shown
//! all of them. Here both go on (the deviation `SLOW_START_ACROSS_PLANS`): a create is idempotent, so what is not seen yet
//! is known by its name and need not be waited for.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::{
    core::{
        outcome::{Outcome, OutcomeResult, Subject},
        plan::Reason,
        snapshot::{Deviation, Expectations, Options, SlowStart, Snapshot},
    },
    daemonset::{cluster_view::ClusterView, pod_changes::PodChanges},
};

/// What was learned longer ago says nothing any more: a quota, an admission plugin, a kubelet may have changed.
const MEMORY: SignedDuration = SignedDuration::from_secs(30);

/// The size of the first batch of a plan that creates pods of this revision.
pub(crate) fn first_batch(snapshot: &Snapshot, hash: &str) -> u32 {
    let options = &snapshot.options;
    if !options.deviates(Deviation::SlowStartAcrossPlans) {
        return 1;
    }
    recalled(snapshot, hash).map_or(1, |known| within_burst(known.size, options))
}

/// The burst is the ceiling, and one create is the beginning whatever the burst.
fn within_burst(size: u32, options: &Options) -> u32 {
    let burst = u32::try_from(options.burst).unwrap_or(u32::MAX);
    size.min(burst).max(1)
}

/// What is known of the slow start, as far as it says anything about pods of this revision now.
fn recalled<'a>(snapshot: &'a Snapshot, hash: &str) -> Option<&'a SlowStart> {
    let known = snapshot.state.slow_start.as_ref()?;
    let age = snapshot.now.duration_since(known.last);
    let recent = !age.is_negative() && age <= MEMORY;
    (recent && known.revision_hash == hash).then_some(known)
}

/// Whether pods of this revision were created less than a second ago.
pub(crate) fn is_quick(snapshot: &Snapshot, hash: &str) -> bool {
    recalled(snapshot, hash)
        .is_some_and(|known| snapshot.now.duration_since(known.last) < SignedDuration::from_secs(1))
}

/// What to hold of the slow start after a plan, whose first batch of creates had this size; `None` where it had none.
pub(crate) fn held(snapshot: &Snapshot, hash: &str, first: Option<u32>) -> Option<SlowStart> {
    if !snapshot.options.deviates(Deviation::SlowStartAcrossPlans) {
        return snapshot.state.slow_start.clone();
    }
    match first {
        Some(size) => Some(SlowStart {
            size,
            revision_hash: hash.to_owned(),
            last: snapshot.now,
        }),
        None => recalled(snapshot, hash).cloned(),
    }
}

/// What to hold once it is known what became of creates: each that succeeded lets one more go out at once, as if the batches
/// 1, 2, 4, … had gone on, and one that failed lets it begin again.
pub(crate) fn grown(known: SlowStart, outcomes: &[Outcome], options: &Options) -> Option<SlowStart> {
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
            // Says nothing about the pods.
            OutcomeResult::NameTaken | OutcomeResult::NotFound | OutcomeResult::Skipped => {}
        }
    }
    Some(SlowStart {
        size: within_burst(size, options),
        ..known
    })
}

/// Whether the next plan follows at once after so many creates, for what the burst may have left out.
pub(crate) fn goes_on(creates: usize, options: &Options) -> bool {
    let ahead = [Deviation::SlowStartAcrossPlans, Deviation::IdempotentCreates];
    creates >= options.burst && ahead.into_iter().all(|deviation| options.deviates(deviation))
}

/// Creates that were started and not seen, when further ones may be planned meanwhile: nothing else is expected, and each has
/// a name, so that it can be told from those to come.
pub(crate) fn unseen<'a>(expected: &'a Expectations, options: &Options) -> Option<BTreeSet<&'a str>> {
    let known =
        expected.delete_uids.is_empty() && expected.creates.iter().all(|create| !create.pod_name.is_empty());
    (known && options.deviates(Deviation::SlowStartAcrossPlans)).then(|| {
        let nodes = expected.creates.iter().map(|create| create.node_name.as_str());
        nodes.collect()
    })
}

/// Of the changes of placement those that may be made while creates for these nodes are not seen: creates for other nodes
/// without a pod. Whatever else there is to do rests on pods that are not there to be looked at.
pub(crate) fn ahead<'a>(
    mut changes: PodChanges<'a>,
    view: &ClusterView<'a>,
    unseen: &BTreeSet<&str>,
) -> PodChanges<'a> {
    changes.deletes.clear();
    changes.creates.retain(|create| {
        create.reason == Reason::NodeWithoutPod && !unseen.contains(view.entries[create.entry].name)
    });
    changes
}
