//! The manager with one controller, on a paused clock, with a scripted service, scripted events and a scripted apiserver.

use std::sync::atomic::{AtomicBool, Ordering};

use nodewise_client::{Method, ServiceError};
use nodewise_projection::{Pod, ProjectError, Workload, buckets::Placement};
use nodewise_proto::workload::HASH_LABEL;
use nodewise_runtime::effects::{Effects, Rules};
use nodewise_runtime::measurements::Subject;
use nodewise_runtime::store::{Change, Store, Transition};
use nodewise_runtime::{Delta, Resource};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::*;
use crate::daemon_set::{DAEMON_SETS, DaemonSets};
use crate::deployment::{DEPLOYMENTS, Deployments};
use crate::replica_set::{REPLICA_SETS, ReplicaSets};
use crate::testing::*;

mod fairness;

struct Running {
    events: mpsc::UnboundedSender<ClusterEvent>,
    service: Arc<ScriptedService>,
    actuator: Arc<ScriptedActuator>,
    stop: CancellationToken,
    end: JoinHandle<Result<(), ManagerError>>,
}

fn start(service: ScriptedService, actuator: ScriptedActuator, config: Config) -> Running {
    let (events, stream) = mpsc::unbounded_channel();
    let (service, actuator, stop) = (Arc::new(service), Arc::new(actuator), CancellationToken::new());
    let manager = Manager::new(config, Metrics::new(), stop.clone()).with::<DaemonSets>(
        controller::Config::default(),
        Arc::clone(&actuator),
        Arc::clone(&service),
    );
    Running {
        events,
        service,
        actuator,
        stop,
        end: tokio::spawn(manager.run(UnboundedReceiverStream::new(stream))),
    }
}

impl Running {
    fn send(&self, events: impl IntoIterator<Item = ClusterEvent>) {
        for event in events {
            self.events.send(event).expect("the controller listens");
        }
    }

    /// Advances the clock and runs everything that is due within this time.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until the service has received this many plan requests in total, and returns the time that took. Fails
    /// after a day.
    async fn until_asked(&self, plans: usize) -> Duration {
        let start = Instant::now();
        while self.service.plans_asked() < plans {
            assert!(
                start.elapsed() < Duration::from_hours(24),
                "asked {} times only",
                self.service.plans_asked()
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        start.elapsed()
    }

    async fn end(self) -> Result<(), ManagerError> {
        self.stop.cancel();
        self.end.await.expect("the controller does not panic")
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

// D-107: no work before every cache is filled.
#[tokio::test(start_paused = true)]
async fn works_only_when_all_caches_are_filled() {
    let running = start(
        ScriptedService::default(),
        ScriptedActuator::default(),
        Config::default(),
    );
    let mut lists = first_lists();
    let last = lists.remove(0);
    running.send(lists);
    running.pass(60 * SECOND).await;
    assert_eq!(running.service.plans_asked(), 0);
    running.send([last]);
    running.until_asked(1).await;
    assert!(running.service.snapshot(0).caches_synced);
    running.end().await.expect("a clean end");
}

// D-106: many events during a reconcile cause exactly one more reconcile.
#[tokio::test(start_paused = true)]
async fn events_enqueue_and_are_merged() {
    let gate = Arc::new(Semaphore::new(0));
    let actuator = ScriptedActuator {
        gate: Some(Arc::clone(&gate)),
        ..Default::default()
    };
    let service = ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let running = start(service, actuator, Config::default());
    running.send(first_lists());
    running.until_asked(1).await;
    for version in 11..20 {
        let update = daemon_set("u1", &version.to_string());
        running.send([ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(update))]);
    }
    running.send([ClusterEvent::Bookmark(Resource::PODS, "100".into())]);
    running.pass(SECOND).await;
    assert_eq!(running.service.plans_asked(), 1, "one key is never in work twice");
    gate.add_permits(1);
    running.pass(60 * SECOND).await;
    assert_eq!(running.service.plans_asked(), 2);
    running.end().await.expect("a clean end");
}

// D-71.12: failures are retried after 5, 10, 20 ms. A success resets the back-off.
#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_delay() {
    let refused = || ServiceError::Refused("no".into());
    let mut service = ScriptedService::default();
    for _ in 0..3 {
        service = service.then_fail(refused());
    }
    let running = start(
        service.then_plan(noop()).then_fail(refused()),
        ScriptedActuator::default(),
        Config::default(),
    );
    running.send(first_lists());
    running.until_asked(1).await;
    for (asked, delay) in [(2, 5), (3, 10), (4, 20)] {
        let waited = running.until_asked(asked).await;
        assert!(
            waited >= (delay - 1) * MILLISECOND && waited <= (delay + 3) * MILLISECOND,
            "{asked}: {waited:?}"
        );
    }
    running.pass(3600 * SECOND).await;
    assert_eq!(running.service.plans_asked(), 4, "a success ends the retries");
    running.send([ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(daemon_set("u1", "12")),
    )]);
    running.until_asked(5).await;
    assert!(
        running.until_asked(6).await <= 8 * MILLISECOND,
        "the count was reset"
    );
    running.end().await.expect("a clean end");
}

// While the service is unreachable, the workload is retried after a fixed delay, for as long as that lasts.
#[tokio::test(start_paused = true)]
async fn an_unreachable_service_causes_no_back_off() {
    let mut service = ScriptedService::default();
    for _ in 0..50 {
        service = service.then_fail(ServiceError::Unreachable("down".into()));
    }
    let service = service.then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let running = start(service, ScriptedActuator::default(), Config::default());
    running.send(first_lists());
    running.until_asked(50).await;
    assert_eq!(running.actuator.calls(), Vec::<String>::new());
    assert!(running.until_asked(51).await <= 6 * SECOND);
    running.pass(SECOND).await;
    assert_eq!(running.actuator.calls(), ["create pods foo-bbbbbbbbbb"]);
    running.end().await.expect("a clean end");
}

// A request that takes its whole deadline at every replica must not keep a worker busy.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_slow_to_fail_is_asked_less_often() {
    let mut service = ScriptedService::default().that_takes(30 * SECOND);
    for _ in 0..3 {
        service = service.then_fail(ServiceError::Unreachable("no answer in time".into()));
    }
    let running = start(service, ScriptedActuator::default(), Config::default());
    running.send(first_lists());
    running.until_asked(1).await;
    for plans in 2..=3 {
        let waited = running.until_asked(plans).await;
        assert!(waited >= 89 * SECOND && waited <= 92 * SECOND, "{waited:?}");
    }
    running.end().await.expect("a clean end");
}

