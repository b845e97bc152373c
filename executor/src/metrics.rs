//! What Prometheus is told.
//!
//! Work-queue and leader-election metrics carry the names and labels that controllers have always had, so that existing
//! dashboards work; everything of our own starts with `nodewise_`. Durations are in seconds.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::{Duration, Instant},
};

use nodewise_proto::v1;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::{
    actuator::WRITER,
    apply::{self, Applied},
    event::Resource,
};

/// The queue's name in the `workqueue_*` metrics.
pub const QUEUE_NAME: &str = "daemonset";

type Seconds = Gauge<f64, AtomicU64>;

/// A handle on all metrics of this executor. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    registry: Registry,
    queue: Queue,
    leader: Family<Name, Gauge>,
    slow_paths: Family<Name, Counter>,
    stale_syncs: Family<GroupResource, Counter>,
    plan: Plans,
    actions: Family<ActionLabels, Counter>,
    batches: Counter,
    api_calls: ApiCalls,
    expectations: Family<WorkloadDetail, Gauge>,
    rollouts: Family<WorkloadDetail, Gauge>,
    events: Family<Detail, Counter>,
}

struct ApiCalls(Family<CallLabels, Histogram, fn() -> Histogram>);

struct Queue {
    depth: Family<Name, Gauge>,
    adds: Family<Name, Counter>,
    waited: Family<Name, Histogram, fn() -> Histogram>,
    worked: Family<Name, Histogram, fn() -> Histogram>,
    unfinished: Family<Name, Seconds>,
    longest: Family<Name, Seconds>,
    retries: Family<Name, Counter>,
    /// When each piece of work that is under way began.
    running: Mutex<HashMap<u64, Instant>>,
}

struct Plans {
    answers: Family<Detail, Counter>,
    errors: Family<Detail, Counter>,
    duration: Histogram,
    request_bytes: Histogram,
    actions: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GroupResource {
    group: &'static str,
    resource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Detail {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
    reason: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    verb: &'static str,
    resource: &'static str,
    code: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkloadDetail {
    namespace: String,
    name: String,
    kind: &'static str,
}

impl WorkloadDetail {
    fn new(namespace: &str, name: &str, kind: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind,
        }
    }
}

const QUEUE: Name = Name { name: QUEUE_NAME };
const ELECTION: Name = Name { name: WRITER };
const EXPECTATION_KINDS: [&str; 2] = ["create", "delete"];
const ROLLOUT_KINDS: [&str; 4] = ["desired", "outdated", "unavailable", "surging"];

/// Ten buckets from 10 ns, factor 10 (M-42).
fn queue_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 10))
}

