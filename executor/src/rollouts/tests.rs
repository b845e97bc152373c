use jiff::SignedDuration;
use nodewise_projection::{Pod, Revision};
use nodewise_proto::workload::{DAEMON_SET, DEPLOYMENT};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::{Delta, Resource};
use serde_json::{Value, json};

use super::*;
use crate::daemon_set::DAEMON_SETS;
use crate::deployment::DEPLOYMENTS;
use crate::replica_set::REPLICA_SETS;

/// The time at which a test begins.
const BEGIN: &str = "2026-01-01T12:00:00Z";

fn at(seconds: i64) -> Timestamp {
    let begin: Timestamp = BEGIN.parse().expect("a time");
    begin + SignedDuration::from_secs(seconds)
}

/// A store, the rollouts, and a clock that the test sets.
struct Cluster {
    store: Store,
    rollouts: Rollouts,
    begin: Instant,
}

impl Cluster {
    fn new() -> Self {
        Self {
            store: Store::new(&[DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS], 4),
            rollouts: Rollouts::default(),
            begin: Instant::now(),
        }
    }

    /// A DaemonSet whose revision `new` was created ten seconds before the begin.
    fn with_daemon_set() -> (Self, Arc<Workload>) {
        let mut cluster = Self::new();
        let object = json!({
            "metadata": {"namespace": "ns", "name": "agent", "uid": "u1", "resourceVersion": "1"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}},
        });
        let workload = Workload::daemon_set_from_json(&object).expect("a DaemonSet");
        cluster
            .store
            .apply(ClusterEvent::Workloads(DAEMON_SETS, Delta::Applied(workload)));
        let revision = json!({"metadata": {
            "namespace": "ns", "name": "agent-new", "uid": "r", "resourceVersion": "2",
            "creationTimestamp": at(-10).to_string(), "labels": {"controller-revision-hash": "new"},
            "ownerReferences": [owner("DaemonSet", "agent", "u1")],
        }});
        let revision = Revision::from_json(&revision).expect("a revision");
        cluster
            .store
            .apply(ClusterEvent::Revisions(Delta::Applied(revision)));
        let key = Key::new(DAEMON_SET, "ns", "agent");
        let workload = Arc::clone(cluster.store.workload(&key).expect("it"));
        (cluster, workload)
    }

    /// Shows a pod of the DaemonSet that was created at the begin.
    fn pod(&mut self, version: &str, node: &str, reason: Option<&str>) {
        let ready = if reason.is_none() { "True" } else { "False" };
        let waiting = json!([{"name": "main", "state": {"waiting": {"reason": reason}}}]);
        self.show(&json!({
            "metadata": {
                "namespace": "ns", "name": format!("agent-{node}"), "uid": node, "resourceVersion": version,
                "creationTimestamp": BEGIN, "labels": {"controller-revision-hash": "new", "app": "agent"},
                "ownerReferences": [owner("DaemonSet", "agent", "u1")],
            },
            "spec": {"nodeName": node},
            "status": {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": waiting},
        }));
    }

    fn show(&mut self, pod: &Value) {
        let pod = Pod::from_json(pod).expect("a pod");
        self.store.apply(ClusterEvent::Pods(Delta::Applied(pod)));
    }

    fn now(&self, seconds: i64) -> Instant {
        self.begin + Duration::from_secs(seconds.unsigned_abs())
    }

    /// Takes the changes of the caches, and tells what is due at a time.
    fn tell(&mut self, seconds: i64) -> Vec<Report> {
        let now = self.now(seconds);
        let changed = self.store.take_unready_changes();
        self.rollouts.pods_changed(changed, now);
        self.rollouts.take_due(&self.store, now, at(seconds))
    }

    fn planned(&mut self, seconds: i64, workload: &Arc<Workload>, plan: &v1::Plan) {
        let now = self.now(seconds);
        self.rollouts.planned(&self.store, workload, plan, now);
    }
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!({"kind": kind, "name": name, "uid": uid, "controller": true})
}

/// A plan for three nodes.
fn plan([outdated, without_pod, unavailable, available]: [u32; 4]) -> v1::Plan {
    v1::Plan {
        rollout: Some(v1::Rollout {
            current_hash: "new".to_owned(),
            desired: 3,
            outdated,
            without_pod,
            updated_unavailable: unavailable,
            updated_available: available,
            ..v1::Rollout::default()
        }),
        ..v1::Plan::default()
    }
}

fn texts(reports: &[Report]) -> Vec<String> {
    let news = reports.iter().flat_map(|report| &report.news);
    news.map(ToString::to_string).collect()
}