// D-92, D-95: the requeue that the plan asks for.
#[tokio::test(start_paused = true)]
async fn requeues_when_the_plan_says() {
    let after = Some(nodewise_proto::Duration {
        seconds: 30,
        nanos: 0,
    });
    let service = ScriptedService::default().then_plan(v1::Plan {
        requeue_after: after,
        ..noop()
    });
    let running = start(service, ScriptedActuator::default(), Config::default());
    running.send(first_lists());
    running.until_asked(1).await;
    let waited = running.until_asked(2).await;
    assert!(waited >= 29 * SECOND && waited <= 31 * SECOND, "{waited:?}");
    running.end().await.expect("a clean end");
}

// The result of a measurement is in the snapshot of the next plan, which follows at once.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_measurement_causes_a_plan() {
    let config = Config::default();
    let measurements = config.apply.measurements.clone();
    let running = start(ScriptedService::default(), ScriptedActuator::default(), config);
    running.send(first_lists());
    running.until_asked(1).await;
    running.pass(SECOND).await;
    let request = v1::Measure {
        id: Some(v1::MeasurementId::default()),
        ..v1::Measure::default()
    };
    measurements.start(&Subject::new(key(), "u1"), &request);
    let waited = running.until_asked(2).await;
    assert!(waited < SECOND, "{waited:?}");
    running.end().await.expect("a clean end");
}

