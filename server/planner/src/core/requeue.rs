//! The time after which to plan again without a watch event: as upstream sets it, and the earliest time at which something changes
//!

use std::time::Duration;

use crate::core::plan::RequeueAfter;

/// The timer of one plan.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    upstream: Option<RequeueAfter>,
    earliest: Option<RequeueAfter>,
}

impl Timers {
    /// Sets upstream's timer, unless it ends sooner already.
    pub(crate) fn upstream(&mut self, delay: Duration, reason: impl FnOnce() -> String) {
        sooner(&mut self.upstream, delay, reason);
    }

    /// Sets the timer for a change, unless it ends sooner already.
    pub(crate) fn earliest(&mut self, delay: Duration, reason: impl FnOnce() -> String) {
        sooner(&mut self.earliest, delay, reason);
    }

    /// Sets both timers: for a change that upstream does not know.
    pub(crate) fn at(&mut self, delay: Duration, reason: impl Fn() -> String) {
        for timer in [&mut self.upstream, &mut self.earliest] {
            sooner(timer, delay, &reason);
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
        self.earliest(left, || "expectations of an earlier plan expire".to_owned());
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
