//! What Prometheus is told.
//!
//! Work-queue and leader-election metrics carry the names and labels that controllers have always had, so that existing
//! dashboards work; everything of our own starts with `nodewise_`. Durations are in seconds.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use nodewise_client::{Evicted, Fate, Hedge, Method, Observer, ReplicaCounts};
use nodewise_proto::v1;
use nodewise_telemetry::{grpc::code_name, metrics::observe};
use prometheus_client::{encoding::text, registry::Registry};

use crate::{
    apply::{self, Applied},
    divergence::Divergences,
    event::{DaemonSet, Key, Resource},
    other_owner,
    store::Standstill,
};

mod families;
mod rollout;
mod service;
#[cfg(test)]
mod tests;
mod watches;

use families::{
    ActionLabels, ApiCall, Code, ELECTION, Families, GroupResource, OfWorkload, OtherWrite, Outcome, QUEUE,
    Verdict, Workload,
};
use service::{Call, Cause};

/// The queue's name in the `workqueue_*` metrics.
pub const QUEUE_NAME: &str = "daemonset";

const EXPECTATION_STATES: [&str; 2] = ["create", "delete"];

/// A handle on all metrics of this executor. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    families: Families,
    divergences: Divergences,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// All metrics, at zero.
    #[must_use]
    pub fn new() -> Self {
        let families = Families::default();
        // There from the beginning, so that a first one shows as a change.
        for outcome in ["settled", "failed", "behind", "unreachable"] {
            drop(families.reconciles.get_or_create(&Outcome { outcome }));
        }
        Self {
            inner: Arc::new(Inner {
                registry: families.register(),
                families,
                divergences: Divergences::default(),
            }),
        }
    }

    fn families(&self) -> &Families {
        &self.inner.families
    }

    /// The text that a scrape gets (OpenMetrics 1.0).
    #[must_use]
    pub fn encode(&self) -> String {
        self.families().queue.observe_running();
        self.families().rollouts.observe_ages(Instant::now());
        self.families().watches.observe_ages();
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut text, &self.inner.registry);
        text
    }

    /// A key was added to the queue and `depth` keys wait now.
    pub fn queue_added(&self, depth: usize) {
        self.families().queue.adds.get_or_create(&QUEUE).inc();
        self.queue_depth(depth);
    }

    /// `depth` keys wait now.
    pub fn queue_depth(&self, depth: usize) {
        self.families()
            .queue
            .depth
            .get_or_create(&QUEUE)
            .set(gauge(depth));
    }

    /// A key will come back after a delay, for whatever reason.
    pub fn queue_retried(&self) {
        self.families().queue.retries.get_or_create(&QUEUE).inc();
    }

    /// A worker took a key that had waited so long. The work ends when the answer is dropped.
    #[must_use]
    pub fn work_started(&self, waited: Duration) -> WorkTimer {
        let queue = &self.families().queue;
        observe(&queue.waited.get_or_create(&QUEUE), waited.as_secs_f64());
        let began = Instant::now();
        WorkTimer {
            metrics: self.clone(),
            id: queue.began(began),
            began,
        }
    }

    /// Whether this process leads.
    pub fn set_leader(&self, leads: bool) {
        self.families().leader.get_or_create(&ELECTION).set(leads.into());
    }

    /// The lease had to be read before it could be renewed.
    pub fn lease_slow_path(&self) {
        self.families().slow_paths.get_or_create(&ELECTION).inc();
    }

    /// A reconcile was put off because the cache of `resource` is older than our own writes.
    pub fn stale_sync(&self, resource: Resource) {
        let labels = GroupResource::of(resource);
        self.families().stale_syncs.get_or_create(&labels).inc();
    }

    /// An object was passed over since it cannot be read.
    pub fn unreadable(&self, resource: Resource) {
        let labels = GroupResource::of(resource);
        self.families().unreadable.get_or_create(&labels).inc();
    }

    /// A plan was refused since it broke rule W15.
    pub fn plan_violation(&self) {
        self.families().plan_violations.inc();
    }

    /// So many objects came or changed of which not all labels and taints are sent.
    pub fn cut(&self, resource: Resource, count: u64) {
        let labels = GroupResource::of(resource);
        self.families().cut.get_or_create(&labels).inc_by(count);
    }

    /// A plan was applied with these outcomes.
    pub fn applied(&self, plan: &v1::Plan, applied: &Applied) {
        let results: HashMap<u32, v1::Result> = applied
            .outcomes
            .iter()
            .map(|outcome| (outcome.action_id, outcome.result()))
            .collect();
        self.families().batches.inc_by(applied.batches.into());
        let batches = plan.phases.iter().flat_map(|phase| &phase.batches);
        let attempted = |batch: &&v1::Batch| {
            let ids = batch.actions.iter().map(|action| action.id);
            let mut results = ids.filter_map(|id| results.get(&id));
            results.any(|result| *result != v1::Result::Skipped)
        };
        for batch in batches.filter(attempted) {
            observe(&self.families().batch_actions, float(batch.actions.len()));
        }
        for action in plan.actions() {
            let result = results
                .get(&action.id)
                .copied()
                .unwrap_or(v1::Result::Unspecified);
            let labels = ActionLabels {
                action: apply::kind_name(action),
                reason: action.reason().as_str_name().trim_start_matches("REASON_"),
                result: result.as_str_name().trim_start_matches("RESULT_"),
            };
            self.families().actions.get_or_create(&labels).inc();
        }
    }

    /// The apiserver answered a call; code 0 when it did not.
    pub fn api_call(&self, verb: &'static str, resource: &'static str, code: u16, took: Duration) {
        let labels = ApiCall {
            verb,
            resource,
            code: code.into(),
        };
        observe(
            &self.families().api_calls.get_or_create(&labels),
            took.as_secs_f64(),
        );
    }

    /// A write of ours was answered with this metadata.resourceVersion.
    pub fn written(&self, resource: Resource, version: &str) {
        self.families().watches.written(resource, version);
    }

    /// The watch of a resource showed something, and has now reached this metadata.resourceVersion.
    pub fn watched(&self, resource: Resource, reached: &str) {
        self.families().watches.reached(resource, reached);
    }

    /// A workload is as its status says.
    pub fn workload_status(&self, workload: &DaemonSet) {
        self.families().rollouts.status(workload, Instant::now());
    }

    /// A workload is new to this executor: should its rollout not be done, then it has stood still for so long.
    pub(crate) fn rollout_found(&self, key: &Key, standstill: impl FnOnce() -> Standstill) {
        let workload = Workload::new(&key.namespace, &key.name);
        self.families()
            .rollouts
            .found(&workload, Instant::now(), standstill);
    }

    /// So many creates and deletes were not seen in time.
    pub fn expectations_expired(&self, count: usize) {
        self.families().expectations_expired.inc_by(count as u64);
    }

    /// So many creates and deletes of a workload have not been seen in a watch yet.
    pub fn expectations(&self, namespace: &str, name: &str, creates: usize, deletes: usize) {
        for (state, count) in EXPECTATION_STATES.into_iter().zip([creates, deletes]) {
            let labels = OfWorkload::new(namespace, name, state);
            self.families()
                .expectations
                .get_or_create(&labels)
                .set(gauge(count));
        }
    }

    /// A workload is gone: nothing more is said about it.
    pub fn forget_workload(&self, namespace: &str, name: &str) {
        for state in EXPECTATION_STATES {
            self.families()
                .expectations
                .remove(&OfWorkload::new(namespace, name, state));
        }
        self.families().rollouts.forget(namespace, name);
        let workload = Workload::new(namespace, name);
        self.families().failures.remove(&workload);
        self.families().divergence.remove(&workload);
        self.families().foreign_deletes.remove(&workload);
        for write in other_owner::WRITES {
            self.families()
                .other_owner
                .remove(&OtherWrite::of(namespace, name, write));
        }
        self.inner.divergences.forget(&Key::new(namespace, name));
    }

    /// Another controller created a pod of a workload, or wrote its status.
    pub(crate) fn other_owner(&self, key: &Key, write: &'static str) {
        let labels = OtherWrite::of(&key.namespace, &key.name, write);
        self.families().other_owner.get_or_create(&labels).inc();
    }

    /// Somebody else deleted so many live pods of a workload.
    pub(crate) fn foreign_pod_deletes(&self, key: &Key, count: u64) {
        let workload = Workload::new(&key.namespace, &key.name);
        self.families()
            .foreign_deletes
            .get_or_create(&workload)
            .inc_by(count);
    }

    /// A plan was made for a workload that is only observed. Gives when to look at it again, though nothing happens.
    pub fn observed(&self, key: &Key, plan: &v1::Plan) -> Option<Duration> {
        let now = tokio::time::Instant::now();
        let again = self.inner.divergences.look(key, plan, now);
        let workload = Workload::new(&key.namespace, &key.name);
        let count = self.inner.divergences.count(key, now);
        if count == 0 {
            self.families().divergence.remove(&workload);
        } else {
            let gauge_of = self.families().divergence.get_or_create(&workload);
            gauge_of.set(gauge(count));
        }
        again
    }

    /// What the controller that is observed has not done, for people.
    #[must_use]
    pub fn divergence_report(&self) -> String {
        self.inner.divergences.report(tokio::time::Instant::now())
    }

    /// A reconcile of a workload ended: `settled`, `failed`, `behind` or `unreachable`.
    pub fn reconciled(&self, namespace: &str, name: &str, outcome: &'static str, took: Duration) {
        let families = self.families();
        let reconciles = families.reconciles.get_or_create(&Outcome { outcome });
        observe(&reconciles, took.as_secs_f64());
        let workload = Workload::new(namespace, name);
        match outcome {
            "failed" => _ = families.failures.get_or_create(&workload).inc(),
            "settled" => _ = families.failures.remove(&workload),
            // It did not come to its turn.
            _ => {}
        }
    }

    /// The work ended, and somebody else may go on with it: nothing more is said about workloads and watches.
    pub fn forget_everything(&self) {
        let families = self.families();
        families.expectations.clear();
        families.failures.clear();
        families.foreign_deletes.clear();
        families.rollouts.forget_all();
        families.watches.forget_all();
    }

    /// What became of a Kubernetes Event: `created`, `patched`, `filtered`, `dropped` or `failed`.
    pub fn event(&self, fate: &'static str) {
        self.families()
            .events
            .get_or_create(&families::Fate { fate })
            .inc();
    }

    /// Plans answered so far.
    #[must_use]
    pub fn plans(&self) -> u64 {
        let plans = &self.families().plans;
        ALL_VERDICTS
            .iter()
            .map(|verdict| plans.get_or_create(&Verdict { verdict }).get())
            .sum()
    }

    /// Batches applied so far.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.families().batches.get()
    }
}