// The rollout of a plan is told although no watch event comes after it: the manager already waits when a worker has the plan.
#[tokio::test(start_paused = true)]
async fn a_rollout_is_told_without_an_event() {
    let plan = v1::Plan {
        rollout: Some(v1::Rollout {
            current_hash: HASH.to_owned(),
            desired: 2,
            outdated: 1,
            updated_unavailable: 1,
            ..v1::Rollout::default()
        }),
        ..noop()
    };
    let service = ScriptedService::default().that_takes(SECOND).then_plan(plan);
    let running = start(service, ScriptedActuator::default(), Config::default());
    let pod = json!({
        "metadata": {
            "namespace": "ns", "name": "foo-a", "uid": "a", "resourceVersion": "9", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {HASH_LABEL: HASH}, "ownerReferences": [owner()],
        },
        "spec": {"nodeName": "n1"},
        "status": {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
    });
    let pod = Pod::from_json(&pod).expect("a pod");
    let mut lists = first_lists();
    lists[1] = ClusterEvent::Pods(listed(vec![pod]));
    running.send(lists);
    running.until_asked(1).await;
    running.pass(3 * SECOND).await;
    let events = running.actuator.events();
    let reasons: Vec<_> = events.iter().map(|event| &*event.reason).collect();
    assert_eq!(reasons, ["RolloutStuck"]);
    running.end().await.expect("a clean end");
}

// Expectations that no watch event settles expire after five minutes. The workload must be reconciled then, although no
// event comes.
#[tokio::test(start_paused = true)]
async fn requeues_when_expectations_have_expired() {
    let service = ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let running = start(service, ScriptedActuator::default(), Config::default());
    running.send(first_lists());
    running.until_asked(1).await;
    running.send([ClusterEvent::Bookmark(Resource::PODS, "100".into())]);
    let waited = running.until_asked(2).await;
    assert!(waited >= 300 * SECOND && waited <= 302 * SECOND, "{waited:?}");
    running.end().await.expect("a clean end");
}

// D-107: every workload is reconciled after 12 to 24 hours at the latest.
#[tokio::test(start_paused = true)]
async fn resyncs_every_workload() {
    let (least, most) = (Duration::from_hours(12), Duration::from_hours(24));
    let drawn = Config::default().resync;
    assert!(drawn >= least && drawn < most, "{drawn:?}");
    let config = Config {
        resync: 10 * SECOND,
        ..Config::default()
    };
    let running = start(ScriptedService::default(), ScriptedActuator::default(), config);
    running.send(first_lists());
    running.until_asked(1).await;
    for asked in 2..5 {
        let waited = running.until_asked(asked).await;
        assert!(waited >= 9 * SECOND && waited <= 11 * SECOND, "{waited:?}");
    }
    running.end().await.expect("a clean end");
}

// After the request to stop, a worker finishes its batch and its report before the controller ends.
#[tokio::test(start_paused = true)]
async fn stopping_lets_work_under_way_finish() {
    let gate = Arc::new(Semaphore::new(0));
    let actuator = ScriptedActuator {
        gate: Some(Arc::clone(&gate)),
        ..Default::default()
    };
    let service =
        ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1"), ("foo-cccccccccc", "n2")]));
    let running = start(service, actuator, Config::default());
    running.send(first_lists());
    while running.actuator.calls().len() < 2 {
        running.pass(MILLISECOND).await;
    }
    running.stop.cancel();
    running.pass(5 * SECOND).await;
    assert!(!running.end.is_finished(), "two calls are under way");
    gate.add_permits(2);
    let service = Arc::clone(&running.service);
    running.end().await.expect("a clean end");
    assert_eq!(service.reported.lock().expect("no panic").len(), 1);
}

// A worker that waits for the service has no writes under way and may be cut off.
#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_a_service_that_hangs() {
    for hangs in [Method::Plan, Method::Report] {
        let service = ScriptedService::default().that_hangs(hangs);
        let service = service.then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
        let running = start(service, ScriptedActuator::default(), Config::default());
        running.send(first_lists());
        running.until_asked(1).await;
        running.pass(SECOND).await;
        let start = Instant::now();
        running.end().await.expect("a clean end");
        assert!(start.elapsed() <= 2 * SECOND, "{hangs:?}");
    }
}

// A worker that does not finish within the drain timeout is cut off, which is an error.
#[tokio::test(start_paused = true)]
async fn stopping_is_bounded() {
    let gate = Arc::new(Semaphore::new(0));
    let actuator = ScriptedActuator {
        gate: Some(gate),
        ..Default::default()
    };
    let service = ScriptedService::default().then_plan(creating(&[("foo-bbbbbbbbbb", "n1")]));
    let config = Config {
        drain_timeout: 50 * MILLISECOND,
        ..Default::default()
    };
    let running = start(service, actuator, config);
    running.send(first_lists());
    while running.actuator.calls().is_empty() {
        running.pass(MILLISECOND).await;
    }
    let start = Instant::now();
    let error = running.end().await.expect_err("not drained");
    assert!(
        matches!(&error, ManagerError::NotDrained(left, _) if left == "DaemonSet ns/foo"),
        "{error}"
    );
    assert!(start.elapsed() <= 60 * MILLISECOND);
}

