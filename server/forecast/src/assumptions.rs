//! What is assumed about pods, and the bounds of a play.

use std::time::Duration;

/// How pods behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// The time from a pod's creation until it is ready. Rounded up to whole seconds; at least one.
    pub ready_after: Duration,
    /// The time from a pod's deletion until it is gone. Rounded up to whole seconds; at least one.
    pub gone_after: Duration,
    /// The share of the new pods that never become ready, from 0 to 1.
    pub failing: f64,
    /// Chooses which pods these are.
    pub seed: u64,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            ready_after: Duration::from_secs(10),
            gone_after: Duration::from_secs(30),
            failing: 0.0,
            seed: 0,
        }
    }
}

impl Assumptions {
    pub(crate) fn ready_ticks(&self) -> u64 {
        whole_seconds(self.ready_after).max(1)
    }

    pub(crate) fn gone_ticks(&self) -> u64 {
        whole_seconds(self.gone_after).max(1)
    }
}

/// Seconds, rounded up.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_add(u64::from(duration.subsec_nanos() > 0))
}

/// The bounds of a play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The longest virtual time.
    pub time: Duration,
    /// The most steps.
    pub steps: usize,
    /// The most nodes of a DaemonSet, or replicas of a Deployment.
    pub nodes: usize,
}

impl Default for Bounds {
    /// A week, 100,000 steps and 20,000 nodes.
    fn default() -> Self {
        Self {
            time: Duration::from_hours(7 * 24),
            steps: 100_000,
            nodes: 20_000,
        }
    }
}
