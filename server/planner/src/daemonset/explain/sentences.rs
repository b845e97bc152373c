//! Messages that several rules share, or that need a lookup.

use std::time::Duration;

use crate::{
    core::snapshot::{PodPhase, Snapshot},
    daemonset::{
        cluster_view::{ClusterView, NodeEntry},
        placement::Waiting,
        pod_classifier::OwnPod,
        rollout::{limits::Limits, node_content::Content},
        workload::DaemonSet,
    },
};

/// The most users of a budget that a message names.
const NAMED: usize = 3;

/// The nodes that use the rollout's budget.
pub(super) fn budget(view: &ClusterView<'_>, limits: &Limits) -> String {
    let surge = limits.max_surge != 0;
    let (mut count, mut named) = (0, Vec::new());
    for (_, entry, pods) in view.rollout_entries() {
        let content = Content::of(pods);
        let uses = if surge {
            content.is_surging()
        } else {
            content.is_unavailable()
        };
        // All nodes may use the budget, so only a few are named.
        if uses && count < NAMED {
            named.push(user(entry, content, pods));
        }
        count += usize::from(uses);
    }
    let (field, limit) = if surge {
        ("maxSurge", limits.max_surge)
    } else {
        ("maxUnavailable", limits.max_unavailable)
    };
    if named.is_empty() {
        return format!("{field} is {limit}, and others come first");
    }
    let more = count - named.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{count} of {field} {limit} in use by {}{more}", named.join(", "))
}

/// A node that uses the budget, and why.
fn user(entry: &NodeEntry<'_>, content: Content<'_, '_>, pods: &[OwnPod<'_>]) -> String {
    let node = entry.name;
    match (content, pods) {
        (Content::Nothing, []) => format!("{node} (no pod)"),
        (Content::Nothing, [first, ..]) => format!("{node} (pod {} is being deleted)", first.pod.name),
        (Content::New(pod) | Content::Old(pod) | Content::Both { new: pod, .. }, _) if !pod.available => {
            format!("{node} (pod {} is not available)", pod.pod.name)
        }
        _ => format!("{node} (more than one pod)"),
    }
}

/// The message about a change that expectations hold up.
pub(super) fn expectations(
    entry: &NodeEntry<'_>,
    snapshot: &Snapshot<DaemonSet>,
    left: Duration,
    change: &str,
) -> String {
    let expected = snapshot.state.expectations.iter().flat_map(|pair| &pair.creates);
    if let Some(create) = expected.into_iter().find(|create| create.node_name == entry.name) {
        let pod = if create.pod_name.is_empty() {
            "a pod"
        } else {
            &create.pod_name
        };
        return format!("{pod} was created for {} and has not been seen yet", entry.name);
    }
    format!(
        "{change}; waits for creates or deletes of an earlier plan to be seen, at most {}",
        seconds(left)
    )
}

/// The message about a failed pod in back-off.
pub(super) fn backoff(waiting: &Waiting<'_>) -> String {
    let Waiting { pod, node, wait } = waiting;
    format!(
        "pod {} on {node} failed; it is replaced in {}",
        pod.name,
        seconds(wait.left)
    )
}

/// The message about a pod of the current template.
pub(super) fn runs(own: &OwnPod<'_>) -> String {
    let pod = &own.pod.name;
    match own.pod.phase {
        _ if own.available => format!("pod {pod} runs and is available"),
        _ if own.pod.ready => format!("pod {pod} runs and is ready, but not yet for minReadySeconds"),
        PodPhase::Pending => format!("pod {pod} is pending"),
        _ => format!("pod {pod} runs, but is not ready"),
    }
}

/// A duration in seconds, rounded up.
fn seconds(duration: Duration) -> String {
    let whole = duration
        .as_secs()
        .saturating_add(u64::from(duration.subsec_nanos() > 0));
    format!("{whole} s")
}
