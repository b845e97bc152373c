//! The metric families themselves: their labels, buckets, names and help.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Instant,
};

use nodewise_telemetry::metrics::{Histogram, Histograms, register_process};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::exponential_buckets},
    registry::Registry,
};

use super::{QUEUE_NAME, rollout::Rollouts, service::Service, watches::Watches};
use crate::{actuator::WRITER, event::Resource};

type Seconds = Gauge<f64, AtomicU64>;

/// Everything that is counted.
pub(super) struct Families {
    pub(super) queue: Queue,
    pub(super) leader: Family<Name, Gauge>,
    pub(super) slow_paths: Family<Name, Counter>,
    pub(super) stale_syncs: Family<GroupResource, Counter>,
    pub(super) plans: Family<Verdict, Counter>,
    pub(super) plan_errors: Family<Code, Counter>,
    pub(super) plan_duration: Histograms<Outcome>,
    pub(super) plan_request_bytes: Histogram,
    pub(super) plan_actions: Histogram,
    pub(super) actions: Family<ActionLabels, Counter>,
    pub(super) batches: Counter,
    pub(super) batch_actions: Histogram,
    pub(super) api_calls: Histograms<ApiCall>,
    pub(super) expectations: Family<OfWorkload, Gauge>,
    pub(super) expectations_expired: Counter,
    pub(super) rollouts: Rollouts,
    pub(super) watches: Watches,
    pub(super) events: Family<Fate, Counter>,
    pub(super) unreadable: Family<GroupResource, Counter>,
    pub(super) plan_violations: Counter,
    pub(super) cut: Family<GroupResource, Counter>,
    pub(super) reconciles: Histograms<Outcome>,
    pub(super) failures: Family<Workload, Gauge>,
    pub(super) divergence: Family<Workload, Gauge>,
    pub(super) other_owner: Family<OtherWrite, Counter>,
    pub(super) foreign_deletes: Family<Workload, Counter>,
    pub(super) service: Service,
}

