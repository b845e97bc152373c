//! Plans and explanations of ReplicaSets and Deployments, from messages to messages.

mod support;

use nodewise_proto::{bucket, v1};
use nodewise_server::{Refusal, never};
use prost::Message as _;
use serde_json::{Value, json};
use support::{NOW, engine, moment};

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]},
    })
}

fn replica_set(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "uid-set", "resourceVersion": "7", "generation": 1},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template()},
        "status": {"replicas": 0, "terminatingReplicas": 0},
    })
}

fn pod(number: usize) -> v1::Pod {
    v1::Pod {
        name: format!("web-1-{number}"),
        uid: format!("uid-pod-{number}"),
        labels: vec![v1::Label {
            key: "app".into(),
            value: "web".into(),
        }],
        controller: Some(v1::ControllerReference {
            kind: "ReplicaSet".into(),
            name: "web-1".into(),
            uid: "uid-set".into(),
        }),
        node_name: format!("node-{number}"),
        phase: v1::PodPhase::Running.into(),
        creation_time: moment(NOW - 60),
        ..Default::default()
    }
}

/// Pods in buckets by their own names.
fn buckets(pods: Vec<v1::Pod>, count: u32) -> Vec<v1::Bucket> {
    let mut divided = vec![v1::PodBucket::default(); count as usize];
    for pod in pods {
        divided[bucket::of(&pod.name, count) as usize].pods.push(pod);
    }
    let inline = |bucket: v1::PodBucket| v1::Bucket {
        data: Some(bucket.encode_to_vec().into()),
        ..Default::default()
    };
    divided.into_iter().map(inline).collect()
}

fn request(kind: v1::workload::Kind, pods: Vec<v1::Pod>, count: u32) -> v1::PlanRequest {
    v1::PlanRequest {
        snapshot: Some(v1::Snapshot {
            now: moment(NOW),
            workload: Some(v1::Workload { kind: Some(kind) }),
            caches_synced: true,
            bucket_count: count,
            pod_buckets: buckets(pods, count),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn of_replica_set(object: &Value, pods: Vec<v1::Pod>) -> v1::PlanRequest {
    let kind = v1::workload::Kind::ReplicaSet(v1::ReplicaSet {
        object: object.to_string().into(),
        ..Default::default()
    });
    request(kind, pods, 4)
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "uid-web", "resourceVersion": "9", "generation": 1},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
        },
    })
}

fn of_deployment(object: &Value, sets: &[Value]) -> v1::PlanRequest {
    let sets = sets.iter().map(|set| v1::DeploymentReplicaSet {
        object: set.to_string().into(),
        ..Default::default()
    });
    let kind = v1::workload::Kind::Deployment(v1::Deployment {
        object: object.to_string().into(),
        replica_sets: sets.collect(),
    });
    request(kind, Vec::new(), 0)
}

fn plan(request: v1::PlanRequest) -> v1::Plan {
    let response = engine().plan(request, &never).expect("a plan");
    response.plan.expect("a plan")
}

fn violations(request: v1::PlanRequest) -> Vec<String> {
    match engine().plan(request, &never) {
        Err(Refusal::Invalid { violations, .. }) => violations.iter().map(ToString::to_string).collect(),
        other => panic!("expected violations, got {other:?}"),
    }
}

#[test]
fn a_replica_set_without_pods_gets_them() {
    let plan = plan(of_replica_set(&replica_set(3), Vec::new()));
    let kinds: Vec<_> = plan.phases.iter().map(v1::Phase::kind).collect();
    assert_eq!(
        kinds,
        [
            v1::PhaseKind::Creates,
            v1::PhaseKind::Failure,
            v1::PhaseKind::Status
        ]
    );
    let flags: Vec<_> = plan
        .phases
        .iter()
        .map(|phase| {
            (
                phase.requires_success,
                phase.requires_failure,
                phase.ignores_failure,
            )
        })
        .collect();
    assert_eq!(
        flags,
        [(false, false, false), (false, true, false), (true, false, false)]
    );
    //
    let batches: Vec<_> = plan.phases[0]
        .batches
        .iter()
        .map(|batch| batch.actions.len())
        .collect();
    assert_eq!(batches, [1, 2]);
    for action in plan.actions().take(3) {
        let Some(v1::action::Kind::CreatePod(create)) = &action.kind else {
            panic!("{action:?}");
        };
        assert!(create.pod_name.starts_with("web-1-") && create.node_name.is_empty());
        assert_eq!(action.reason(), v1::Reason::TooFewPods);
    }
    assert!(plan.node_name_pointers.is_empty());
    let manifest: Value = serde_json::from_slice(&plan.pod_manifest).expect("JSON");
    assert_eq!(manifest["metadata"]["ownerReferences"][0]["uid"], "uid-set");
    let workload = plan.workload.clone().expect("a workload");
    assert_eq!(
        (workload.kind.as_str(), workload.name.as_str()),
        ("ReplicaSet", "web-1")
    );
    // the executor appends the error to the message of the condition.
    let Some(v1::action::Kind::PatchObject(patch)) = &plan.phases[1].batches[0].actions[0].kind else {
        panic!("{plan:#?}");
    };
    assert_eq!(patch.subresource, "status");
    let content: Value = serde_json::from_slice(&patch.patch).expect("JSON");
    assert_eq!(content["metadata"]["uid"], "uid-set");
    assert_eq!(content.pointer(&patch.failure_pointer), Some(&json!("")));
    assert_eq!(content["status"]["conditions"][0]["reason"], "FailedCreate");
}