// A panic in a worker is not swallowed.
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_worker_ends_the_controller() {
    let service = ScriptedService::default();
    let armed = Arc::new(AtomicBool::new(true));
    service.meanwhile(move || assert!(!armed.swap(false, Ordering::Relaxed), "on purpose"));
    let running = start(service, ScriptedActuator::default(), Config::default());
    running.send(first_lists());
    let error = running.end.await.expect_err("it panics");
    assert!(error.is_panic());
}

#[tokio::test(start_paused = true)]
async fn an_end_of_the_watches_is_an_error() {
    let running = start(
        ScriptedService::default(),
        ScriptedActuator::default(),
        Config::default(),
    );
    running.send(first_lists());
    drop(running.events);
    let end = running.end.await.expect("no panic");
    assert!(matches!(end, Err(ManagerError::WatchesEnded)));
}

/// Another kind, whose workloads may have the names of DaemonSets.
enum Toys {}

impl Kind for Toys {
    type Controls = Self;

    const RESOURCE: Resource = Resource {
        plural: "toys",
        kind: "Toy",
        ..DAEMON_SETS
    };
    const READS: &'static [Resource] = &[Resource::PODS];
    const PODS: Option<Placement> = Some(Placement::Node);
    const EVENT_SOURCE: &'static str = "toy-controller";
    const QUEUE: &'static str = "toy";

    fn read(json: &str) -> Result<Workload, ProjectError> {
        Workload::daemon_set_from_text(json).map(toy)
    }

    fn message(store: &mut Store, workload: &Workload, live: &[Workload]) -> v1::workload::Kind {
        DaemonSets::message(store, workload, live)
    }

    fn effects(_: &Store, transition: &Transition, _: Rules) -> Effects {
        let mut effects = Effects::default();
        if let Transition::Workload(Change { new: Some(new), .. }) = transition
            && new.key.kind == Self::RESOURCE.kind
        {
            effects.wakes.push(Wake::now(new.key.clone()));
        }
        effects
    }
}

fn toy(mut workload: Workload) -> Workload {
    workload.key.kind = Toys::RESOURCE.kind;
    workload
}

// Kinds share the watches and the state. A workload of another kind may have the same namespace and name.
#[tokio::test(start_paused = true)]
async fn two_kinds_are_reconciled_side_by_side() {
    let (events, stream) = mpsc::unbounded_channel();
    let send = |event| events.send(event).expect("the manager listens");
    let mut for_toy = noop();
    for_toy.workload = Some(toy(daemon_set("u2", "10")).reference());
    let toys = ScriptedService::default()
        .then_plan(for_toy.clone())
        .then_plan(for_toy);
    let (toys, daemon_sets) = (Arc::new(toys), Arc::new(ScriptedService::default()));
    let (stop, metrics) = (CancellationToken::new(), Metrics::new());
    let actuator = || Arc::new(ScriptedActuator::default());
    let manager = Manager::new(Config::default(), metrics.clone(), stop.clone())
        .with::<DaemonSets>(
            controller::Config::default(),
            actuator(),
            Arc::clone(&daemon_sets),
        )
        .with::<Toys>(controller::Config::default(), actuator(), Arc::clone(&toys));
    let end = tokio::spawn(manager.run(UnboundedReceiverStream::new(stream)));
    let asked = async || {
        tokio::time::sleep(SECOND).await;
        (daemon_sets.plans_asked(), toys.plans_asked())
    };
    first_lists().into_iter().for_each(send);
    assert_eq!(asked().await, (1, 0), "toys are not listed yet");
    let list = |objects| ClusterEvent::Workloads(Toys::RESOURCE, listed(objects));
    send(list(vec![toy(daemon_set("u2", "10"))]));
    assert_eq!(asked().await, (1, 1));
    assert_eq!(toys.snapshot(0).node_buckets, [], "toys do not read nodes");
    let changed = Delta::Applied(toy(daemon_set("u2", "11")));
    send(ClusterEvent::Workloads(Toys::RESOURCE, changed));
    assert_eq!(asked().await, (1, 2));
    let none_is_left = Delta::Listed {
        objects: Vec::new(),
        resource_version: "12".into(),
    };
    send(ClusterEvent::Workloads(Toys::RESOURCE, none_is_left));
    send(ClusterEvent::Workloads(
        DAEMON_SETS,
        Delta::Applied(daemon_set("u1", "11")),
    ));
    assert_eq!(asked().await, (2, 2), "a list of toys removes no DaemonSet");
    let scrape = metrics.encode();
    for kind in ["daemonset", "toy"] {
        assert!(
            scrape.contains(&format!("workqueue_adds_total{{name=\"{kind}\"}}")),
            "{scrape}"
        );
    }
    stop.cancel();
    end.await.expect("no panic").expect("a clean end");
}