/// The metrics of the work queue.
pub(super) struct Queue {
    pub(super) depth: Family<Name, Gauge>,
    pub(super) adds: Family<Name, Counter>,
    pub(super) waited: Histograms<Name>,
    pub(super) worked: Histograms<Name>,
    pub(super) unfinished: Family<Name, Seconds>,
    pub(super) longest: Family<Name, Seconds>,
    pub(super) retries: Family<Name, Counter>,
    /// When each piece of work that is under way began.
    running: Mutex<HashMap<u64, Instant>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Name {
    name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct GroupResource {
    group: &'static str,
    resource: &'static str,
}

impl GroupResource {
    pub(super) fn of(resource: Resource) -> Self {
        Self {
            group: resource.group(),
            resource: resource.plural(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Verdict {
    pub(super) verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Code {
    pub(super) code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Fate {
    pub(super) fate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ActionLabels {
    pub(super) action: &'static str,
    pub(super) reason: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ApiCall {
    pub(super) verb: &'static str,
    pub(super) resource: &'static str,
    pub(super) code: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfWorkload {
    namespace: String,
    name: String,
    state: &'static str,
}

impl OfWorkload {
    pub(super) fn new(namespace: &str, name: &str, state: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            state,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Workload {
    namespace: String,
    name: String,
}

impl Workload {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// `max_unavailable` or `max_surge` of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfBudget {
    namespace: String,
    name: String,
    budget: &'static str,
}

impl OfBudget {
    pub(super) fn new(namespace: &str, name: &str, budget: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            budget,
        }
    }
}

/// What another controller wrote of a workload: `pod` or `status`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OtherWrite {
    namespace: String,
    name: String,
    write: &'static str,
}

impl OtherWrite {
    pub(super) fn of(namespace: &str, name: &str, write: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            write,
        }
    }
}

pub(super) const QUEUE: Name = Name { name: QUEUE_NAME };
pub(super) const ELECTION: Name = Name { name: WRITER };

/// Ten buckets from 10 ns, factor 10 (M-42).
fn queue_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 10))
}

/// From 1 ms to 16 s.
fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// Up to some more than the largest usual burst.
fn action_buckets() -> Histogram {
    let bounds = [0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0];
    Histogram::new(bounds.into_iter())
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

impl Default for Families {
    fn default() -> Self {
        Self {
            queue: Queue::default(),
            leader: Family::default(),
            slow_paths: Family::default(),
            stale_syncs: Family::default(),
            plans: Family::default(),
            plan_errors: Family::default(),
            plan_duration: Family::new_with_constructor(call_buckets),
            plan_request_bytes: Histogram::new(exponential_buckets(1_024.0, 4.0, 9)),
            plan_actions: action_buckets(),
            actions: Family::default(),
            batches: Counter::default(),
            batch_actions: action_buckets(),
            api_calls: Family::new_with_constructor(call_buckets),
            expectations: Family::default(),
            expectations_expired: Counter::default(),
            rollouts: Rollouts::default(),
            watches: Watches::default(),
            events: Family::default(),
            unreadable: Family::default(),
            plan_violations: Counter::default(),
            cut: Family::default(),
            reconciles: Family::new_with_constructor(call_buckets),
            failures: Family::default(),
            divergence: Family::default(),
            other_owner: Family::default(),
            foreign_deletes: Family::default(),
            service: Service::default(),
        }
    }
}

impl Families {
    /// A registry that shows all of them.
    pub(super) fn register(&self) -> Registry {
        let mut registry = Registry::default();
        self.queue
            .register(registry.sub_registry_with_prefix("workqueue"));
        registry.register(
            "leader_election_master_status",
            "1 while this process leads, 0 while another one does; not there in mode observe",
            self.leader.clone(),
        );
        let help = "Renewals that had to read the lease first";
        registry.register("leader_election_slowpath", help, self.slow_paths.clone());
        let help = "Reconciles put off because a cache was older than our own writes";
        registry.register(
            "daemonset_controller_stale_sync_skips",
            help,
            self.stale_syncs.clone(),
        );
        let own = registry.sub_registry_with_prefix("nodewise");
        own.register(
            "plans",
            "Plans answered, by verdict: apply, status_only, stale, noop",
            self.plans.clone(),
        );
        own.register(
            "plan_errors",
            "Failed calls for a plan, by gRPC status code",
            self.plan_errors.clone(),
        );
        own.register(
            "plan_duration_seconds",
            "Calls for a plan, by verdict, or failed",
            self.plan_duration.clone(),
        );
        own.register(
            "plan_request_bytes",
            "Size of a request for a plan",
            self.plan_request_bytes.clone(),
        );
        own.register("plan_actions", "Actions of a plan", self.plan_actions.clone());
        own.register(
            "actions",
            "Actions of plans that were applied, by kind, reason and result, as the contract names them",
            self.actions.clone(),
        );
        own.register(
            "batches",
            "Batches of which at least one action was attempted",
            self.batches.clone(),
        );
        own.register(
            "batch_actions",
            "Actions of a batch of which at least one was attempted",
            self.batch_actions.clone(),
        );
        own.register(
            "api_call_duration_seconds",
            "Calls to the apiserver that plans led to, by verb, resource and HTTP status; code 0 without an answer",
            self.api_calls.clone(),
        );
        let help = "Creates and deletes of a workload not yet seen in a watch; state is create or delete";
        own.register("expectations", help, self.expectations.clone());
        own.register(
            "expectations_expired",
            "Creates and deletes that no watch showed within five minutes, so that nobody waits for them any more",
            self.expectations_expired.clone(),
        );
        own.register(
            "events",
            "Kubernetes Events by what became of them: created, patched, filtered, dropped, failed",
            self.events.clone(),
        );
        own.register(
            "unreadable_objects",
            "Objects passed over since what the apiserver served cannot be read",
            self.unreadable.clone(),
        );
        own.register(
            "plan_violations",
            "Plans of which nothing was written, since they were not for the workload that was asked about or named what is not its own",
            self.plan_violations.clone(),
        );
        own.register(
            "cut_objects",
            "Nodes and pods that came or changed and have more labels that DaemonSets may read than are sent",
            self.cut.clone(),
        );
        self.register_reconciles(own);
        self.rollouts.register(own);
        self.watches.register(own);
        self.service.register(own);
        register_process(&mut registry);
        registry
    }

    fn register_reconciles(&self, own: &mut Registry) {
        own.register(
            "reconcile_duration_seconds",
            "Reconciles, from the queue to their end: settled, failed, behind our own writes, or the service was unreachable",
            self.reconciles.clone(),
        );
        own.register(
            "reconcile_failures",
            "Reconciles of a workload that failed in a row; not there when the last one went well",
            self.failures.clone(),
        );
        own.register(
            "divergence",
            "In mode observe: actions of a workload that the other controller has not done for 30 s; not there while both agree",
            self.divergence.clone(),
        );
        own.register(
            "other_owner_writes",
            "In mode own: pods of a workload that another controller created (pod), and writes of its status by another one (status)",
            self.other_owner.clone(),
        );
        own.register(
            "foreign_pod_deletes",
            "In mode own: live pods of a workload that somebody else deleted",
            self.foreign_deletes.clone(),
        );
    }
}

impl Queue {
    fn register(&self, registry: &mut Registry) {
        registry.register("depth", "Keys that wait", self.depth.clone());
        registry.register("adds", "Keys added", self.adds.clone());
        registry.register(
            "queue_duration_seconds",
            "How long a key waits",
            self.waited.clone(),
        );
        registry.register(
            "work_duration_seconds",
            "How long a key is worked on",
            self.worked.clone(),
        );
        registry.register(
            "unfinished_work_seconds",
            "Age of all work under way, summed",
            self.unfinished.clone(),
        );
        let help = "Age of the oldest work under way";
        registry.register("longest_running_processor_seconds", help, self.longest.clone());
        registry.register("retries", "Delayed adds", self.retries.clone());
    }

    /// Notes that work began, and gives it a number.
    pub(super) fn began(&self, now: Instant) -> u64 {
        let mut running = self.running();
        let id = running.keys().max().map_or(0, |last| last + 1);
        running.insert(id, now);
        id
    }

    /// Notes that work ended.
    pub(super) fn ended(&self, id: u64) {
        self.running().remove(&id);
    }

    /// Brings the ages of work under way up to date.
    pub(super) fn observe_running(&self) {
        let ages: Vec<f64> = self
            .running()
            .values()
            .map(|began| began.elapsed().as_secs_f64())
            .collect();
        self.unfinished
            .get_or_create(&QUEUE)
            .set(ages.iter().fold(0.0, |sum, age| sum + age));
        self.longest
            .get_or_create(&QUEUE)
            .set(ages.into_iter().fold(0.0, f64::max));
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
