//! The Prometheus metrics of the executor.
//!
//! Work-queue and leader-election metrics have the names and labels of Kubernetes controllers, so that existing
//! dashboards work. All other metrics start with `nodewise_`. Durations are in seconds.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use nodewise_client::{Evicted, Fate, Hedge, Method, Observer, ReplicaCounts};
use nodewise_projection::{Key, RolloutPolicy, Workload};
use nodewise_proto::{v1, workload};
use nodewise_runtime::{
    Resource,
    apply::Applied,
    lead::LEASE_NAME,
    metrics::GroupResource,
    store::{Change, Stalled},
};
use nodewise_telemetry::{grpc::code_name, metrics::observe};
use prometheus_client::{encoding::text, registry::Registry};

use crate::divergence::Divergences;

mod blocked;
mod families;
mod labels;
mod measurements;
mod policies;
mod rollout;
mod service;
#[cfg(test)]
mod tests;

use families::Families;
use labels::{ActionLabels, Code, OfKind, OtherWriteLabels, Outcome, StateLabels, Verdict, WorkloadLabels};
use service::{Call, Cause};

/// Label values for the writes of another controller.
pub(crate) const OTHER_WRITES: [&str; 2] = ["pod", "status"];

const EXPECTATION_STATES: [&str; 2] = ["create", "delete"];

/// A handle on all metrics of this executor. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

struct Inner {
    registry: Registry,
    runtime: nodewise_runtime::Metrics,
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
    /// Creates all metrics, at zero.
    #[must_use]
    pub fn new() -> Self {
        let families = Families::default();
        // Created at the start, so that the first increment shows as a change.
        for kind in workload::KINDS {
            for outcome in ["settled", "failed", "behind", "unreachable"] {
                drop(families.reconciles.get_or_create(&Outcome { kind, outcome }));
            }
            let of = OfKind { kind };
            for counters in [
                &families.batches,
                &families.expectations_expired,
                &families.plan_violations,
            ] {
                drop(counters.get_or_create(&of));
            }
        }
        let runtime = nodewise_runtime::Metrics::new(LEASE_NAME);
        let mut registry = Registry::default();
        runtime.register(&mut registry);
        families.register(&mut registry);
        Self {
            inner: Arc::new(Inner {
                registry,
                runtime,
                families,
                divergences: Divergences::default(),
            }),
        }
    }

    /// The metrics of the work queue, the election, calls to the apiserver, Events and watches.
    #[must_use]
    pub fn runtime(&self) -> &nodewise_runtime::Metrics {
        &self.inner.runtime
    }

    fn families(&self) -> &Families {
        &self.inner.families
    }

