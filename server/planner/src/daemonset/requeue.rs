//! The time after which to plan again without a watch event (D-92, D-95, Q-18).

use std::{num::NonZero, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::{plan::RequeueAfter, status::DaemonSetStatus},
    daemonset::{cluster_view::ClusterView, placement::Waiting, workload::DaemonSet},
};

/// The timer of one plan: as upstream sets it, and the earliest time at which something changes.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    upstream: Option<RequeueAfter>,
    earliest: Option<RequeueAfter>,
}

impl Timers {
    /// Sets the timer for pods that become available when minReadySeconds have passed (D-92). Upstream waits for the whole of
    /// minReadySeconds, and only if the status shows such pods.
    pub(crate) fn availability(
        &mut self,
        ds: &DaemonSet,
        view: &ClusterView<'_>,
        status: &DaemonSetStatus,
        now: Timestamp,
    ) {
        let seconds = u64::try_from(ds.min_ready_seconds).ok();
        let Some(whole) = seconds.and_then(NonZero::new) else {
            return;
        };
        let whole = Duration::from_secs(whole.get());
        if status.number_ready != status.number_available {
            let reason = || "pods are ready, but not for minReadySeconds".to_owned();
            sooner(&mut self.upstream, whole, reason);
        }
        let min_ready = SignedDuration::from_secs(ds.min_ready_seconds.into());
        // Pods that are being deleted count in the status, too (D-87).
        for pod in view.entries.iter().flat_map(|entry| view.pods(entry)) {
            if pod.available || !pod.pod.ready {
                continue;
            }
            // A pod with an unknown transition time never becomes available by waiting.
            if let Some(since) = pod.pod.ready_since {
                let left = min_ready.saturating_sub(now.duration_since(since));
                sooner(&mut self.earliest, left.unsigned_abs(), || {
                    format!("pod {} becomes available", pod.pod.name)
                });
            }
        }
    }

    /// Sets the timer for failed pods in back-off (D-95).
    pub(crate) fn failed_pods(&mut self, waiting: &[Waiting<'_>]) {
        for Waiting { pod, node, wait } in waiting {
            let reason = || format!("back-off of failed pod {} on {node} ends", pod.name);
            sooner(&mut self.upstream, wait.whole, reason);
            sooner(&mut self.earliest, wait.left, reason);
        }
    }

    /// Sets the timer to now, because one plan may not do everything.
    pub(crate) fn at_once(&mut self, reason: &str) {
        for timer in [&mut self.upstream, &mut self.earliest] {
            sooner(timer, Duration::ZERO, || reason.to_owned());
        }
    }

    /// Sets the timer for expectations that expire. Upstream has no such timer.
    pub(crate) fn expectations(&mut self, left: Duration) {
        sooner(&mut self.earliest, left, || {
            "expectations of an earlier plan expire".to_owned()
        });
    }

    /// The timer of the plan, and whether it differs from upstream's. `earliest` is whether the deviation of Q-18 is on.
    pub(crate) fn choose(self, earliest: bool) -> (Option<RequeueAfter>, bool) {
        let delay = |timer: &Option<RequeueAfter>| timer.as_ref().map(|timer| timer.delay);
        let differs = earliest && delay(&self.earliest) != delay(&self.upstream);
        (if earliest { self.earliest } else { self.upstream }, differs)
    }
}

fn sooner(timer: &mut Option<RequeueAfter>, delay: Duration, reason: impl FnOnce() -> String) {
    if timer.as_ref().is_none_or(|timer| delay < timer.delay) {
        *timer = Some(RequeueAfter {
            delay,
            reason: reason(),
        });
    }
}
