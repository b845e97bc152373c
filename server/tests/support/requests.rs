//! Questions about clusters in every state that plans bring about.

use nodewise_proto::{Duration, v1};
use nodewise_server::never;
use serde_json::{Value, json};

use super::cluster::{Cluster, Form, NOW, actions, engine, moment};

/// A request for a cluster of one bucket.
pub fn inline(cluster: &Cluster) -> v1::PlanRequest {
    cluster.request(1, Form::Inline)
}

/// A settled cluster whose template has changed since.
pub fn rollout(nodes: usize, strategy: Value) -> Cluster {
    let mut cluster = Cluster::settled(nodes);
    cluster.daemon_set["metadata"]["generation"] = json!(2);
    cluster.daemon_set["spec"]["updateStrategy"] = strategy;
    cluster.daemon_set["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("registry.example/agent:2");
    cluster
}

/// A strategy with these limits.
pub fn rolling_update(unavailable: impl Into<Value>, surge: impl Into<Value>) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable.into(), "maxSurge": surge.into()}})
}

/// Nodes with taints and pods of every kind: failed, finished, deleting, unbound, orphaned and somebody else's.
pub fn mixed() -> Cluster {
    let mut cluster = Cluster::settled(10);
    let taint = |key: &str, effect: &str| v1::Taint {
        key: key.into(),
        value: "v".into(),
        effect: effect.into(),
    };
    cluster.nodes[0].taints = vec![taint("a", "NoSchedule"), taint("b", "NoExecute")];
    cluster.nodes[1].taints = vec![taint("node.kubernetes.io/unreachable", "NoExecute")];
    cluster.nodes[2].unschedulable = true;
    cluster.pods[3].phase = v1::PodPhase::Failed.into();
    cluster.pods[4].phase = v1::PodPhase::Succeeded.into();
    cluster.pods[5].deletion_time = moment(NOW - 5);
    cluster.pods[6].target_node_name = std::mem::take(&mut cluster.pods[6].node_name);
    cluster.pods[7].controller = None;
    cluster.pods[8].labels.clear();
    cluster.pods[9].controller.as_mut().expect("a controller").uid = "another".into();
    cluster.nodes.truncate(9);
    let spec = &mut cluster.daemon_set["spec"]["template"]["spec"];
    spec["tolerations"] = json!([{"key": "a", "operator": "Equal", "value": "v"}, {"operator": "Gt", "key": "c", "value": "5"}]);
    spec["nodeSelector"] = json!({"kubernetes.io/os": "linux"});
    spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]},
    ]}}});
    cluster
}

/// What an executor sends back besides: the state that the plan gave, its own writes and a report that got lost.
pub fn carried(mut request: v1::PlanRequest) -> v1::PlanRequest {
    let plan = engine()
        .plan(request.clone(), &never)
        .expect("a plan")
        .plan
        .expect("a plan");
    let report = report_of(&plan, v1::Result::Failed);
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    snapshot.state = plan.state;
    snapshot.own_writes = vec![v1::OwnWrite {
        resource: "daemonsets".into(),
        written_resource_version: "1001".into(),
        observed_resource_version: "1000".into(),
    }];
    request.undelivered_reports = vec![report];
    request
}

/// With so many pods in a plan at most, so that another follows at once.
pub fn burst(mut request: v1::PlanRequest, burst: u32) -> v1::PlanRequest {
    request.options = Some(v1::PlanOptions {
        burst: Some(burst),
        ..Default::default()
    });
    request
}

pub fn strict(mut request: v1::PlanRequest) -> v1::PlanRequest {
    request.options = Some(v1::PlanOptions {
        profile: v1::Profile::UpstreamStrict.into(),
        enabled_deviations: vec![v1::Deviation::DeleteWithUid.into()],
        feature_gates: vec![v1::FeatureGate::TaintTolerationComparisonOperators.into()],
        burst: Some(3),
        ..Default::default()
    });
    request
}

pub fn with_state(mut request: v1::PlanRequest) -> v1::PlanRequest {
    let snapshot = request.snapshot.as_mut().expect("a snapshot");
    let node_name = super::cluster::node(3).name;
    snapshot.state = Some(v1::ReconcileState {
        failed_pod_backoffs: vec![v1::FailedPodBackoff {
            observed_generation: 1,
            node_name: node_name.clone(),
            delay: Some(Duration { seconds: 4, nanos: 0 }),
            last: moment(NOW - 2),
        }],
        pod_name_collisions: vec![v1::PodNameCollision {
            node_name,
            count: 2,
            refused_count: 1,
        }],
        ..Default::default()
    });
    request
}