/// A service that answers with plans without actions for this workload.
fn idle_service(workload: &Workload) -> Arc<ScriptedService> {
    let mut service = ScriptedService::default();
    for _ in 0..10 {
        let mut plan = noop();
        plan.workload = Some(workload.reference());
        service = service.then_plan(plan);
    }
    service.into()
}

/// The ReplicaSet that is controlled by the Deployment of the same name.
fn replica_set(version: &str) -> Workload {
    let owner = json!({"kind": "Deployment", "name": "foo", "uid": "d1", "controller": true});
    let object = json!({
        "metadata": {"namespace": "ns", "name": "foo", "uid": "r1", "resourceVersion": version, "ownerReferences": [owner]},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "set"}}},
    });
    Workload::replica_set_from_json(&object).expect("a ReplicaSet")
}

fn deployment() -> Workload {
    let object = json!({
        "metadata": {"namespace": "ns", "name": "foo", "uid": "d1", "resourceVersion": "10"},
        "spec": {"selector": {"matchLabels": {"app": "set"}}},
    });
    Workload::deployment_from_json(&object).expect("a Deployment")
}

/// A pod of the workload of this kind and uid.
fn pod_of(kind: &str, uid: &str, name: &str) -> ClusterEvent {
    let owner = json!({"kind": kind, "name": "foo", "uid": uid, "controller": true});
    let object = json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "11",
        "ownerReferences": [owner]}});
    ClusterEvent::Pods(Delta::Applied(Pod::from_json(&object).expect("a pod")))
}

// Each kind has its own queue; all share the watches and the caches. Here the workloads have the same name.
#[tokio::test(start_paused = true)]
async fn three_kinds_with_equal_names_are_reconciled_side_by_side() {
    let (events, stream) = mpsc::unbounded_channel();
    let send = |event| events.send(event).expect("the manager listens");
    let services = [
        Arc::new(ScriptedService::default()),
        idle_service(&replica_set("10")),
        idle_service(&deployment()),
    ];
    let [daemon_sets, replica_sets, deployments] = &services;
    let (stop, metrics) = (CancellationToken::new(), Metrics::new());
    let actuator = || Arc::new(ScriptedActuator::default());
    let config = controller::Config::default;
    let manager = Manager::new(Config::default(), metrics.clone(), stop.clone())
        .with::<DaemonSets>(config(), actuator(), Arc::clone(daemon_sets))
        .with::<Deployments>(config(), actuator(), Arc::clone(deployments))
        .with::<ReplicaSets>(config(), actuator(), Arc::clone(replica_sets));
    let end = tokio::spawn(manager.run(UnboundedReceiverStream::new(stream)));
    let asked = async || {
        tokio::time::sleep(SECOND).await;
        services.each_ref().map(|service| service.plans_asked())
    };
    let sets = |delta| ClusterEvent::Workloads(REPLICA_SETS, delta);
    first_lists().into_iter().for_each(send);
    send(ClusterEvent::Workloads(DEPLOYMENTS, listed(vec![deployment()])));
    assert_eq!(
        asked().await,
        [1, 0, 0],
        "the plans of both other kinds need ReplicaSets, which are not listed yet"
    );
    send(sets(listed(vec![replica_set("10")])));
    assert_eq!(asked().await, [1, 1, 1]);
    for (event, expected) in [
        (sets(Delta::Applied(replica_set("11"))), [1, 2, 2]),
        (pod_of("ReplicaSet", "r1", "p"), [1, 3, 2]),
        (pod_of("DaemonSet", "u1", "q"), [2, 3, 2]),
        (pod_of("Deployment", "d1", "r"), [2, 3, 2]),
        (ClusterEvent::Nodes(Delta::Applied(node("n9"))), [3, 3, 2]),
        (
            ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(daemon_set("u1", "11"))),
            [4, 3, 2],
        ),
    ] {
        let what = format!("{event:?}");
        send(event);
        assert_eq!(asked().await, expected, "{what}");
    }
    let kind = |snapshot: v1::Snapshot| snapshot.workload.and_then(|workload| workload.kind);
    let Some(v1::workload::Kind::Deployment(asked_about)) = kind(deployments.snapshot(1)) else {
        panic!("a Deployment is sent");
    };
    assert_eq!(asked_about.replica_sets.len(), 1);
    let snapshot = replica_sets.snapshot(2);
    assert_eq!((snapshot.bucket_count, snapshot.node_buckets.len()), (1, 0));
    assert!(matches!(kind(snapshot), Some(v1::workload::Kind::ReplicaSet(_))));
    let scrape = metrics.encode();
    for queue in ["daemonset", "replicaset", "deployment"] {
        let series = format!("workqueue_adds_total{{name=\"{queue}\"}}");
        assert!(scrape.contains(&series), "{scrape}");
    }
    stop.cancel();
    end.await.expect("no panic").expect("a clean end");
}