#[test]
fn the_burst_is_that_of_the_kind() {
    let plan = plan(of_replica_set(&replica_set(2_000), Vec::new()));
    let creates = plan.phases[0].batches.iter().map(|batch| batch.actions.len());
    assert_eq!(creates.sum::<usize>(), 500, "R-26");
}

#[test]
fn a_replica_set_with_too_many_pods_loses_those_on_crowded_nodes() {
    let mut request = of_replica_set(&replica_set(1), (0..3).map(pod).collect());
    let Some(v1::workload::Kind::ReplicaSet(message)) = request
        .snapshot
        .as_mut()
        .and_then(|snapshot| snapshot.workload.as_mut())
        .and_then(|workload| workload.kind.as_mut())
    else {
        panic!("a ReplicaSet");
    };
    let count = |node: &str, pods| v1::NodePodCount {
        node_name: node.to_owned(),
        pods,
    };
    message.related_pods = vec![count("node-2", 5), count("node-0", 3), count("node-1", 1)];
    let plan = plan(request);
    let deleted: Vec<_> = plan
        .actions()
        .filter_map(|action| match &action.kind {
            Some(v1::action::Kind::DeletePod(delete)) => Some(delete.pod.clone()?.name),
            _ => None,
        })
        .collect();
    assert_eq!(deleted, ["web-1-2", "web-1-0"], "R-39");
}

#[test]
fn a_new_deployment_gets_a_replica_set() {
    let plan = plan(of_deployment(&deployment(), &[]));
    let create = &plan.phases[0].batches[0].actions[0];
    assert_eq!(create.reason(), v1::Reason::NewTemplate);
    let Some(v1::action::Kind::CreateObject(object)) = &create.kind else {
        panic!("{create:?}");
    };
    let resource = object.resource.clone().expect("a resource");
    assert_eq!(
        (
            resource.group.as_str(),
            resource.version.as_str(),
            resource.resource.as_str()
        ),
        ("apps", "v1", "replicasets")
    );
    let manifest: Value = serde_json::from_slice(&object.manifest).expect("JSON");
    assert_eq!(manifest["spec"]["replicas"], 3, "P-31");
    assert_eq!(manifest["metadata"]["name"], object.name.as_str());
    let events: Vec<_> = create
        .success_events
        .iter()
        .map(|event| event.reason.as_str())
        .collect();
    assert_eq!(events, ["ScalingReplicaSet"], "P-26");
    let failure = create.failure_event.as_ref().expect("an event");
    assert_eq!(failure.reason, "ReplicaSetCreateError", "P-28");
    assert!(
        plan.phases
            .iter()
            .any(|phase| phase.kind() == v1::PhaseKind::Failure)
    );
    assert!(matches!(plan.status, Some(v1::plan::Status::DeploymentStatus(_))));
}

#[test]
fn odd_deployments_are_planned_for() {
    for (change, value) in [
        ("/spec/replicas", json!(-5)),
        ("/spec/replicas", json!(i32::MAX)),
        ("/spec/strategy/type", json!("Unknown")),
        ("/spec/strategy/rollingUpdate/maxSurge", json!("many")),
        ("/spec/selector/matchLabels", json!({"app": "other"})),
        ("/spec/revisionHistoryLimit", json!(-1)),
        ("/spec/progressDeadlineSeconds", json!(i32::MIN)),
    ] {
        let mut object = deployment();
        *object.pointer_mut(change).expect(change) = value;
        let mut set = replica_set(3);
        set["metadata"]["annotations"] = json!({
            "deployment.kubernetes.io/revision": "first", "deployment.kubernetes.io/desired-replicas": "-1",
        });
        set["metadata"]["ownerReferences"] =
            json!([{"kind": "Deployment", "name": "web", "uid": "uid-web", "controller": true}]);
        plan(of_deployment(&object, &[set]));
    }
}

