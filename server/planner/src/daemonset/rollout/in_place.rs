//! The rolling update without surge (chapter 6): the old pod goes before the new one comes.

use crate::{
    core::plan::Reason,
    daemonset::{
        cluster_view::{ClusterView, NodeEntry},
        pod_classifier::OwnPod,
        rollout::{limits::Limits, node_content::Content, step::Step},
    },
};

/// Takes old pods down within maxUnavailable; placement fills the nodes later (D-41 to D-44).
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
            // It goes even when the budget is exceeded, since it adds nothing to what is unavailable (D-42).
            Content::Old(old) => step.changes.delete(entry, old, Reason::RolloutOldUnavailable),
            _ => {}
        }
    }
    let room = limits.max_unavailable.saturating_sub(step.unavailable);
    for (entry, old) in candidates.into_iter().take(usize::try_from(room).unwrap_or(0)) {
        step.changes.delete(entry, old, Reason::RolloutWithinBudget);
    }
    step.changes.budget = Some((step.unavailable, limits.max_unavailable));
    step
}
