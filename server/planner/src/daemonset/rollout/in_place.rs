//! The rolling update without surge: the old pod is deleted before the new one is created (D-41 to D-44).

use crate::{
    core::plan::Reason,
    daemonset::{
        cluster_view::{ClusterView, NodeEntry},
        pod_changes::slots_after,
        pod_classifier::OwnPod,
        rollout::{limits::Limits, node_content::Content, step::Step},
    },
};

/// Deletes old pods within maxUnavailable. Placement creates the new pods in a later plan.
pub(crate) fn step<'a>(view: &ClusterView<'a>, limits: Limits) -> Step<'a> {
    let mut step = Step {
        limits,
        ..Step::default()
    };
    let mut candidates: Vec<(&NodeEntry<'a>, &OwnPod<'a>)> = Vec::new();
    for (_, entry, pods) in view.rollout_entries() {
        let content = Content::of(pods);
        step.unavailable += i64::from(content.is_unavailable());
        match content {
            Content::Old(old) if old.available => candidates.push((entry, old)),
            // An unavailable old pod is deleted even beyond the budget, since its node already counts as unavailable (D-42).
            Content::Old(old) => step.changes.delete(entry, old, Reason::RolloutOldUnavailable),
            _ => {}
        }
    }
    let room = limits.max_unavailable.saturating_sub(step.unavailable);
    let candidates = candidates.into_iter().take(usize::try_from(room).unwrap_or(0));
    for (slot, (entry, old)) in slots_after(step.unavailable).zip(candidates) {
        step.changes.delete_within_budget(entry, old, slot);
    }
    step.changes.budget = limits.max_unavailable;
    step
}
