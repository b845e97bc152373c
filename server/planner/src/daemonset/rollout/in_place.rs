//! The rolling update without surge: the old pod is deleted before the new one is created (D-41 to D-44).

use crate::{
    core::plan::Reason,
    daemonset::{
        cluster_view::{ClusterView, NodeEntry},
        pod_changes::slots_after,
        pod_classifier::OwnPod,
        rollout::{limits::Limits, node_content::Content, restriction::Restriction, step::Step},
    },
};

/// An old pod that may be replaced.
type Old<'p, 'a> = (usize, &'p NodeEntry<'a>, &'p OwnPod<'a>);

/// Deletes old pods within maxUnavailable. Placement creates the new pods in a later plan.
pub(crate) fn step<'a>(
    view: &ClusterView<'a>,
    limits: Limits,
    restriction: &Restriction<'_, 'a>,
) -> Step<'a> {
    let mut step = Step {
        limits,
        ..Step::default()
    };
    let (mut unavailable, mut candidates): (Vec<Old<'_, 'a>>, Vec<Old<'_, 'a>>) = Default::default();
    for (index, entry, pods) in view.rollout_entries() {
        let content = Content::of(pods);
        step.unavailable += i64::from(content.is_unavailable() && restriction.counts(index));
        match content {
            Content::Old(old) if !restriction.allows(index, entry, old) => {}
            Content::Old(old) if old.available => candidates.push((index, entry, old)),
            Content::Old(old) => unavailable.push((index, entry, old)),
            _ => {}
        }
    }
    for olds in [&mut unavailable, &mut candidates] {
        restriction.sort(olds, |(index, entry, old)| (*index, entry.name, old));
    }
    // An unavailable old pod is deleted even beyond the budget, since its node already counts as unavailable (D-42).
    let pace = restriction.pace();
    for (_, entry, old) in unavailable.iter().take(pace) {
        let reason = restriction.reason(Reason::RolloutOldUnavailable);
        step.changes.delete(entry, old, reason);
    }
    let room = limits.max_unavailable.saturating_sub(step.unavailable);
    let room = usize::try_from(room)
        .unwrap_or(0)
        .min(pace - pace.min(unavailable.len()));
    for (slot, (_, entry, old)) in slots_after(step.unavailable).zip(candidates.into_iter().take(room)) {
        let reason = restriction.reason(Reason::RolloutWithinBudget);
        step.changes.delete_within_budget(entry, old, reason, slot);
    }
    step.changes.budget = limits.max_unavailable;
    step
}
