//! Metrics of how far the watches are behind the apiserver.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Instant,
};

use nodewise_telemetry::metrics::{Histogram, Histograms, observe};
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge, histogram::exponential_buckets},
    registry::Registry,
};

use super::labels::GroupResource;
use crate::{gate, resource::Resource};

/// Most own writes that wait to be seen by a watch. Further writes are not measured.
const MOST_UNSEEN: usize = 1_024;

/// The metric families of the watches.
pub(super) struct Watches {
    lag: Histograms<GroupResource>,
    since_event: Family<GroupResource, Gauge<f64, AtomicU64>>,
    seen: Mutex<HashMap<Resource, WatchState>>,
}

/// The state of one watch.
struct WatchState {
    /// The metadata.resourceVersion that the watch has reached.
    reached: String,
    /// Time of the last event or bookmark.
    at: Instant,
    /// Own writes that the watch has not shown yet: resourceVersion and time of the response.
    unseen: VecDeque<(String, Instant)>,
}

impl Default for Watches {
    fn default() -> Self {
        Self {
            lag: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 15))),
            since_event: Family::default(),
            seen: Mutex::default(),
        }
    }
}

impl Watches {
    /// Records the response to an own write.
    pub(super) fn written(&self, resource: Resource, version: &str) {
        let mut seen = self.seen();
        let Some(seen) = seen.get_mut(&resource) else {
            return;
        };
        if is_reached(version, &seen.reached) {
            // The watch showed the write before the response arrived.
            self.observe(resource, 0.0);
        } else if seen.unseen.len() < MOST_UNSEEN {
            seen.unseen.push_back((version.to_owned(), Instant::now()));
        }
    }

    /// Records an event or bookmark.
    pub(super) fn reached(&self, resource: Resource, reached: &str) {
        let now = Instant::now();
        let mut seen = self.seen();
        let seen = seen.entry(resource).or_insert_with(|| WatchState {
            reached: String::new(),
            at: now,
            unseen: VecDeque::new(),
        });
        seen.at = now;
        if seen.reached == reached {
            return;
        }
        if gate::is_behind(&seen.reached, reached) {
            // The versions restarted at a lower number. The watch may never reach the versions of earlier writes (D-112).
            seen.unseen.clear();
        }
        reached.clone_into(&mut seen.reached);
        seen.unseen.retain(|(version, written)| {
            let is_seen = is_reached(version, reached);
            if is_seen {
                self.observe(resource, (now - *written).as_secs_f64());
            }
            !is_seen
        });
    }

    fn observe(&self, resource: Resource, seconds: f64) {
        observe(&self.lag.get_or_create(&GroupResource::of(resource)), seconds);
    }

    /// Forgets all watches.
    pub(super) fn forget_all(&self) {
        self.seen().clear();
        self.since_event.clear();
    }

    /// Updates the times since the last events.
    pub(super) fn observe_ages(&self) {
        for (resource, seen) in self.seen().iter() {
            let age = self.since_event.get_or_create(&GroupResource::of(*resource));
            age.set(seen.at.elapsed().as_secs_f64());
        }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<Resource, WatchState>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(&self, own: &mut Registry) {
        let help = "Time from the apiserver's response to one of the executor's own writes until the watch shows the write";
        own.register("watch_lag_seconds", help, self.lag.clone());
        let help = "Time since the last event or bookmark of a watch; a bookmark comes about once a minute";
        own.register("watch_since_event_seconds", help, self.since_event.clone());
    }
}

/// Whether a watch at `reached` has shown `version`. True if the two cannot be compared, because nothing waits for such a
/// version.
fn is_reached(version: &str, reached: &str) -> bool {
    !gate::is_behind(version, reached)
}
