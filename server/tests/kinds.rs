//! Plans and explanations of ReplicaSets and Deployments, from messages to messages.

mod support;

use nodewise_proto::{bucket, v1};
use nodewise_server::{Refusal, never};
use serde_json::{Value, json};
use support::{
    Cluster, Form, engine,
    kinds::{deployment, of_deployment, of_replica_set, pod, pod_buckets, replica_set},
};

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
    // R-27.
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
    // R-52: the executor appends the error to the message of the condition.
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

// The apiserver accepts no such object.
#[test]
fn negative_replicas_count_as_none() {
    let plan = plan(of_replica_set(&replica_set(-5), (0..2).map(pod).collect()));
    let deleted = plan
        .actions()
        .filter(|action| matches!(action.kind, Some(v1::action::Kind::DeletePod(_))));
    assert_eq!(deleted.count(), 2);
    let created = plan
        .actions()
        .filter(|action| matches!(action.kind, Some(v1::action::Kind::CreatePod(_))));
    assert_eq!(created.count(), 0);
}

// As upstream, which the apiserver protects from such objects: pods that do not match are released, and others are created.
#[test]
fn a_replica_set_whose_template_does_not_match_its_selector_keeps_no_pod() {
    let mut set = replica_set(2);
    set["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    let plan = plan(of_replica_set(&set, (0..2).map(pod).collect()));
    let kinds: Vec<_> = plan.phases.iter().map(v1::Phase::kind).collect();
    assert_eq!(kinds[0], v1::PhaseKind::Claims, "{plan:#?}");
    let reasons: Vec<_> = plan.phases[0].batches[0]
        .actions
        .iter()
        .map(v1::Action::reason)
        .collect();
    assert_eq!(reasons, [v1::Reason::SelectorDoesNotMatch; 2]);
    assert!(
        plan.actions()
            .all(|action| !matches!(action.kind, Some(v1::action::Kind::DeletePod(_)))),
        "no pod is deleted on doubt"
    );
}

// The apiserver writes such a character as six, so an object of 1.4 MB is served with 8.4. Anyone who may create ReplicaSets in the
// namespace may create an orphan like this.
#[test]
fn the_largest_orphan_does_not_stop_a_deployment() {
    let mut orphan = replica_set(0);
    orphan["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["<".repeat(1_400_000)]);
    let mut request = of_deployment(&deployment(), &[orphan]);
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    let Some(v1::workload::Kind::Deployment(sent)) = snapshot
        .workload
        .as_mut()
        .and_then(|workload| workload.kind.as_mut())
    else {
        panic!("a Deployment");
    };
    let text = String::from_utf8(sent.replica_sets[0].object.to_vec()).expect("text");
    let text = text.replace('<', r"\u003c");
    assert!(text.len() > 8_400_000);
    sent.replica_sets[0].object = text.into();
    let created = plan(request)
        .actions()
        .filter(|action| matches!(action.kind, Some(v1::action::Kind::CreateObject(_))))
        .count();
    assert_eq!(created, 1);
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
    let with_selector = |mut object: Value, selector: Value| {
        object["spec"]["selector"] = selector;
        object
    };
    let unknown = json!({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]});
    for (request, expected) in [
        // R-13, P-14.
        (
            of_replica_set(&with_selector(replica_set(1), unknown.clone()), vec![pod(0)]),
            "snapshot.workload.replica_set.object: spec.selector.matchExpressions[0].operator: ",
        ),
        (
            of_deployment(&with_selector(deployment(), unknown), &[]),
            "snapshot.workload.deployment.object: spec.selector.matchExpressions[0].operator: ",
        ),
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
                snapshot.pod_buckets = pod_buckets(Vec::new(), 4);
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
    use sha2::Digest as _;
    const COUNT: u32 = 4;
    let engine = engine();
    let other = (0..100)
        .map(pod)
        .find(|pod| bucket::of(&pod.name, COUNT) != bucket::of(&pod.node_name, COUNT))
        .expect("a pod whose name and node belong to different buckets");
    let expected = format!("is for node `{}`, which belongs to bucket", other.node_name);
    let mut of_set = of_replica_set(&replica_set(1), vec![other]);
    let snapshot = of_set.snapshot.as_mut().expect("a snapshot");
    snapshot.digest_function = v1::DigestFunction::Sha256.into();
    for bucket in &mut snapshot.pod_buckets {
        let digest = sha2::Sha256::digest(bucket.data.as_ref().expect("data"));
        bucket.digest = digest.to_vec().into();
    }
    for _ in 0..2 {
        engine.plan(of_set.clone(), &never).expect("a plan");
    }
    let snapshot = of_set.snapshot.as_mut().expect("a snapshot");
    for bucket in &mut snapshot.pod_buckets {
        bucket.data = None;
    }
    let by_digest = snapshot.pod_buckets.clone();
    engine.plan(of_set, &never).expect("by digest");

    let mut of_daemon_set = Cluster::empty(1).request(COUNT, Form::InlineWithDigest);
    of_daemon_set.snapshot.as_mut().expect("a snapshot").pod_buckets = by_digest;
    let refusal = engine.plan(of_daemon_set, &never).expect_err("a wrong bucket");
    let Refusal::Invalid { violations, .. } = refusal else {
        panic!("{refusal:?}");
    };
    assert!(
        violations
            .iter()
            .any(|found| found.to_string().contains(&expected)),
        "{violations:#?}"
    );
}