impl Observer for Metrics {
    fn plan_answered(&self, took: Duration, request_bytes: usize, plan: &v1::Plan) {
        let families = self.families();
        let verdict = verdict_name(plan.verdict());
        let duration = families
            .plan_duration
            .get_or_create(&Outcome { outcome: verdict });
        observe(&duration, took.as_secs_f64());
        drop(duration);
        observe(&families.plan_request_bytes, float(request_bytes));
        families.plans.get_or_create(&Verdict { verdict }).inc();
        observe(&families.plan_actions, float(plan.actions().count()));
        match (&plan.workload, &plan.rollout) {
            (Some(workload), Some(rollout)) => families.rollouts.plan(workload, rollout),
            // One that was made from a cache that is behind is made again, and says nothing.
            (Some(workload), None) if plan.verdict() != v1::Verdict::Stale => {
                families.rollouts.not_planned(&workload.namespace, &workload.name);
            }
            _ => {}
        }
    }

    fn plan_failed(&self, took: Duration, code: tonic::Code) {
        let outcome = Outcome { outcome: "failed" };
        let duration = self.families().plan_duration.get_or_create(&outcome);
        observe(&duration, took.as_secs_f64());
        self.families()
            .plan_errors
            .get_or_create(&Code {
                code: code_name(code),
            })
            .inc();
    }

