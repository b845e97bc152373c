//! Metrics of the work queue, named as in client-go.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Instant,
};

use nodewise_telemetry::metrics::{Histogram, Histograms};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::exponential_buckets},
    registry::Registry,
};

use super::labels::Name;

type Seconds = Gauge<f64, AtomicU64>;

/// The metrics of the work queue.
pub(super) struct Queue {
    pub(super) depth: Family<Name, Gauge>,
    pub(super) adds: Family<Name, Counter>,
    pub(super) waited: Histograms<Name>,
    pub(super) worked: Histograms<Name>,
    pub(super) unfinished: Family<Name, Seconds>,
    pub(super) longest: Family<Name, Seconds>,
    pub(super) retries: Family<Name, Counter>,
    /// Start time of the work on each key that is being processed, by a number.
    running: Mutex<HashMap<u64, Instant>>,
}

/// Ten buckets from 10 ns, factor 10.
fn queue_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 10))
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            depth: Family::default(),
            adds: Family::default(),
            waited: Family::new_with_constructor(queue_buckets),
            worked: Family::new_with_constructor(queue_buckets),
            unfinished: Family::default(),
            longest: Family::default(),
            retries: Family::default(),
            running: Mutex::default(),
        }
    }
}

impl Queue {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("depth", "Keys that wait for a worker", self.depth.clone());
        registry.register("adds", "Keys that were added", self.adds.clone());
        registry.register(
            "queue_duration_seconds",
            "How long a key waits for a worker",
            self.waited.clone(),
        );
        registry.register(
            "work_duration_seconds",
            "How long a worker processes a key",
            self.worked.clone(),
        );
        registry.register(
            "unfinished_work_seconds",
            "Sum of the ages of all work in progress",
            self.unfinished.clone(),
        );
        let help = "Age of the oldest work in progress";
        registry.register("longest_running_processor_seconds", help, self.longest.clone());
        registry.register(
            "retries",
            "Keys that were added with a delay",
            self.retries.clone(),
        );
    }

    /// Records that work began. Returns its number.
    pub(super) fn began(&self, now: Instant) -> u64 {
        let mut running = self.running();
        let id = running.keys().max().map_or(0, |last| last + 1);
        running.insert(id, now);
        id
    }

    /// Records that work ended.
    pub(super) fn ended(&self, id: u64) {
        self.running().remove(&id);
    }

    /// Updates the ages of the keys that are being processed.
    pub(super) fn observe_running(&self, name: &Name) {
        let ages: Vec<f64> = self
            .running()
            .values()
            .map(|began| began.elapsed().as_secs_f64())
            .collect();
        self.unfinished
            .get_or_create(name)
            .set(ages.iter().fold(0.0, |sum, age| sum + age));
        self.longest
            .get_or_create(name)
            .set(ages.into_iter().fold(0.0, f64::max));
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
