//! Whether a pod has been ready for minReadySeconds.

use jiff::{SignedDuration, Timestamp};

use crate::core::snapshot::PodView;

/// The rule for one workload at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Availability {
    now: Timestamp,
    min_ready: SignedDuration,
}

impl Availability {
    /// The rule with this minReadySeconds.
    pub(crate) fn new(now: Timestamp, min_ready_seconds: i32) -> Self {
        Self {
            now,
            min_ready: SignedDuration::from_secs(min_ready_seconds.into()),
        }
    }

    /// Whether a pod has been ready for minReadySeconds.
    pub(crate) fn is_available(self, pod: PodView<'_>) -> bool {
        pod.ready()
            && (!self.has_min_ready() || pod.ready_since().is_some_and(|since| self.is_long_enough(since)))
    }

    /// Whether minReadySeconds is set, so that availability depends on the time.
    pub(crate) fn has_min_ready(self) -> bool {
        !self.min_ready.is_zero()
    }

    /// Whether a pod that is ready since then has been ready for minReadySeconds.
    pub(crate) fn is_long_enough(self, since: Timestamp) -> bool {
        self.now.duration_since(since) >= self.min_ready
    }

    /// The time until a pod that is ready since then has been ready for minReadySeconds.
    pub(crate) fn left(self, since: Timestamp) -> SignedDuration {
        self.min_ready.saturating_sub(self.now.duration_since(since))
    }
}