fn blocked(reports: &[Report]) -> Vec<(&str, u32)> {
    let last = reports.last().expect("a report");
    last.blocked
        .iter()
        .map(|(reason, count)| (&**reason, *count))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_cannot_pull_its_image_is_told() {
    let (mut cluster, workload) = Cluster::with_daemon_set();
    cluster.pod("10", "n1", Some("ContainerCreating"));
    cluster.planned(1, &workload, &plan([2, 0, 1, 0]));
    let reports = cluster.tell(1);
    let begun = "the rollout to revision new has begun: 0 of 3 nodes are done";
    assert_eq!(texts(&reports), [begun]);
    let News::Begun { began, .. } = reports[0].news[0] else {
        panic!("{reports:?}");
    };
    assert_eq!(began, at(-10), "the time of the revision");
    assert_eq!(blocked(&reports), []);

    // No plan is made when the reason changes.
    cluster.pod("11", "n1", Some("ImagePullBackOff"));
    let reports = cluster.tell(3);
    assert_eq!(blocked(&reports), [("ImagePullBackOff", 1)]);
    assert_eq!(texts(&reports), [""; 0], "it may be over at once");
    assert_eq!(cluster.rollouts.next_due(), Some(cluster.now(10)));
    assert!(cluster.tell(9).is_empty());
    let reports = cluster.tell(10);
    let stuck = "the rollout to revision new is stuck since 2026-01-01T12:00:00Z: node n1: container main: ImagePullBackOff";
    assert_eq!(texts(&reports), [stuck]);
    let event = cluster
        .rollouts
        .event(&workload.key, &reports[0].news[0])
        .expect("an Event");
    assert_eq!(
        (&*event.kind, &*event.reason, &*event.message),
        ("Warning", "RolloutStuck", stuck)
    );
    assert_eq!(event.workload.uid, "u1");
    cluster.pod("12", "n1", Some("ErrImagePull"));
    assert_eq!(texts(&cluster.tell(20)), [""; 0], "once");

    cluster.pod("13", "n1", None);
    cluster.planned(30, &workload, &plan([0, 0, 0, 3]));
    let reports = cluster.tell(30);
    let complete =
        "the rollout to revision new is complete after 40s: all 3 nodes are up to date and available";
    assert_eq!(texts(&reports), [complete]);
    assert_eq!(blocked(&reports), []);
    let event = cluster
        .rollouts
        .event(&workload.key, &reports[0].news[0])
        .expect("an Event");
    assert_eq!((&*event.kind, &*event.reason), ("Normal", "RolloutComplete"));
}

// An executor that starts knows since when, and its Event has the name of the first one.
#[tokio::test(start_paused = true)]
async fn a_restart_tells_the_same() {
    let stuck = || {
        let (mut cluster, workload) = Cluster::with_daemon_set();
        cluster.pod("10", "n1", Some("ImagePullBackOff"));
        cluster.planned(60, &workload, &plan([2, 0, 1, 0]));
        let reports = cluster.tell(60);
        let news = &reports[0].news;
        assert_eq!(news.len(), 2, "{news:?}");
        cluster.rollouts.event(&workload.key, &news[1]).expect("an Event")
    };
    let first = stuck();
    assert!(
        first.message.contains("stuck since 2026-01-01T12:00:00Z"),
        "{}",
        first.message
    );
    assert!(first.once.is_some());
    assert_eq!(stuck(), first);
}

// Nothing happens when a pod that only starts becomes late.
#[tokio::test(start_paused = true)]
async fn a_pod_that_starts_for_three_minutes_is_noticed_without_an_event() {
    let (mut cluster, workload) = Cluster::with_daemon_set();
    cluster.pod("10", "n1", Some("ContainerCreating"));
    cluster.planned(1, &workload, &plan([2, 0, 1, 0]));
    cluster.tell(1);
    assert_eq!(cluster.rollouts.next_due(), Some(cluster.now(181)));
    let reports = cluster.tell(181);
    assert_eq!(blocked(&reports), [("ContainerCreating", 1)]);
    assert!(texts(&reports)[0].contains("is stuck"), "{reports:?}");
    assert_eq!(cluster.rollouts.next_due(), None);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_computed_once_a_second_and_only_after_changes() {
    let (mut cluster, workload) = Cluster::with_daemon_set();
    cluster.planned(1, &workload, &plan([2, 0, 1, 0]));
    assert_eq!(cluster.tell(1).len(), 1);
    cluster.planned(1, &workload, &plan([2, 0, 1, 0]));
    assert_eq!(cluster.rollouts.next_due(), None, "the plan says the same");
    cluster.planned(1, &workload, &plan([1, 0, 1, 1]));
    assert_eq!(cluster.rollouts.next_due(), Some(cluster.now(2)));
    cluster.planned(1, &workload, &plan([0, 0, 1, 2]));
    let reports = cluster.tell(2);
    assert_eq!(
        texts(&reports),
        ["half of the rollout is done: 2 of 3 nodes are done"]
    );
    cluster.rollouts.forget(&workload.key);
    cluster.pod("10", "n1", Some("Error"));
    assert!(cluster.tell(9).is_empty(), "it is forgotten");
}

#[tokio::test(start_paused = true)]
async fn refused_creates_are_a_cause() {
    let (mut cluster, workload) = Cluster::with_daemon_set();
    let create = v1::Action {
        kind: Some(v1::action::Kind::CreatePod(v1::CreatePod::default())),
        ..v1::Action::default()
    };
    let batch = v1::Batch {
        actions: vec![create],
        confirm_workload: false,
    };
    let mut creating = plan([0, 3, 0, 0]);
    creating.phases = vec![v1::Phase {
        batches: vec![batch],
        ..v1::Phase::default()
    }];
    let outcome = |result: v1::Result, http_status| v1::Outcome {
        result: result.into(),
        http_status,
        message: "exceeded quota: small".to_owned(),
        ..v1::Outcome::default()
    };
    let refused = [outcome(v1::Result::Failed, 403)];
    for seconds in [1, 20] {
        let now = cluster.now(seconds);
        cluster.planned(seconds, &workload, &creating);
        cluster
            .rollouts
            .applied(&workload.key, &creating, &refused, at(seconds), now);
        let reports = cluster.tell(seconds);
        assert_eq!(blocked(&reports), [("CreateRefused", 3)]);
        let texts = texts(&reports);
        let is_told = texts.iter().any(|text| {
            text.ends_with("is stuck since 2026-01-01T12:00:01Z: the apiserver refused to create the pod: exceeded quota: small")
        });
        assert_eq!(is_told, seconds == 20, "{texts:?}");
    }
    let now = cluster.now(30);
    let created = [outcome(v1::Result::Succeeded, 0)];
    cluster
        .rollouts
        .applied(&workload.key, &creating, &created, at(30), now);
    assert_eq!(blocked(&cluster.tell(30)), []);
}

#[tokio::test(start_paused = true)]
async fn pods_of_the_new_replica_set_hold_up_a_deployment() {
    let mut cluster = Cluster::new();
    let deployment = json!({
        "metadata": {"namespace": "ns", "name": "web", "uid": "d1", "resourceVersion": "1"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}},
    });
    let deployment = Workload::deployment_from_json(&deployment).expect("a Deployment");
    cluster
        .store
        .apply(ClusterEvent::Workloads(DEPLOYMENTS, Delta::Applied(deployment)));
    for (hash, revision, replicas, available) in [("old", "1", 3, 3), ("new", "2", 1, 0)] {
        let set = json!({
            "metadata": {
                "namespace": "ns", "name": format!("web-{hash}"), "uid": hash, "resourceVersion": revision,
                "creationTimestamp": at(-10).to_string(), "labels": {"app": "web", "pod-template-hash": hash},
                "annotations": {"deployment.kubernetes.io/revision": revision},
                "ownerReferences": [owner("Deployment", "web", "d1")],
            },
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"replicas": replicas, "availableReplicas": available},
        });
        let set = Workload::replica_set_from_json(&set).expect("a ReplicaSet");
        cluster
            .store
            .apply(ClusterEvent::Workloads(REPLICA_SETS, Delta::Applied(set)));
    }
    let pod = json!({
        "metadata": {
            "namespace": "ns", "name": "web-new-a", "uid": "a", "resourceVersion": "9", "creationTimestamp": BEGIN,
            "labels": {"app": "web", "pod-template-hash": "new"}, "ownerReferences": [owner("ReplicaSet", "web-new", "new")],
        },
        "spec": {"nodeName": "n"},
        "status": {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
    });
    cluster.show(&pod);
    let plan = v1::Plan {
        status: Some(v1::plan::Status::DeploymentStatus(v1::DeploymentStatus {
            replicas: 4,
            updated_replicas: 1,
            available_replicas: 3,
            ..v1::DeploymentStatus::default()
        })),
        ..v1::Plan::default()
    };
    let key = Key::new(DEPLOYMENT, "ns", "web");
    let workload = Arc::clone(cluster.store.workload(&key).expect("it"));
    cluster.planned(15, &workload, &plan);
    let reports = cluster.tell(15);
    assert_eq!(blocked(&reports), [("CrashLoopBackOff", 1)]);
    assert_eq!(
        texts(&reports),
        [
            "the rollout to revision new has begun: 1 pod blocked for 15s, 2 pods wait: container main: CrashLoopBackOff",
            "the rollout to revision new is stuck since 2026-01-01T12:00:00Z: pod web-new-a: container main: CrashLoopBackOff",
        ]
    );

    // Its ReplicaSets have no rollouts of their own.
    let key = Key::new(REPLICA_SETS.kind, "ns", "web-new");
    let set = Arc::clone(cluster.store.workload(&key).expect("it"));
    let plan = v1::Plan {
        status: Some(v1::plan::Status::ReplicaSetStatus(v1::ReplicaSetStatus::default())),
        ..v1::Plan::default()
    };
    cluster.planned(20, &set, &plan);
    assert!(cluster.tell(20).is_empty());
    assert_eq!(cluster.store.count(Resource::PODS), 1);
}