#[test]
fn a_deployment_has_a_limited_number_of_replica_sets() {
    let request = of_deployment(&deployment(), &vec![Value::Null; 10_001]);
    let refusal = engine().plan(request, &never).expect_err("too many");
    let Refusal::TooLarge(violation) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(
        violation.to_string(),
        "snapshot.workload.deployment.replica_sets: 10001 are more than the 10000 that this server takes"
    );
}

#[test]
fn wrong_requests_name_the_field() {
    let set = |change: &dyn Fn(&mut v1::Snapshot)| {
        let mut request = of_replica_set(&replica_set(1), vec![pod(0)]);
        change(request.snapshot.as_mut().expect("a snapshot"));
        request
    };
    let web = |change: &dyn Fn(&mut v1::PlanRequest)| {
        let mut request = of_deployment(&deployment(), &[replica_set(1)]);
        change(&mut request);
        request
    };
    let twice = of_deployment(&deployment(), &[replica_set(1), replica_set(2)]);
    let no_spec = of_deployment(
        &json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}}),
        &[],
    );
    for (request, expected) in [
        (
            set(&|snapshot| snapshot.bucket_count = 0),
            "snapshot.bucket_count: is required",
        ),
        (
            set(&|snapshot| snapshot.pod_buckets.rotate_left(1)),
            "has the name `web-1-0`, which belongs to bucket",
        ),
        (
            set(&|snapshot| snapshot.node_buckets = vec![v1::Bucket::default(); 4]),
            "snapshot.node_buckets: has 4 buckets; bucket_count is 0",
        ),
        (
            set(&|snapshot| {
                snapshot.caches_synced = false;
                snapshot.pod_buckets = buckets(Vec::new(), 4);
            }),
            "snapshot.caches_synced: is false, and there are no pods",
        ),
        (
            web(&|request| request.snapshot.as_mut().expect("a snapshot").caches_synced = false),
            "snapshot.caches_synced: is false",
        ),
        (
            web(&|request| {
                request.options = Some(v1::PlanOptions {
                    scope: v1::Scope::Rollouts.into(),
                    ..Default::default()
                });
            }),
            "options.scope: SCOPE_ROLLOUTS is for DaemonSets only",
        ),
        (
            twice,
            "snapshot.workload.deployment.replica_sets: metadata.name: `web-1` is there twice",
        ),
        (no_spec, "snapshot.workload.deployment.object: spec: is required"),
        (
            of_deployment(&deployment(), &[json!({"metadata": {"name": "x"}})]),
            "snapshot.workload.deployment.replica_sets[0].object: metadata.uid: is required",
        ),
    ] {
        let found = violations(request);
        assert!(
            found.iter().any(|found| found.contains(expected)),
            "{expected}: {found:#?}"
        );
    }
}

#[test]
fn explanations_say_what_happens_next() {
    let explain = |request: v1::PlanRequest| {
        let request = v1::ExplainRequest {
            snapshot: request.snapshot,
            ..Default::default()
        };
        let response = engine().explain(request, &never).expect("an explanation");
        response.workload.expect("an explanation")
    };
    let of_set = explain(of_replica_set(&replica_set(1), (0..3).map(pod).collect()));
    assert!(of_set.message.contains("3 of 1 pods"), "{}", of_set.message);
    let order: Vec<_> = of_set.pods.iter().map(|pod| pod.deletion_order).collect();
    assert_eq!(order, [1, 2, 3]);
    assert!(
        of_set
            .pods
            .iter()
            .all(|pod| pod.node_name.starts_with("node-") && !pod.message.is_empty())
    );
    let of_deployment = explain(of_deployment(&deployment(), &[]));
    assert!(!of_deployment.message.is_empty());

    let by_node = v1::ExplainRequest {
        snapshot: of_replica_set(&replica_set(1), Vec::new()).snapshot,
        node_name: "node-1".to_owned(),
        ..Default::default()
    };
    assert!(matches!(
        engine().explain(by_node, &never),
        Err(Refusal::Invalid { violations, .. }) if violations[0].field == "node_name"
    ));
}

/// Equal buckets may be sent for kinds that divide pods in different ways.
#[test]
fn a_cached_bucket_is_checked_for_the_kind_that_uses_it() {
    let engine = engine();
    let mut request = of_replica_set(&replica_set(1), vec![pod(0)]);
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    snapshot.digest_function = v1::DigestFunction::Sha256.into();
    for bucket in &mut snapshot.pod_buckets {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(bucket.data.as_ref().expect("data"));
        bucket.digest = digest.to_vec().into();
    }
    for _ in 0..2 {
        engine.plan(request.clone(), &never).expect("a plan");
    }
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    snapshot
        .pod_buckets
        .iter_mut()
        .for_each(|bucket| bucket.data = None);
    engine.plan(request, &never).expect("by digest");
}