/// A service that gives this answer forty times.
fn always(answer: impl Fn(ScriptedService) -> ScriptedService) -> Arc<ScriptedService> {
    Arc::new((0..40).fold(ScriptedService::default(), |service, _| answer(service)))
}

/// A plan for the workload `foo` of this kind that cannot do what it should.
fn failing(kind: &str, uid: &str) -> v1::Plan {
    let workload = v1::WorkloadReference {
        kind: kind.into(),
        namespace: "ns".into(),
        name: "foo".into(),
        uid: uid.into(),
        ..Default::default()
    };
    v1::Plan {
        workload: Some(workload),
        verdict: v1::Verdict::Noop.into(),
        error: "on purpose".into(),
        ..v1::Plan::default()
    }
}

// P-63 and R-56: a failing Deployment is given up after 15 retries, until the next event; a ReplicaSet never is. A service that
// refuses requests may be mended, so neither is given up then.
#[tokio::test(start_paused = true)]
async fn a_failing_workload_is_retried_as_often_as_its_kind_says() {
    for is_refused in [false, true] {
        let (events, stream) = mpsc::unbounded_channel();
        let send = |event| events.send(event).expect("the manager listens");
        let service = |kind, uid| {
            always(move |service| {
                if is_refused {
                    service.then_fail(ServiceError::Refused("on purpose".into()))
                } else {
                    service.then_plan(failing(kind, uid))
                }
            })
        };
        let (replica_sets, deployments) = (service(REPLICA_SETS.kind, "r1"), service(DEPLOYMENTS.kind, "d1"));
        let stop = CancellationToken::new();
        let actuator = || Arc::new(ScriptedActuator::default());
        let config = controller::Config::default;
        let manager = Manager::new(Config::default(), Metrics::new(), stop.clone())
            .with::<ReplicaSets>(config(), actuator(), Arc::clone(&replica_sets))
            .with::<Deployments>(config(), actuator(), Arc::clone(&deployments));
        let end = tokio::spawn(manager.run(UnboundedReceiverStream::new(stream)));
        for event in [
            ClusterEvent::Pods(listed(Vec::new())),
            ClusterEvent::Workloads(REPLICA_SETS, listed(vec![replica_set("10")])),
            ClusterEvent::Workloads(DEPLOYMENTS, listed(vec![deployment()])),
        ] {
            send(event);
        }
        tokio::time::sleep(Duration::from_mins(35)).await;
        assert!(replica_sets.plans_asked() > 16);
        if is_refused {
            assert!(deployments.plans_asked() > 16);
        } else {
            assert_eq!(deployments.plans_asked(), 16, "the first try and 15 retries");
            send(ClusterEvent::Workloads(DEPLOYMENTS, Delta::Applied(deployment())));
            tokio::time::sleep(SECOND).await;
            assert!(deployments.plans_asked() > 17, "an event begins anew");
        }
        stop.cancel();
        end.await.expect("no panic").expect("a clean end");
    }
}

#[test]
#[should_panic = "DaemonSet has two controllers"]
fn a_kind_has_one_controller() {
    let service = || Arc::new(ScriptedService::default());
    let actuator = || Arc::new(ScriptedActuator::default());
    let manager = Manager::new(Config::default(), Metrics::new(), CancellationToken::new())
        .with::<DaemonSets>(controller::Config::default(), actuator(), service());
    let _ = manager.with::<DaemonSets>(controller::Config::default(), actuator(), service());
}
