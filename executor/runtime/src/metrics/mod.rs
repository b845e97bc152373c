//! Prometheus metrics of the work queue, the leader election, calls to the apiserver, Events and watches.
//!
//! Work-queue and leader-election metrics have the names and labels of client-go, so that existing dashboards work. All other
//! metrics start with `nodewise_`. Durations are in seconds.

use std::{fmt, sync::Arc, time::Duration};

use nodewise_telemetry::metrics::{Histogram, Histograms, observe};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::exponential_buckets},
    registry::Registry,
};

use crate::resource::Resource;

mod labels;
mod queue;
mod watches;

pub use labels::GroupResource;
use labels::{ApiCall, Fate, Name};
use queue::Queues;
pub use queue::{QueueMetrics, WorkTimer};
use watches::Watches;

/// A handle on the metrics of the runtime. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    election_name: Name,
    queues: Arc<Queues>,
    leader: Family<Name, Gauge>,
    slow_paths: Family<Name, Counter>,
    api_calls: Histograms<ApiCall>,
    events: Family<Fate, Counter>,
    unreadable: Family<GroupResource, Counter>,
    watches: Watches,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// 15 buckets from 1 ms to 16 s.
fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Metrics {
    /// Creates all metrics, at zero. `lease` is the label `name` of the election.
    #[must_use]
    pub fn new(lease: &'static str) -> Self {
        Self {
            inner: Arc::new(Inner {
                election_name: Name { name: lease },
                queues: Arc::default(),
                leader: Family::default(),
                slow_paths: Family::default(),
                api_calls: Family::new_with_constructor(call_buckets),
                events: Family::default(),
                unreadable: Family::default(),
                watches: Watches::default(),
            }),
        }
    }

    /// Registers all metrics.
    pub fn register(&self, registry: &mut Registry) {
        let inner = &self.inner;
        inner
            .queues
            .register(registry.sub_registry_with_prefix("workqueue"));
        registry.register(
            "leader_election_master_status",
            "1 while this process is the leader, 0 while it is not; absent in mode observe",
            inner.leader.clone(),
        );
        let help = "Renewals of the lease that had to read it first";
        registry.register("leader_election_slowpath", help, inner.slow_paths.clone());
        let own = registry.sub_registry_with_prefix("nodewise");
        own.register(
            "api_call_duration_seconds",
            "Duration of calls to the apiserver for plans, by verb, resource and HTTP status; code 0 means no response",
            inner.api_calls.clone(),
        );
        own.register(
            "events",
            "Kubernetes Events, by result: created, patched, filtered (rate limit), dropped (full queue), failed",
            inner.events.clone(),
        );
        own.register(
            "unreadable_objects",
            "Objects that were skipped because the apiserver's JSON of them cannot be read",
            inner.unreadable.clone(),
        );
        inner.watches.register(own);
    }

    /// Updates the metrics that are ages. Call this before each scrape.
    pub fn refresh(&self) {
        self.inner.queues.observe_running();
        self.inner.watches.observe_ages();
    }

    /// Removes the watch metrics after the work ended, because another process may continue it.
    pub fn forget_watches(&self) {
        self.inner.watches.forget_all();
    }

    /// Returns the text of a scrape, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn encode(&self) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        self.refresh();
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }

    /// The metrics of the work queue with this label `name`.
    #[must_use]
    pub fn queue(&self, name: &'static str) -> QueueMetrics {
        QueueMetrics::new(&self.inner.queues, name)
    }

    /// Sets whether this process is the leader.
    pub fn set_leader(&self, leads: bool) {
        self.inner
            .leader
            .get_or_create(&self.inner.election_name)
            .set(leads.into());
    }

    /// Counts a renewal that had to read the lease first.
    pub fn lease_slow_path(&self) {
        self.inner
            .slow_paths
            .get_or_create(&self.inner.election_name)
            .inc();
    }

    /// Counts an object that was skipped because it cannot be read.
    pub fn unreadable(&self, resource: Resource) {
        let labels = GroupResource::of(resource);
        self.inner.unreadable.get_or_create(&labels).inc();
    }

    /// Records a call to the apiserver. `code` is the HTTP status, or 0 if there was no response.
    pub fn api_call(&self, verb: &'static str, resource: &'static str, code: u16, took: Duration) {
        let labels = ApiCall {
            verb,
            resource,
            code: code.into(),
        };
        observe(&self.inner.api_calls.get_or_create(&labels), took.as_secs_f64());
    }

    /// Records that the apiserver answered a write of this process with this metadata.resourceVersion.
    pub fn written(&self, resource: Resource, version: &str) {
        self.inner.watches.written(resource, version);
    }

    /// Records that the watch of a resource received an event and has reached this metadata.resourceVersion.
    pub fn watched(&self, resource: Resource, reached: &str) {
        self.inner.watches.reached(resource, reached);
    }

    /// Counts a Kubernetes Event. `fate` is `created`, `patched`, `filtered`, `dropped` or `failed`.
    pub fn event(&self, fate: &'static str) {
        self.inner.events.get_or_create(&Fate { fate }).inc();
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