    /// The text of a scrape (OpenMetrics 1.0).
    #[must_use]
    pub fn encode(&self) -> String {
        self.inner.runtime.refresh();
        self.families().rollouts.observe_ages(Instant::now());
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut text, &self.inner.registry);
        text
    }

    /// Counts a reconcile of a workload of this kind that waits because the cache of `resource` is older than the executor's
    /// own writes.
    pub fn stale_sync(&self, kind: &str, resource: Resource) {
        let kinds = workload::KINDS.into_iter().zip(&self.families().stale_syncs);
        let mut families = kinds.filter(|(known, _)| *known == kind);
        if let Some((_, family)) = families.next() {
            family.get_or_create(&GroupResource::of(resource)).inc();
        }
    }

    /// Records the relative ages of pods that a ReplicaSet's plan chose to delete.
    pub fn deletion_age_ratios(&self, ratios: &[f64]) {
        for ratio in ratios {
            observe(&self.families().deletion_age_ratios, *ratio);
        }
    }

    /// Counts a plan for this kind of workload that was refused because it breaks rule W15.
    pub fn plan_violation(&self, kind: &'static str) {
        let violations = &self.families().plan_violations;
        violations.get_or_create(&OfKind { kind }).inc();
    }

    /// Counts objects that came or changed and of which not all labels and taints are sent.
    pub fn cut(&self, resource: Resource, count: u64) {
        let labels = GroupResource::of(resource);
        self.families().cut.get_or_create(&labels).inc_by(count);
    }

    /// Counts a plan for this kind of workload that was applied, and its outcomes.
    pub fn applied(&self, kind: &'static str, plan: &v1::Plan, applied: &Applied) {
        let (families, of) = (self.families(), OfKind { kind });
        let results: HashMap<u32, v1::Result> = applied
            .outcomes
            .iter()
            .map(|outcome| (outcome.action_id, outcome.result()))
            .collect();
        families.batches.get_or_create(&of).inc_by(applied.batches.into());
        let batches = plan.phases.iter().flat_map(|phase| &phase.batches);
        let attempted = |batch: &&v1::Batch| {
            let ids = batch.actions.iter().map(|action| action.id);
            let mut results = ids.filter_map(|id| results.get(&id));
            results.any(|result| *result != v1::Result::Skipped)
        };
        for batch in batches.filter(attempted) {
            let sizes = families.batch_actions.get_or_create(&of);
            observe(&sizes, float(batch.actions.len()));
        }
        for action in plan.actions() {
            let result = results
                .get(&action.id)
                .copied()
                .unwrap_or(v1::Result::Unspecified);
            let labels = ActionLabels {
                kind,
                action: action.kind_name(),
                reason: action.reason().as_str_name().trim_start_matches("REASON_"),
                result: result.as_str_name().trim_start_matches("RESULT_"),
            };
            families.actions.get_or_create(&labels).inc();
        }
    }

    /// Updates the rollout metrics from a workload's status.
    pub fn workload_status(&self, workload: &Workload) {
        self.families().rollouts.status(workload, Instant::now());
    }

    /// Records a workload that is new to this executor. If its rollout is not complete, `stalled` says for how long it
    /// made no progress.
    pub(crate) fn rollout_found(&self, key: &Key, stalled: impl FnOnce() -> Stalled) {
        self.families().rollouts.found(key, Instant::now(), stalled);
    }

    /// Sets the numbers of blocked nodes or pods of a workload, by reason, and whether they hold up its rollout.
    pub(crate) fn blocked(&self, key: &Key, blocked: &[(String, u32)], is_stuck: bool) {
        self.families().blocked.set(key, blocked);
        self.families().blocked.set_stuck(key, is_stuck);
    }

    /// Updates the metrics of a RolloutPolicy that came, changed or is gone.
    pub(crate) fn policy_changed(&self, change: &Change<Arc<RolloutPolicy>>) {
        let policies = &self.families().policies;
        match change {
            Change { new: Some(new), .. } => policies.set(new),
            Change { old: Some(old), .. } => policies.remove(old),
            Change { old: None, new: None } => {}
        }
    }

    /// Counts creates and deletes for this kind of workload that were not seen before their expectations expired.
    pub fn expectations_expired(&self, kind: &'static str, count: usize) {
        let expired = &self.families().expectations_expired;
        expired.get_or_create(&OfKind { kind }).inc_by(count as u64);
    }

    /// Sets the number of creates and deletes of a workload that no watch has shown yet. A workload has no series before the first of
    /// them: of thousands of ReplicaSets, most never create or delete a pod again.
    pub fn expectations(&self, key: &Key, creates: usize, deletes: usize) {
        let series = &self.families().expectations;
        for (state, count) in EXPECTATION_STATES.into_iter().zip([creates, deletes]) {
            let labels = StateLabels::of(key, state);
            if count > 0 || series.get(&labels).is_some() {
                series.get_or_create(&labels).set(gauge(count));
            }
        }
    }

    /// Removes the series of a workload that is gone.
    pub fn forget_workload(&self, key: &Key) {
        for state in EXPECTATION_STATES {
            self.families().expectations.remove(&StateLabels::of(key, state));
        }
        self.families().rollouts.forget(key);
        self.blocked(key, &[], false);
        let workload = WorkloadLabels::of(key);
        self.families().failures.remove(&workload);
        self.families().divergence.remove(&workload);
        self.families().foreign_deletes.remove(&workload);
        for write in OTHER_WRITES {
            self.families()
                .other_owner
                .remove(&OtherWriteLabels::of(key, write));
        }
        self.inner.divergences.forget(key);
    }

    /// Counts a write of another controller: a pod of the workload, or its status.
    pub(crate) fn other_owner(&self, key: &Key, write: &'static str) {
        let labels = OtherWriteLabels::of(key, write);
        self.families().other_owner.get_or_create(&labels).inc();
    }

    /// Counts live pods of a workload that somebody else deleted.
    pub(crate) fn foreign_pod_deletes(&self, key: &Key, count: u64) {
        let workload = WorkloadLabels::of(key);
        self.families()
            .foreign_deletes
            .get_or_create(&workload)
            .inc_by(count);
    }

    /// Records a plan for a workload that is only observed. Returns the delay after which to reconcile it again even if
    /// no event comes.
    pub fn observed(&self, key: &Key, plan: &v1::Plan) -> Option<Duration> {
        let now = tokio::time::Instant::now();
        let again = self.inner.divergences.record(key, plan, now);
        let workload = WorkloadLabels::of(key);
        let count = self.inner.divergences.count(key, now);
        if count == 0 {
            self.families().divergence.remove(&workload);
        } else {
            let gauge_of = self.families().divergence.get_or_create(&workload);
            gauge_of.set(gauge(count));
        }
        again
    }

    /// A report, for people, about what the observed controller has not done.
    #[must_use]
    pub fn divergence_report(&self) -> String {
        self.inner.divergences.report(tokio::time::Instant::now())
    }

    /// Counts a reconcile of a workload that ended: `settled`, `failed`, `behind` or `unreachable`.
    pub fn reconciled(&self, key: &Key, outcome: &'static str, took: Duration) {
        let families = self.families();
        let kind = key.kind;
        let reconciles = families.reconciles.get_or_create(&Outcome { kind, outcome });
        observe(&reconciles, took.as_secs_f64());
        let workload = WorkloadLabels::of(key);
        match outcome {
            "failed" => _ = families.failures.get_or_create(&workload).inc(),
            "settled" => _ = families.failures.remove(&workload),
            // The reconcile did not get as far as a plan.
            _ => {}
        }
    }

    /// Counts a measurement for a RolloutPolicy that this provider made.
    pub(crate) fn measured(&self, provider: &'static str, result: &v1::measurement::Result) {
        self.families().measurements.count(provider, result);
    }

    /// Removes the series of all workloads and watches: the work ended, and another executor may continue it.
    pub fn forget_everything(&self) {
        let families = self.families();
        families.expectations.clear();
        families.failures.clear();
        families.foreign_deletes.clear();
        families.divergence.clear();
        families.other_owner.clear();
        families.rollouts.forget_all();
        families.blocked.forget_all();
        families.policies.forget_all();
        self.inner.divergences.forget_all();
        self.inner.runtime.forget_watches();
    }

    /// Number of plans received so far.
    #[must_use]
    pub fn plans(&self) -> u64 {
        let plans = &self.families().plans;
        let count = |kind, verdict| {
            plans
                .get(&Verdict { kind, verdict })
                .map_or(0, |plans| plans.get())
        };
        let of_kind = |kind| ALL_VERDICTS.into_iter().map(move |verdict| count(kind, verdict));
        workload::KINDS.into_iter().flat_map(of_kind).sum()
    }

    /// Counts what a plan for this workload says about its rollout. The plan must have been checked: it comes from the service.
    pub(crate) fn planned(&self, key: &Key, plan: &v1::Plan) {
        let rollouts = &self.families().rollouts;
        match &plan.rollout {
            Some(rollout) => rollouts.plan(key, rollout),
            // A stale plan is made again and says nothing about the rollout.
            None if plan.verdict() == v1::Verdict::Stale => {}
            None => rollouts.not_planned(key),
        }
    }

    /// Number of batches applied so far.
    #[must_use]
    pub fn batches(&self) -> u64 {
        let batches = &self.families().batches;
        let count = |kind| batches.get_or_create(&OfKind { kind }).get();
        workload::KINDS.into_iter().map(count).sum()
    }
}