/// Requests for clusters in every state, by name.
pub fn requests() -> Vec<(&'static str, v1::PlanRequest)> {
    let mut history = rollout(4, rolling_update(1, 0));
    for number in 2..14 {
        let mut revision = history.revisions[0].clone();
        revision["metadata"]["name"] = json!(format!("node-agent-{number}"));
        revision["metadata"]["uid"] = json!(format!("revision-uid-{number}"));
        revision["revision"] = json!(number);
        revision["data"]["spec"]["template"]["metadata"]["labels"]["round"] = json!(number.to_string());
        history.revisions.push(revision);
    }
    let mut deleting = Cluster::settled(3);
    deleting.daemon_set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    vec![
        ("absent", v1::PlanRequest::default()),
        ("new", inline(&Cluster::empty(3))),
        ("new-burst", burst(inline(&Cluster::empty(3)), 1)),
        ("new-carried", carried(inline(&Cluster::empty(3)))),
        ("settled", inline(&Cluster::settled(4))),
        ("buckets", Cluster::settled(6).request(4, Form::InlineWithDigest)),
        ("digests", Cluster::settled(6).request(2, Form::DigestOnly)),
        ("mixed", inline(&mixed())),
        ("mixed-strict", strict(inline(&mixed()))),
        ("mixed-state", with_state(inline(&mixed()))),
        ("mixed-carried", carried(inline(&mixed()))),
        ("rollout", inline(&rollout(5, rolling_update(2, 0)))),
        ("surge", inline(&rollout(5, rolling_update(0, "30%")))),
        ("on-delete", inline(&rollout(5, json!({"type": "OnDelete"})))),
        ("history", inline(&history)),
        ("deleting", inline(&deleting)),
    ]
}

/// What an executor tells after every action of a plan ended like this.
pub fn report_of(plan: &v1::Plan, result: v1::Result) -> v1::ReportRequest {
    let subject = |kind| match kind {
        Some(v1::action::Kind::CreatePod(create)) => {
            Some(v1::outcome::Subject::CreatedPod(v1::ExpectedCreate {
                pod_name: create.pod_name,
                node_name: create.node_name,
            }))
        }
        Some(v1::action::Kind::DeletePod(delete)) => Some(v1::outcome::Subject::DeletedPodUid(
            delete.pod.unwrap_or_default().uid,
        )),
        _ => None,
    };
    v1::ReportRequest {
        workload: plan.workload.clone(),
        plan_id: plan.plan_id.clone(),
        state: plan.state.clone(),
        outcomes: actions(plan)
            .map(|action| v1::Outcome {
                action_id: action.id,
                result: result.into(),
                message: result.as_str_name().to_lowercase(),
                http_status: 409,
                subject: subject(action.kind),
            })
            .collect(),
        requeue_after: plan.requeue_after,
        plan_error: plan.error.clone(),
        ..Default::default()
    }
}

/// Reports after plans for these clusters, by name.
pub fn reports() -> Vec<(&'static str, v1::ReportRequest)> {
    let plan_of = |request| {
        engine()
            .plan(request, &never)
            .expect("a plan")
            .plan
            .expect("a plan")
    };
    let (new, mixed) = (plan_of(inline(&Cluster::empty(3))), plan_of(inline(&mixed())));
    let burst = plan_of(burst(inline(&Cluster::empty(3)), 1));
    vec![
        ("absent", v1::ReportRequest::default()),
        ("succeeded", report_of(&new, v1::Result::Succeeded)),
        ("burst-succeeded", report_of(&burst, v1::Result::Succeeded)),
        ("burst-failed", report_of(&burst, v1::Result::Failed)),
        ("exists", report_of(&new, v1::Result::AlreadyExists)),
        ("taken", report_of(&new, v1::Result::NameTaken)),
        ("not-found", report_of(&mixed, v1::Result::NotFound)),
        ("terminating", report_of(&new, v1::Result::NamespaceTerminating)),
        ("failed", report_of(&mixed, v1::Result::Failed)),
        ("skipped", report_of(&mixed, v1::Result::Skipped)),
    ]
}
