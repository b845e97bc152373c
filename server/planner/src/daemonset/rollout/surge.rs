//! The rolling update with surge: the new pod is created before the old one is deleted (D-45 to D-49).

use crate::{
    core::{
        plan::Reason,
        snapshot::{Deviation, Options},
    },
    daemonset::{
        cluster_view::{ClusterView, NodeEntry},
        pod_changes::{PodChanges, slots_after},
        pod_classifier::OwnPod,
        rollout::{limits::Limits, node_content::Content, restriction::Restriction, step::Step},
    },
};

/// The next step. maxUnavailable is ignored.
pub(crate) fn step<'a>(
    view: &ClusterView<'a>,
    limits: Limits,
    options: &Options,
    restriction: &Restriction<'_, 'a>,
) -> Step<'a> {
    let mut budget = SurgeBudget {
        step: Step {
            limits,
            ..Step::default()
        },
        available: view.settled.running + view.settled.keeping,
        ..SurgeBudget::default()
    };
    for (index, entry, pods) in view.rollout_entries() {
        budget.add_node(index, entry, Content::of(pods), options, restriction);
    }
    budget.finish(view.desired, restriction)
}

/// A node with an old pod, by the index of its entry.
type Candidate<'p, 'a> = (usize, &'p NodeEntry<'a>, &'p OwnPod<'a>);

#[derive(Default)]
struct SurgeBudget<'p, 'a> {
    step: Step<'a>,
    /// The number of nodes with an available pod.
    available: usize,
    /// Nodes that may get a second pod, because their old one is not available.
    unavailable: Vec<Candidate<'p, 'a>>,
    /// Nodes that may get a second pod.
    candidates: Vec<Candidate<'p, 'a>>,
    /// Available old pods on nodes that may not run a new one.
    sunset: Vec<(&'p NodeEntry<'a>, &'p OwnPod<'a>)>,
}

impl<'p, 'a> SurgeBudget<'p, 'a> {
    /// Adds one node (D-45).
    fn add_node(
        &mut self,
        index: usize,
        entry: &'p NodeEntry<'a>,
        content: Content<'p, 'a>,
        options: &Options,
        restriction: &Restriction<'_, 'a>,
    ) {
        if let Content::Old(pod) | Content::New(pod) | Content::Both { old: pod, .. } = content {
            self.available += usize::from(pod.available);
        }
        self.step.surging += i64::from(content.is_surging() && restriction.counts(index));
        match content {
            Content::Both { new, old } if new.available => {
                self.step
                    .changes
                    .delete_beside(entry, old, Reason::SurgeNewAvailable, new);
            }
            Content::Old(_) if entry.node.is_none() => {
                if options.deviates(Deviation::SurgeIgnoresMissingNodes) {
                    self.step.deviations.insert(Deviation::SurgeIgnoresMissingNodes);
                } else {
                    let error = || {
                        format!(
                            "couldn't get node for nodeName {:?}: it does not exist",
                            entry.name
                        )
                    };
                    self.step.error.get_or_insert_with(error);
                }
            }
            Content::Old(old) if !restriction.allows(index, entry, old) => {}
            Content::Old(old) => match (old.available, entry.fit.run) {
                (false, true) => self.unavailable.push((index, entry, old)),
                (false, false) => self
                    .step
                    .changes
                    .delete(entry, old, Reason::RolloutOldUnavailable),
                (true, true) => self.candidates.push((index, entry, old)),
                (true, false) => self.sunset.push((entry, old)),
            },
            _ => {}
        }
    }

    /// Creates and deletes pods within the budget (D-46, D-47).
    fn finish(mut self, desired: usize, restriction: &Restriction<'_, 'a>) -> Step<'a> {
        for nodes in [&mut self.unavailable, &mut self.candidates] {
            restriction.sort(nodes, |(index, entry, old)| (*index, entry.name, old));
        }
        let pace = restriction.pace();
        for (index, ..) in self.unavailable.iter().take(pace) {
            let reason = restriction.reason(Reason::SurgeOldUnavailable);
            self.step.changes.create(*index, reason);
        }
        let room = self.step.limits.max_surge.saturating_sub(self.step.surging);
        let room = usize::try_from(room)
            .unwrap_or(0)
            .min(pace - pace.min(self.unavailable.len()));
        let candidates = self.candidates.into_iter().map(|(index, ..)| index).take(room);
        for (slot, index) in slots_after(self.step.surging).zip(candidates) {
            let reason = restriction.reason(Reason::SurgeWithinBudget);
            self.step.changes.create_within_budget(index, reason, slot);
        }
        self.step.changes.budget = self.step.limits.max_surge;
        for (entry, old) in self
            .sunset
            .into_iter()
            .take(self.available.saturating_sub(desired))
        {
            self.step.changes.delete(entry, old, Reason::RolloutNodeSunset);
        }
        if self.step.error.is_some() {
            self.step.changes = PodChanges::default();
        }
        self.step
    }
}
