//! The budget of a rollout: which nodes use it, and which wait for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::daemonset::{
    cluster_view::{ClusterView, NodeEntry},
    pod_classifier::OwnPod,
    rollout::{limits::Limits, node_content::Content, step::Step},
    workload::UpdateStrategy,
};

/// The most users of a budget that a message names.
const NAMED: usize = 3;

/// Who uses the budget, and who waits for it.
pub(super) struct Budget<'a> {
    /// One sentence that names users.
    pub(super) sentence: String,
    /// The nodes that wait, by name, with their place from 1.
    waiting: BTreeMap<&'a str, usize>,
    used: usize,
    limit: usize,
}

impl<'a> Budget<'a> {
    /// The budget before the changes of `step`. They do not wait.
    pub(super) fn of(view: &ClusterView<'a>, step: &Step<'a>, strategy: &UpdateStrategy) -> Self {
        let limits = &step.limits;
        let surge = limits.max_surge != 0;
        let changed: BTreeSet<&str> = (step.changes.deletes.iter().map(|delete| delete.node))
            .chain(
                step.changes
                    .creates
                    .iter()
                    .map(|create| view.entries[create.entry].name),
            )
            .collect();
        let (mut used, mut named, mut waiting) = (0, Vec::new(), BTreeMap::new());
        for (_, entry, pods) in view.rollout_entries() {
            let content = Content::of(pods);
            let is_user = if surge {
                content.is_surging()
            } else {
                content.is_unavailable()
            };
            // All nodes may use the budget, so only a few are named.
            if is_user && used < NAMED {
                named.push(user(entry, content, pods));
            }
            used += usize::from(is_user);
            let waits = matches!(content, Content::Old(_)) && entry.fit.run && !changed.contains(entry.name);
            if waits && *strategy != UpdateStrategy::OnDelete {
                waiting.insert(entry.name, waiting.len() + 1);
            }
        }
        let (_, limit) = field(limits);
        Self {
            sentence: sentence(limits, used, &named),
            waiting,
            used,
            limit: usize::try_from(limit).unwrap_or_default(),
        }
    }

    /// Whether nodes wait and the budget is used up.
    pub(super) fn is_used_up(&self) -> bool {
        !self.waiting.is_empty() && self.used >= self.limit
    }

    /// The place of a node among those that wait, from 1.
    pub(super) fn position(&self, node: &str) -> Option<usize> {
        self.waiting.get(node).copied()
    }
}

/// The field that limits the rollout, and its value.
fn field(limits: &Limits) -> (&'static str, i64) {
    if limits.max_surge == 0 {
        ("maxUnavailable", limits.max_unavailable)
    } else {
        ("maxSurge", limits.max_surge)
    }
}

fn sentence(limits: &Limits, used: usize, named: &[String]) -> String {
    let (field, limit) = field(limits);
    if named.is_empty() {
        return format!("{field} is {limit}, and others come first");
    }
    let more = match used - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{used} of {field} {limit} in use by {}{more}", named.join(", "))
}

/// A node that uses the budget, and why.
fn user(entry: &NodeEntry<'_>, content: Content<'_, '_>, pods: &[OwnPod<'_>]) -> String {
    let node = entry.name;
    match (content, pods) {
        (Content::Nothing, []) => format!("{node} (no pod)"),
        (Content::Nothing, [first, ..]) => format!("{node} (pod {} is being deleted)", first.pod.name()),
        (Content::New(pod) | Content::Old(pod) | Content::Both { new: pod, .. }, _) if !pod.available => {
            format!("{node} (pod {} is not available)", pod.pod.name())
        }
        _ => format!("{node} (more than one pod)"),
    }
}
