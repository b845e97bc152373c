//! Metrics of the work queue, named as in client-go.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use nodewise_telemetry::metrics::{Histogram, Histograms, observe};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::exponential_buckets},
    registry::Registry,
};
use tokio::time::Instant;

use super::{gauge, labels::Name};

type Seconds = Gauge<f64, AtomicU64>;

/// The metrics of all work queues.
pub(super) struct Queues {
    depth: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    waited: Histograms<Name>,
    worked: Histograms<Name>,
    unfinished: Family<Name, Seconds>,
    longest: Family<Name, Seconds>,
    retries: Family<Name, Counter>,
    /// By queue, then by a number for each piece of work: when the work in progress began.
    running: Mutex<BTreeMap<&'static str, HashMap<u64, Instant>>>,
}

/// A handle on the metrics of one work queue. Clones share them.
#[derive(Clone)]
pub struct QueueMetrics {
    pub(super) queues: Arc<Queues>,
    pub(super) name: Name,
}

/// Measures the work on one key. The work ends when the timer is dropped.
#[derive(Debug)]
pub struct WorkTimer {
    queue: QueueMetrics,
    id: u64,
    began: Instant,
}

/// Ten buckets from 10 ns, factor 10.
fn queue_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 10))
}

impl Default for Queues {
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

impl Queues {
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

    /// Updates the ages of the keys that are being processed.
    pub(super) fn observe_running(&self) {
        for (name, running) in self.running().iter() {
            let name = Name { name };
            let ages = || running.values().map(|began| began.elapsed().as_secs_f64());
            let sum = ages().fold(0.0, |sum, age| sum + age);
            self.unfinished.get_or_create(&name).set(sum);
            self.longest.get_or_create(&name).set(ages().fold(0.0, f64::max));
        }
    }

    /// The age of the oldest work in progress of a queue.
    fn longest_running(&self, name: &str) -> Duration {
        let running = self.running();
        let began = running.get(name).and_then(|running| running.values().min());
        began.map_or(Duration::ZERO, Instant::elapsed)
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<&'static str, HashMap<u64, Instant>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueMetrics {
    /// The age of the oldest work in progress; zero if there is none.
    #[must_use]
    pub fn longest_running(&self) -> Duration {
        self.queues.longest_running(self.name.name)
    }

    pub(super) fn new(queues: &Arc<Queues>, name: &'static str) -> Self {
        queues.running().entry(name).or_default();
        Self {
            queues: Arc::clone(queues),
            name: Name { name },
        }
    }

    /// Counts a key that was added to the queue. `depth` is the number of keys that wait now.
    pub fn added(&self, depth: usize) {
        self.queues.adds.get_or_create(&self.name).inc();
        self.depth(depth);
    }

    /// Sets the number of keys that wait.
    pub fn depth(&self, depth: usize) {
        self.queues.depth.get_or_create(&self.name).set(gauge(depth));
    }

    /// Counts a key that was added with a delay, for any reason.
    pub fn retried(&self) {
        self.queues.retries.get_or_create(&self.name).inc();
    }

    /// Records that a worker took a key that had waited this long. Drop the returned timer when the work ends.
    #[must_use]
    pub fn work_started(&self, waited: Duration) -> WorkTimer {
        observe(
            &self.queues.waited.get_or_create(&self.name),
            waited.as_secs_f64(),
        );
        let began = Instant::now();
        let mut all = self.queues.running();
        let running = all.entry(self.name.name).or_default();
        let id = running.keys().max().map_or(0, |last| last + 1);
        running.insert(id, began);
        WorkTimer {
            queue: self.clone(),
            id,
            began,
        }
    }
}

impl Drop for WorkTimer {
    fn drop(&mut self) {
        let QueueMetrics { queues, name } = &self.queue;
        if let Some(running) = queues.running().get_mut(name.name) {
            running.remove(&self.id);
        }
        let took = self.began.elapsed().as_secs_f64();
        observe(&queues.worked.get_or_create(name), took);
    }
}

impl fmt::Debug for QueueMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueMetrics")
            .field("name", &self.name.name)
            .finish_non_exhaustive()
    }
}