    fn replicas(&self, counts: &ReplicaCounts) {
        self.families().service.set_replicas(counts);
    }

    fn call(&self, method: Method, outcome: Fate) {
        let calls = &self.families().service.calls;
        let labels = Call {
            method: method.name(),
            outcome: outcome.name(),
        };
        calls.get_or_create(&labels).inc();
    }

    fn replica_evicted(&self, cause: Evicted) {
        let evictions = &self.families().service.evictions;
        evictions.get_or_create(&Cause { cause: cause.name() }).inc();
    }

    fn hedged(&self, outcome: Hedge) {
        let hedges = &self.families().service.hedges;
        let labels = service::Hedge {
            outcome: outcome.name(),
        };
        hedges.get_or_create(&labels).inc();
    }

    fn planned_elsewhere(&self) {
        self.families().service.elsewhere.inc();
    }
}

/// One piece of work under way; ends when dropped.
#[derive(Debug)]
pub struct WorkTimer {
    metrics: Metrics,
    id: u64,
    began: Instant,
}

impl Drop for WorkTimer {
    fn drop(&mut self) {
        let queue = &self.metrics.families().queue;
        queue.ended(self.id);
        observe(
            &queue.worked.get_or_create(&QUEUE),
            self.began.elapsed().as_secs_f64(),
        );
    }
}

const ALL_VERDICTS: [&str; 5] = ["apply", "status_only", "stale", "noop", "unknown"];

fn verdict_name(verdict: v1::Verdict) -> &'static str {
    match verdict {
        v1::Verdict::Apply => "apply",
        v1::Verdict::StatusOnly => "status_only",
        v1::Verdict::Stale => "stale",
        v1::Verdict::Noop => "noop",
        v1::Verdict::Unspecified => "unknown",
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Counts beyond 2^53 do not occur.
#[allow(clippy::cast_precision_loss)]
fn float(count: usize) -> f64 {
    count as f64
}
