//! The metric families: their histogram buckets, names and help texts.

use nodewise_proto::workload::KINDS;
use nodewise_runtime::metrics::GroupResource;
use nodewise_telemetry::metrics::{Histogram, Histograms, register_process};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::exponential_buckets},
    registry::Registry,
};

use super::{
    blocked::Blocked,
    labels::{ActionLabels, Code, OfKind, OtherWriteLabels, Outcome, StateLabels, Verdict, WorkloadLabels},
    measurements::Measurements,
    policies::Policies,
    rollout::Rollouts,
    service::Service,
};

/// All metric families of the executor.
pub(super) struct Families {
    /// By kind of workload, as in [`KINDS`].
    pub(super) stale_syncs: [Family<GroupResource, Counter>; KINDS.len()],
    pub(super) deletion_age_ratios: Histogram,
    pub(super) plans: Family<Verdict, Counter>,
    pub(super) plan_errors: Family<Code, Counter>,
    pub(super) plan_duration: Histograms<Outcome>,
    pub(super) plan_request_bytes: Histograms<OfKind>,
    pub(super) plan_actions: Histograms<OfKind>,
    pub(super) actions: Family<ActionLabels, Counter>,
    pub(super) batches: Family<OfKind, Counter>,
    pub(super) batch_actions: Histograms<OfKind>,
    pub(super) expectations: Family<StateLabels, Gauge>,
    pub(super) expectations_expired: Family<OfKind, Counter>,
    pub(super) rollouts: Rollouts,
    pub(super) blocked: Blocked,
    pub(super) policies: Policies,
    pub(super) plan_violations: Family<OfKind, Counter>,
    pub(super) cut: Family<GroupResource, Counter>,
    pub(super) reconciles: Histograms<Outcome>,
    pub(super) failures: Family<WorkloadLabels, Gauge>,
    pub(super) divergence: Family<WorkloadLabels, Gauge>,
    pub(super) other_owner: Family<OtherWriteLabels, Counter>,
    pub(super) foreign_deletes: Family<WorkloadLabels, Counter>,
    pub(super) measurements: Measurements,
    pub(super) service: Service,
}

/// Buckets from 1 ms to 16 s.
fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// Buckets from 1 KiB to 64 MiB.
fn size_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1_024.0, 4.0, 9))
}

/// Buckets up to somewhat more than the largest usual burst.
fn action_buckets() -> Histogram {
    let bounds = [0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0];
    Histogram::new(bounds.into_iter())
}

impl Default for Families {
    fn default() -> Self {
        Self {
            stale_syncs: KINDS.map(|_| Family::default()),
            deletion_age_ratios: Histogram::new(exponential_buckets(0.25, 2.0, 6)),
            plans: Family::default(),
            plan_errors: Family::default(),
            plan_duration: Family::new_with_constructor(call_buckets),
            plan_request_bytes: Family::new_with_constructor(size_buckets),
            plan_actions: Family::new_with_constructor(action_buckets),
            actions: Family::default(),
            batches: Family::default(),
            batch_actions: Family::new_with_constructor(action_buckets),
            expectations: Family::default(),
            expectations_expired: Family::default(),
            rollouts: Rollouts::default(),
            blocked: Blocked::default(),
            policies: Policies::default(),
            plan_violations: Family::default(),
            cut: Family::default(),
            reconciles: Family::new_with_constructor(call_buckets),
            failures: Family::default(),
            divergence: Family::default(),
            other_owner: Family::default(),
            foreign_deletes: Family::default(),
            measurements: Measurements::default(),
            service: Service::default(),
        }
    }
}

impl Families {
    /// Registers all families.
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Reconciles delayed because a cache did not show this executor's own last writes yet";
        for (kind, stale_syncs) in KINDS.into_iter().zip(&self.stale_syncs) {
            // The names of the built-in controllers.
            let name = format!("{}_controller_stale_sync_skips", kind.to_lowercase());
            registry.register(name, help, stale_syncs.clone());
        }
        // The name and the buckets of the built-in controller.
        registry.register(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Age of a ready pod that a scale-down chose to delete, divided by the age of the youngest ready pod",
            self.deletion_age_ratios.clone(),
        );
        let own = registry.sub_registry_with_prefix("nodewise");
        own.register(
            "plans",
            "Plans received, by verdict: apply, status_only, stale, noop",
            self.plans.clone(),
        );
        own.register(
            "plan_errors",
            "Failed plan requests, by gRPC status code",
            self.plan_errors.clone(),
        );
        own.register(
            "plan_duration_seconds",
            "Duration of plan requests, by outcome: the verdict of the plan, or failed",
            self.plan_duration.clone(),
        );
        own.register(
            "plan_request_bytes",
            "Size of plan requests",
            self.plan_request_bytes.clone(),
        );
        own.register(
            "plan_actions",
            "Number of actions in a plan",
            self.plan_actions.clone(),
        );
        own.register(
            "actions",
            "Actions of applied plans, by action, reason and result; the values are those of the protocol",
            self.actions.clone(),
        );
        own.register(
            "batches",
            "Batches of which at least one action was attempted",
            self.batches.clone(),
        );
        own.register(
            "batch_actions",
            "Number of actions in a batch of which at least one was attempted",
            self.batch_actions.clone(),
        );
        let help = "Creates and deletes of a workload that no watch has shown yet, by state: create, delete. The series exist from the workload's first create or delete on";
        own.register("expectations", help, self.expectations.clone());
        own.register(
            "expectations_expired",
            "Creates and deletes that no watch showed within five minutes; the executor stopped waiting for them",
            self.expectations_expired.clone(),
        );
        own.register(
            "plan_violations",
            "Plans that were refused, with nothing written, because they broke a rule (docs/writing-an-executor.md, W15)",
            self.plan_violations.clone(),
        );
        own.register(
            "cut_objects",
            "Added or changed nodes and pods of which some labels that workloads name are not sent, because there are too many",
            self.cut.clone(),
        );
        self.register_reconciles(own);
        self.rollouts.register(own);
        self.blocked.register(own);
        self.policies.register(own);
        self.measurements.register(own);
        self.service.register(own);
        register_process(registry);
    }

    fn register_reconciles(&self, own: &mut Registry) {
        own.register(
            "reconcile_duration_seconds",
            "Duration of reconciles, by outcome: settled, failed, behind (a cache did not show the executor's own writes yet), \
             unreachable (no replica of the service answered)",
            self.reconciles.clone(),
        );
        own.register(
            "reconcile_failures",
            "Number of reconciles of a workload that failed in a row; absent if the last one succeeded",
            self.failures.clone(),
        );
        own.register(
            "divergence",
            "In mode observe: actions of a workload that the other controller has not done for 30 s; absent while both agree",
            self.divergence.clone(),
        );
        own.register(
            "other_owner_writes",
            "In mode own: writes of another controller, by what it wrote: pod (it created a pod of the workload), status (it wrote the status)",
            self.other_owner.clone(),
        );
        own.register(
            "foreign_pod_deletes",
            "In mode own: live pods of a workload that another client deleted",
            self.foreign_deletes.clone(),
        );
    }
}
