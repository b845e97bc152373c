//! The time after which to plan again without a watch event (D-92, D-95).

use std::{num::NonZero, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::{requeue::Timers, status::DaemonSetStatus},
    daemonset::{cluster_view::ClusterView, placement::Waiting, workload::DaemonSet},
};

/// Sets the timer for pods that become available when minReadySeconds have passed (D-92). Upstream waits for the whole of
/// minReadySeconds, and only if the status shows such pods.
pub(crate) fn availability(
    timers: &mut Timers,
    ds: &DaemonSet,
    view: &ClusterView<'_>,
    status: &DaemonSetStatus,
    now: Timestamp,
) {
    let seconds = u64::try_from(ds.min_ready_seconds).ok();
    let Some(whole) = seconds.and_then(NonZero::new) else {
        return;
    };
    if status.number_ready != status.number_available {
        timers.upstream(Duration::from_secs(whole.get()), || {
            "pods are ready, but not for minReadySeconds".to_owned()
        });
    }
    let min_ready = SignedDuration::from_secs(ds.min_ready_seconds.into());
    // Pods that are being deleted count in the status, too (D-87).
    for pod in view.entries.iter().flat_map(|entry| view.pods(entry)) {
        if pod.available || !pod.pod.ready() {
            continue;
        }
        // A pod with an unknown transition time never becomes available by waiting.
        if let Some(since) = pod.pod.ready_since() {
            let left = min_ready.saturating_sub(now.duration_since(since));
            timers.earliest(left.unsigned_abs(), || {
                format!("pod {} becomes available", pod.pod.name())
            });
        }
    }
}

/// Sets the timer for failed pods in back-off (D-95).
pub(crate) fn failed_pods(timers: &mut Timers, waiting: &[Waiting<'_>]) {
    for Waiting { pod, node, wait } in waiting {
        let reason = || format!("back-off of failed pod {} on {node} ends", pod.name());
        timers.upstream(wait.whole, reason);
        timers.earliest(wait.left, reason);
    }
}