/// From 1 ms to 16 s.
fn call_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Default for ApiCalls {
    fn default() -> Self {
        Self(Family::new_with_constructor(call_buckets))
    }
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

impl Default for Plans {
    fn default() -> Self {
        Self {
            answers: Family::default(),
            errors: Family::default(),
            duration: call_buckets(),
            request_bytes: Histogram::new(exponential_buckets(1_024.0, 4.0, 9)),
            actions: Histogram::new([0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0]),
        }
    }
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
        let mut inner = Inner::default();
        inner.register();
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The text that a scrape gets (OpenMetrics 1.0).
    #[must_use]
    pub fn encode(&self) -> String {
        self.inner.queue.observe_running();
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = text::encode(&mut text, &self.inner.registry);
        text
    }

    /// A key was added to the queue and `depth` keys wait now.
    pub fn queue_added(&self, depth: usize) {
        self.inner.queue.adds.get_or_create(&QUEUE).inc();
        self.queue_depth(depth);
    }

    /// `depth` keys wait now.
    pub fn queue_depth(&self, depth: usize) {
        self.inner.queue.depth.get_or_create(&QUEUE).set(gauge(depth));
    }

    /// A key will come back after a delay, for whatever reason.
    pub fn queue_retried(&self) {
        self.inner.queue.retries.get_or_create(&QUEUE).inc();
    }

    /// A worker took a key that had waited so long. The work ends when the answer is dropped.
    #[must_use]
    pub fn work_started(&self, waited: Duration) -> WorkTimer {
        self.inner
            .queue
            .waited
            .get_or_create(&QUEUE)
            .observe(waited.as_secs_f64());
        let (mut running, started) = (self.inner.queue.running(), Instant::now());
        let id = running.keys().max().map_or(0, |last| last + 1);
        running.insert(id, started);
        WorkTimer {
            metrics: self.clone(),
            id,
            started,
        }
    }

    /// Whether this process leads.
    pub fn set_leader(&self, leads: bool) {
        self.inner.leader.get_or_create(&ELECTION).set(leads.into());
    }

    /// The lease had to be read before it could be renewed.
    pub fn lease_slow_path(&self) {
        self.inner.slow_paths.get_or_create(&ELECTION).inc();
    }

    /// A reconcile was put off because the cache of `resource` is older than our own writes.
    pub fn stale_sync(&self, resource: Resource) {
        let labels = GroupResource {
            group: resource.group(),
            resource: resource.plural(),
        };
        self.inner.stale_syncs.get_or_create(&labels).inc();
    }

    /// The service answered a request of `request_bytes` bytes.
    pub fn plan_answered(&self, took: Duration, request_bytes: usize, plan: &v1::Plan) {
        let plans = &self.inner.plan;
        plans.duration.observe(took.as_secs_f64());
        plans.request_bytes.observe(float(request_bytes));
        plans
            .answers
            .get_or_create(&Detail {
                kind: verdict_name(plan.verdict()),
            })
            .inc();
        let actions = plan
            .phases
            .iter()
            .flat_map(|phase| &phase.batches)
            .map(|batch| batch.actions.len())
            .sum();
        plans.actions.observe(float(actions));
        if let (Some(workload), Some(rollout)) = (&plan.workload, &plan.rollout) {
            let counts = [
                rollout.desired,
                rollout.outdated,
                rollout.unavailable,
                rollout.surging,
            ];
            for (kind, count) in ROLLOUT_KINDS.into_iter().zip(counts) {
                let labels = WorkloadDetail::new(&workload.namespace, &workload.name, kind);
                self.inner.rollouts.get_or_create(&labels).set(count.into());
            }
        }
    }

    /// A call for a plan failed on one replica; `code` as in `Unavailable`.
    pub fn plan_failed(&self, took: Duration, code: tonic::Code) {
        self.inner.plan.duration.observe(took.as_secs_f64());
        self.inner
            .plan
            .errors
            .get_or_create(&Detail {
                kind: code_name(code),
            })
            .inc();
    }

    /// A plan was applied with these outcomes.
    pub fn applied(&self, plan: &v1::Plan, applied: &Applied) {
        self.inner.batches.inc_by(applied.batches.into());
        let results: HashMap<u32, v1::Result> = applied
            .outcomes
            .iter()
            .map(|outcome| (outcome.action_id, outcome.result()))
            .collect();
        for action in plan
            .phases
            .iter()
            .flat_map(|phase| &phase.batches)
            .flat_map(|batch| &batch.actions)
        {
            let result = results
                .get(&action.id)
                .copied()
                .unwrap_or(v1::Result::Unspecified);
            let labels = ActionLabels {
                action: apply::kind_name(action),
                reason: action.reason().as_str_name().trim_start_matches("REASON_"),
                result: result.as_str_name().trim_start_matches("RESULT_"),
            };
            self.inner.actions.get_or_create(&labels).inc();
        }
    }

    /// The apiserver answered a call; code 0 when it did not.
    pub fn api_call(&self, verb: &'static str, resource: &'static str, code: u16, took: Duration) {
        let labels = CallLabels {
            verb,
            resource,
            code: code.into(),
        };
        self.inner
            .api_calls
            .0
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// So many creates and deletes of a workload have not been seen in a watch yet.
    pub fn expectations(&self, namespace: &str, name: &str, creates: usize, deletes: usize) {
        for (kind, count) in EXPECTATION_KINDS.into_iter().zip([creates, deletes]) {
            let labels = WorkloadDetail::new(namespace, name, kind);
            self.inner.expectations.get_or_create(&labels).set(gauge(count));
        }
    }

    /// A workload is gone: nothing more is said about it.
    pub fn forget_workload(&self, namespace: &str, name: &str) {
        for kind in EXPECTATION_KINDS {
            self.inner
                .expectations
                .remove(&WorkloadDetail::new(namespace, name, kind));
        }
        for kind in ROLLOUT_KINDS {
            self.inner
                .rollouts
                .remove(&WorkloadDetail::new(namespace, name, kind));
        }
    }

    /// What became of a Kubernetes Event: `created`, `patched`, `filtered`, `dropped` or `failed`.
    pub fn event(&self, fate: &'static str) {
        self.inner.events.get_or_create(&Detail { kind: fate }).inc();
    }

    /// Plans answered so far.
    #[must_use]
    pub fn plans(&self) -> u64 {
        ALL_VERDICTS
            .iter()
            .map(|kind| self.inner.plan.answers.get_or_create(&Detail { kind }).get())
            .sum()
    }

    /// Batches applied so far.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.inner.batches.get()
    }
}

impl Inner {
    fn register(&mut self) {
        self.register_queue();
        let registry = &mut self.registry;
        registry.register(
            "leader_election_master_status",
            "1 while this process leads",
            self.leader.clone(),
        );
        registry.register(
            "leader_election_slowpath",
            "Renewals that had to read the lease first",
            self.slow_paths.clone(),
        );
        registry.register(
            "daemonset_controller_stale_sync_skips",
            "Reconciles put off because a cache was older than our own writes",
            self.stale_syncs.clone(),
        );
        registry.register(
            "nodewise_plans",
            "Plans answered, by verdict",
            self.plan.answers.clone(),
        );
        registry.register(
            "nodewise_plan_errors",
            "Failed calls for a plan, by gRPC code",
            self.plan.errors.clone(),
        );
        registry.register(
            "nodewise_plan_duration_seconds",
            "Calls for a plan",
            self.plan.duration.clone(),
        );
        registry.register(
            "nodewise_plan_request_bytes",
            "Size of a request",
            self.plan.request_bytes.clone(),
        );
        registry.register(
            "nodewise_plan_actions",
            "Actions of a plan",
            self.plan.actions.clone(),
        );
        registry.register(
            "nodewise_actions",
            "Actions by kind, reason and result",
            self.actions.clone(),
        );
        registry.register("nodewise_batches", "Batches applied", self.batches.clone());
        registry.register(
            "nodewise_api_call_duration_seconds",
            "Calls to the apiserver",
            self.api_calls.0.clone(),
        );
        registry.register(
            "nodewise_expectations",
            "Creates and deletes of a workload not yet seen in a watch",
            self.expectations.clone(),
        );
        registry.register(
            "nodewise_rollout_nodes",
            "Nodes of a workload by rollout state",
            self.rollouts.clone(),
        );
        registry.register(
            "nodewise_events",
            "Kubernetes Events by what became of them",
            self.events.clone(),
        );
    }

    fn register_queue(&mut self) {
        let (registry, queue) = (self.registry.sub_registry_with_prefix("workqueue"), &self.queue);
        registry.register("depth", "Keys that wait", queue.depth.clone());
        registry.register("adds", "Keys added", queue.adds.clone());
        registry.register(
            "queue_duration_seconds",
            "How long a key waits",
            queue.waited.clone(),
        );
        registry.register(
            "work_duration_seconds",
            "How long a key is worked on",
            queue.worked.clone(),
        );
        registry.register(
            "unfinished_work_seconds",
            "Age of all work under way, summed",
            queue.unfinished.clone(),
        );
        registry.register(
            "longest_running_processor_seconds",
            "Age of the oldest work under way",
            queue.longest.clone(),
        );
        registry.register("retries", "Delayed adds", queue.retries.clone());
    }
}

impl Queue {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe_running(&self) {
        let ages: Vec<f64> = self
            .running()
            .values()
            .map(|started| started.elapsed().as_secs_f64())
            .collect();
        self.unfinished
            .get_or_create(&QUEUE)
            .set(ages.iter().fold(0.0, |sum, age| sum + age));
        self.longest
            .get_or_create(&QUEUE)
            .set(ages.into_iter().fold(0.0, f64::max));
    }
}

/// One piece of work under way; ends when dropped.
#[derive(Debug)]
pub struct WorkTimer {
    metrics: Metrics,
    id: u64,
    started: Instant,
}

impl Drop for WorkTimer {
    fn drop(&mut self) {
        let queue = &self.metrics.inner.queue;
        queue.running().remove(&self.id);
        queue
            .worked
            .get_or_create(&QUEUE)
            .observe(self.started.elapsed().as_secs_f64());
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

fn code_name(code: tonic::Code) -> &'static str {
    match code {
        tonic::Code::Ok => "Ok",
        tonic::Code::Cancelled => "Cancelled",
        tonic::Code::Unknown => "Unknown",
        tonic::Code::InvalidArgument => "InvalidArgument",
        tonic::Code::DeadlineExceeded => "DeadlineExceeded",
        tonic::Code::NotFound => "NotFound",
        tonic::Code::AlreadyExists => "AlreadyExists",
        tonic::Code::PermissionDenied => "PermissionDenied",
        tonic::Code::ResourceExhausted => "ResourceExhausted",
        tonic::Code::FailedPrecondition => "FailedPrecondition",
        tonic::Code::Aborted => "Aborted",
        tonic::Code::OutOfRange => "OutOfRange",
        tonic::Code::Unimplemented => "Unimplemented",
        tonic::Code::Internal => "Internal",
        tonic::Code::Unavailable => "Unavailable",
        tonic::Code::DataLoss => "DataLoss",
        tonic::Code::Unauthenticated => "Unauthenticated",
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> v1::Plan {
        let action = v1::Action {
            id: 1,
            reason: v1::Reason::NodeWithoutPod.into(),
            kind: Some(v1::action::Kind::CreatePod(v1::CreatePod::default())),
            ..v1::Action::default()
        };
        let batch = v1::Batch {
            actions: vec![action],
            confirm_workload: false,
        };
        v1::Plan {
            verdict: v1::Verdict::Apply.into(),
            workload: Some(v1::WorkloadReference {
                name: "agent".into(),
                namespace: "a".into(),
                ..Default::default()
            }),
            phases: vec![v1::Phase {
                batches: vec![batch],
                ..v1::Phase::default()
            }],
            rollout: Some(v1::Rollout {
                desired: 7,
                outdated: 3,
                ..v1::Rollout::default()
            }),
            ..v1::Plan::default()
        }
    }

    // M-42, M-43, D-110: names and labels that dashboards rely on.
    #[test]
    fn well_known_names_are_exposed() {
        let metrics = Metrics::new();
        metrics.queue_added(3);
        metrics.queue_retried();
        drop(metrics.work_started(Duration::from_millis(5)));
        metrics.set_leader(true);
        metrics.lease_slow_path();
        metrics.stale_sync(Resource::Pods);
        let text = metrics.encode();
        for line in [
            "workqueue_depth{name=\"daemonset\"} 3",
            "workqueue_adds_total{name=\"daemonset\"} 1",
            "workqueue_retries_total{name=\"daemonset\"} 1",
            "workqueue_queue_duration_seconds_count{name=\"daemonset\"} 1",
            "workqueue_work_duration_seconds_count{name=\"daemonset\"} 1",
            "workqueue_unfinished_work_seconds{name=\"daemonset\"} 0.0",
            "workqueue_longest_running_processor_seconds{name=\"daemonset\"} 0.0",
            "leader_election_master_status{name=\"nodewise-executor\"} 1",
            "leader_election_slowpath_total{name=\"nodewise-executor\"} 1",
            "daemonset_controller_stale_sync_skips_total{group=\"\",resource=\"pods\"} 1",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "no line {line} in\n{text}"
            );
        }
    }

    #[test]
    fn work_under_way_ages_until_it_ends() {
        let metrics = Metrics::new();
        let (first, second) = (
            metrics.work_started(Duration::ZERO),
            metrics.work_started(Duration::ZERO),
        );
        assert!(
            !metrics
                .encode()
                .contains("workqueue_unfinished_work_seconds{name=\"daemonset\"} 0.0\n")
        );
        drop((first, second));
        assert!(
            metrics
                .encode()
                .contains("workqueue_unfinished_work_seconds{name=\"daemonset\"} 0.0\n")
        );
    }

    #[test]
    fn plans_and_actions_are_counted_and_forgotten_with_their_workload() {
        let metrics = Metrics::new();
        let plan = plan();
        metrics.plan_answered(Duration::from_millis(3), 2_000, &plan);
        metrics.plan_failed(Duration::from_millis(3), tonic::Code::Unavailable);
        let outcome = v1::Outcome {
            action_id: 1,
            result: v1::Result::Succeeded.into(),
            ..v1::Outcome::default()
        };
        metrics.applied(
            &plan,
            &Applied {
                outcomes: vec![outcome],
                batches: 1,
                ..Applied::default()
            },
        );
        metrics.expectations("a", "agent", 1, 0);
        let text = metrics.encode();
        for line in [
            "nodewise_plans_total{kind=\"apply\"} 1",
            "nodewise_plan_errors_total{kind=\"Unavailable\"} 1",
            "nodewise_actions_total{action=\"CreatePod\",reason=\"NODE_WITHOUT_POD\",result=\"SUCCEEDED\"} 1",
            "nodewise_rollout_nodes{namespace=\"a\",name=\"agent\",kind=\"outdated\"} 3",
            "nodewise_expectations{namespace=\"a\",name=\"agent\",kind=\"create\"} 1",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "no line {line} in\n{text}"
            );
        }
        assert_eq!((metrics.plans(), metrics.batches()), (1, 1));
        metrics.forget_workload("a", "agent");
        assert!(!metrics.encode().contains("agent"));
    }
}
