//! The status of Deployments that cannot create pods.

use jiff::{SignedDuration, Timestamp};
use nodewise_proto::v1::{self, RolloutState};
use nodewise_status::{
    Controlled, DELETION_STUCK, Inputs, PodFacts, TemplateFacts, UnreadyUnit, WorkloadFacts, of_controller,
};
use serde_json::{Value, json};

const QUOTA: &str = "exceeded quota: small";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

fn deployment(strategy: &str, min_ready_seconds: i64) -> WorkloadFacts {
    let object = json!({
        "metadata": {"namespace": "shop", "name": "web", "uid": "u"},
        "spec": {"replicas": 2, "strategy": {"type": strategy}, "minReadySeconds": min_ready_seconds},
    });
    WorkloadFacts::of("Deployment", &object.to_string())
}

fn replica_set(name: &str, number: u32, replicas: u32, refused_since: Option<i64>) -> TemplateFacts {
    let conditions: Vec<Value> = refused_since
        .map(|seconds| {
            json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA,
                "lastTransitionTime": ago(seconds)})
        })
        .into_iter()
        .collect();
    let object = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": ago(600),
            "annotations": {"deployment.kubernetes.io/revision": number.to_string()}},
        "spec": {"replicas": replicas},
        "status": {"conditions": conditions},
    });
    TemplateFacts::of_replica_set(&object.to_string())
}

/// A pod of a ReplicaSet that became ready so long ago.
fn pod(name: &str, set: &str, ready_seconds: i64, metadata: &Value) -> PodFacts {
    let mut object = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": name, "creationTimestamp": ago(ready_seconds + 1),
            "ownerReferences": [{"kind": "ReplicaSet", "name": set, "uid": set, "controller": true}]},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": ago(ready_seconds)},
        ]},
    });
    let fields = metadata.as_object().expect("an object").clone();
    object["metadata"]
        .as_object_mut()
        .expect("an object")
        .extend(fields);
    PodFacts::of(&object.to_string())
}

fn status(workload: &WorkloadFacts, sets: &[TemplateFacts], pods: &[PodFacts]) -> v1::WorkloadStatus {
    let explanation = v1::ExplainResponse {
        workload: Some(v1::WorkloadExplanation {
            replica_sets: vec![v1::ReplicaSetExplanation {
                name: "web-new".to_owned(),
                is_new: true,
                ..v1::ReplicaSetExplanation::default()
            }],
            ..v1::WorkloadExplanation::default()
        }),
        ..v1::ExplainResponse::default()
    };
    nodewise_status::of(&Inputs {
        workload,
        plan: &v1::Plan::default(),
        explanation: &explanation,
        pods: &pods.iter().collect::<Vec<_>>(),
        node: &|_| None,
        templates: sets,
        policies: &[],
        refusal: None,
        now: now(),
    })
}

/// The numbers of done, progressing, blocked and waiting pods.
fn numbers(status: &v1::WorkloadStatus) -> [u32; 4] {
    let counts = status.counts.expect("counts");
    [counts.done, counts.progressing, counts.blocked, counts.waiting]
}

#[test]
fn a_rolling_update_whose_new_pods_are_refused_is_stuck() {
    let sets = [
        replica_set("web-new", 2, 1, Some(90)),
        replica_set("web-old", 1, 2, None),
    ];
    let none = json!({});
    let pods = [pod("a", "web-old", 500, &none), pod("b", "web-old", 500, &none)];
    let status = status(&deployment("RollingUpdate", 0), &sets, &pods);
    assert_eq!(
        (status.state(), numbers(&status)),
        (RolloutState::Stuck, [0, 0, 0, 2])
    );
    assert_eq!(
        status.message,
        format!("no progress for 90s, 2 pods wait: the apiserver refused to create the pod: {QUOTA}")
    );
    let controlled = Controlled {
        desired: 2,
        outdated: 2,
        refusal: status.last_refusal.clone(),
        ..Controlled::default()
    };
    let (by_controller, _) = of_controller(&controlled, &[], now());
    assert_eq!(by_controller.state(), RolloutState::Stuck);
    assert_eq!(by_controller.stuck_since, status.stuck_since);
}

#[test]
fn recreate_waits_for_a_pod_that_does_not_end() {
    let sets = [
        replica_set("web-new", 2, 0, None),
        replica_set("web-old", 1, 0, None),
    ];
    let held = json!({"deletionTimestamp": ago(300), "finalizers": ["example.com/hold"]});
    let pods = [pod("a", "web-old", 500, &held)];
    let status = status(&deployment("Recreate", 0), &sets, &pods);
    assert_eq!(
        (status.state(), numbers(&status)),
        (RolloutState::Stuck, [0, 0, 1, 1])
    );
    assert_eq!(status.causes[0].reason, DELETION_STUCK);
    assert!(status.message.contains("example.com/hold"), "{}", status.message);
    let unready = UnreadyUnit {
        pod: pods[0].clone(),
        is_updated: false,
        is_node: false,
    };
    let controlled = |is_recreate| Controlled {
        desired: 2,
        missing: 2,
        is_recreate,
        ..Controlled::default()
    };
    let state = |is_recreate| {
        let (status, _) = of_controller(&controlled(is_recreate), std::slice::from_ref(&unready), now());
        status.state()
    };
    assert_eq!(
        [true, false].map(state),
        [RolloutState::Stuck, RolloutState::Progressing]
    );
}

#[test]
fn the_time_left_counts_available_pods() {
    let sets = [replica_set("web-new", 2, 2, None)];
    let pods = [
        pod("a", "web-new", 20, &json!({})),
        pod("b", "web-new", 10, &json!({})),
    ];
    let slow = status(&deployment("RollingUpdate", 3_600), &sets, &pods);
    assert_eq!((slow.state(), slow.time_left), (RolloutState::Progressing, None));
    assert!(slow.ready_per_minute > 0.0);
    let one_is_available = status(&deployment("RollingUpdate", 15), &sets, &pods);
    assert_eq!(one_is_available.time_left.map(|left| left.seconds), Some(600));
}
