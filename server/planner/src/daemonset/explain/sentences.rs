//! Messages that several rules share, or that need a lookup.

use std::time::Duration;

use crate::{
    core::snapshot::{PodPhase, Snapshot},
    daemonset::{cluster_view::NodeEntry, placement::Waiting, pod_classifier::OwnPod, workload::DaemonSet},
};

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
        pod.name(),
        seconds(wait.left)
    )
}

/// The message about a pod of the current template.
pub(super) fn runs(own: &OwnPod<'_>) -> String {
    let pod = &own.pod.name();
    match own.pod.phase() {
        _ if own.available => format!("pod {pod} runs and is available"),
        _ if own.pod.ready() => format!("pod {pod} runs and is ready, but not yet for minReadySeconds"),
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