impl Observer for Metrics {
    fn plan_answered(&self, kind: &'static str, took: Duration, request_bytes: usize, plan: &v1::Plan) {
        let (families, of) = (self.families(), OfKind { kind });
        let verdict = verdict_name(plan.verdict());
        let outcome = Outcome {
            kind,
            outcome: verdict,
        };
        for (histograms, value) in [
            (&families.plan_request_bytes, float(request_bytes)),
            (&families.plan_actions, float(plan.actions().count())),
        ] {
            observe(&histograms.get_or_create(&of), value);
        }
        observe(
            &families.plan_duration.get_or_create(&outcome),
            took.as_secs_f64(),
        );
        families.plans.get_or_create(&Verdict { kind, verdict }).inc();
    }

    fn plan_failed(&self, kind: &'static str, took: Duration, code: tonic::Code) {
        let outcome = Outcome {
            kind,
            outcome: "failed",
        };
        let durations = &self.families().plan_duration;
        observe(&durations.get_or_create(&outcome), took.as_secs_f64());
        let code = code_name(code);
        let errors = &self.families().plan_errors;
        errors.get_or_create(&Code { kind, code }).inc();
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

/// Converts a count; counts beyond 2^53 do not occur.
#[allow(clippy::cast_precision_loss)]
fn float(count: usize) -> f64 {
    count as f64
}
