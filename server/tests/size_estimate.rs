//! The size estimate: a request that would take many times its bytes in memory is refused before it is decoded, and the error names
//! the field.

mod support;

use std::collections::BTreeMap;

use nodewise_executor::reconcile;
use nodewise_proto::v1;
use nodewise_server::{Config, Refusal, Request, decode, estimate, never};
use prost::Message as _;
use serde_json::{Value, json};
use support::{Cluster, Form, Server, actions, engine};
use tonic::Code;
use tonic_types::StatusExt as _;

/// The path of the DaemonSet.
const OBJECT: &str = "snapshot.workload.daemon_set.object";

/// Entries of a list that is too long.
const MANY: usize = 150_000;

fn refused<M: Request + std::fmt::Debug>(bytes: Vec<u8>) -> String {
    let status = decode::<M>(bytes.into()).expect_err("too much memory");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.get_details_retry_info().is_none(), "a retry does not help");
    let violations = status
        .get_details_bad_request()
        .expect("a violation")
        .field_violations;
    // Without the indices, which depend on how much fits.
    violations[0].field.split(['[', ']']).step_by(2).collect()
}

fn settled_with(change: impl FnOnce(&mut v1::Snapshot)) -> Vec<u8> {
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    change(request.snapshot.as_mut().expect("a snapshot"));
    request.encode_to_vec()
}

#[test]
fn lists_of_many_tiny_entries_are_refused() {
    let state = |state: v1::ReconcileState| settled_with(|snapshot| snapshot.state = Some(state));
    let expecting = |expectations| {
        state(v1::ReconcileState {
            expectations: Some(expectations),
            ..Default::default()
        })
    };
    let buckets = |data: Vec<u8>| {
        vec![v1::Bucket {
            data: Some(data.into()),
            ..Default::default()
        }]
    };
    let template = |field: &str, value: Value| {
        let mut cluster = Cluster::settled(2);
        cluster.daemon_set["spec"]["template"]["spec"][field] = value;
        cluster.request(1, Form::Inline).encode_to_vec()
    };
    let labels: BTreeMap<_, _> = (0..MANY).map(|number| (number.to_string(), "")).collect();
    let annotated = || {
        let mut cluster = Cluster::settled(2);
        cluster.daemon_set["metadata"]["annotations"] = json!(labels);
        cluster.request(1, Form::Inline).encode_to_vec()
    };
    let table = [
        ("undelivered_reports", [0x1a, 0].repeat(MANY)),
        (
            "snapshot.revisions",
            settled_with(|snapshot| snapshot.revisions = vec![v1::ControllerRevision::default(); MANY]),
        ),
        (
            "snapshot.node_buckets",
            settled_with(|snapshot| snapshot.node_buckets = vec![v1::Bucket::default(); MANY]),
        ),
        (
            "snapshot.pod_buckets.data.pods",
            settled_with(|snapshot| snapshot.pod_buckets = buckets([0x0a, 0].repeat(MANY))),
        ),
        (
            "snapshot.node_buckets.data.nodes",
            settled_with(|snapshot| snapshot.node_buckets = buckets([0x0a, 0].repeat(MANY))),
        ),
        (
            "snapshot.own_writes",
            settled_with(|snapshot| snapshot.own_writes = vec![v1::OwnWrite::default(); MANY]),
        ),
        (
            "snapshot.state.failed_pod_backoffs",
            state(v1::ReconcileState {
                failed_pod_backoffs: vec![v1::FailedPodBackoff::default(); MANY],
                ..Default::default()
            }),
        ),
        (
            "snapshot.state.pod_name_collisions",
            state(v1::ReconcileState {
                pod_name_collisions: vec![v1::PodNameCollision::default(); MANY],
                ..Default::default()
            }),
        ),
        (
            "snapshot.state.used_pod_names",
            state(v1::ReconcileState {
                used_pod_names: vec![v1::UsedPodName::default(); MANY],
                ..Default::default()
            }),
        ),
        (
            "snapshot.state.expectations.creates",
            expecting(v1::Expectations {
                creates: vec![v1::ExpectedCreate::default(); MANY],
                ..Default::default()
            }),
        ),
        (
            "snapshot.state.expectations.delete_uids",
            expecting(v1::Expectations {
                delete_uids: vec![String::new(); MANY],
                ..Default::default()
            }),
        ),
        (OBJECT, template("tolerations", json!(vec![json!({}); MANY]))),
        (
            OBJECT,
            template("affinity", json!({"nodeAffinity": vec![json!({}); MANY]})),
        ),
        (OBJECT, template("nodeSelector", json!(labels))),
        (OBJECT, template("args", json!("<".repeat(MANY * 4)))),
        (OBJECT, annotated()),
    ];
    for (field, bytes) in table {
        assert_eq!(refused::<v1::PlanRequest>(bytes), field, "{field}");
    }
    let outcomes = v1::ReportRequest {
        outcomes: vec![v1::Outcome::default(); MANY],
        ..Default::default()
    };
    assert_eq!(refused::<v1::ReportRequest>(outcomes.encode_to_vec()), "outcomes");
}

/// A request with these policies and measurements.
fn governed(policies: Vec<v1::RolloutPolicy>, measurements: Vec<v1::Measurement>) -> Vec<u8> {
    settled_with(|snapshot| {
        let workload = snapshot
            .workload
            .as_mut()
            .and_then(|workload| workload.kind.as_mut());
        let Some(v1::workload::Kind::DaemonSet(daemon_set)) = workload else {
            panic!("no DaemonSet");
        };
        (daemon_set.rollout_policies, daemon_set.measurements) = (policies, measurements);
    })
}

/// A policy with so many stages and checks, and with the status of so many workloads.
fn policy(stages: usize, targets: usize) -> v1::RolloutPolicy {
    let stage = |number: usize| json!({"name": format!("stage-{number}"), "analysis": [{"name": "c", "webhook": {"url": "http://a/"}}]});
    let stages: Vec<_> = (0..stages).map(stage).collect();
    let object = json!({
        "metadata": {"name": "agents", "uid": "p", "resourceVersion": "1"},
        "spec": {"targets": {"names": ["node-agent"]}, "stages": stages},
        "status": {"targets": vec![json!({}); targets]},
    });
    v1::RolloutPolicy {
        object: object.to_string().into(),
        ..v1::RolloutPolicy::default()
    }
}

fn measured(value: String) -> v1::Measurement {
    v1::Measurement {
        id: Some(v1::MeasurementId::default()),
        result: Some(v1::measurement::Result::Value(value)),
        ..v1::Measurement::default()
    }
}

// Whoever owns a namespace writes its policies, so a plan must not fail for a request full of them. The memory is held.
#[test]
fn policies_and_what_was_measured_for_them_are_counted() {
    let taken = |policies: Vec<_>, measurements: Vec<_>| {
        estimate::<v1::PlanRequest>(&governed(policies, measurements)).expect("it is accepted")
    };
    let without = taken(Vec::new(), Vec::new());
    let of_policies = |policies| taken(policies, Vec::new()) - without;
    let of_values =
        |values: Vec<String>| taken(Vec::new(), values.into_iter().map(measured).collect()) - without;
    let one = of_policies(vec![policy(10, 1)]);
    assert!(one > 20_000 && one < 200_000, "{one}");
    let full = of_policies(vec![policy(32, 1); 100]);
    assert!(full > 3_000_000 && full < 100_000_000, "{full}");
    // An entry of three bytes becomes a status with all its fields.
    let targets = of_policies(vec![policy(1, 10_000)]);
    assert!(targets > 10_000 * 500, "{targets}");
    let zeros = |count: usize| format!("[{}0]", "0,".repeat(count));
    let tree = of_values(vec![zeros(30_000); 10]);
    assert!(tree > 300_000 * 32, "{tree}");
    // A longer value is not read.
    let long = of_values(vec![zeros(300_000)]);
    assert!(long < 300_000 * 8, "{long}");
    let empty = (
        vec![v1::RolloutPolicy::default(); MANY],
        vec![v1::Measurement::default(); MANY],
    );
    for (field, policies, measurements) in [
        ("rollout_policies.object", vec![policy(1, 300_000); 5], Vec::new()),
        ("rollout_policies", empty.0, Vec::new()),
        ("measurements", Vec::new(), empty.1),
    ] {
        let refused = refused::<v1::PlanRequest>(governed(policies, measurements));
        assert_eq!(refused, format!("snapshot.workload.daemon_set.{field}"));
    }
}

#[test]
fn large_real_clusters_are_accepted() {
    for nodes in [0, 1, 100, 3_000] {
        for cluster in [Cluster::empty(nodes), Cluster::settled(nodes)] {
            let request = cluster.request(16, Form::InlineWithDigest);
            let decoded = decode::<v1::PlanRequest>(request.encode_to_vec().into());
            assert_eq!(decoded.expect("a request"), request);
        }
    }
}

/// A long field of the workload is not repeated in the explanation of each node.
#[test]
fn the_size_of_an_explanation_is_in_proportion_to_its_request() {
    let words = |count: usize| (0..count).map(|number| format!("{number:030}"));
    let selector: BTreeMap<_, _> = words(1_000).map(|word| (word, "v")).collect();
    let values = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "k", "operator": "In", "values": words(10_000).collect::<Vec<_>>()}]}]}}});
    let table = [
        ("nodeSelector", json!(selector)),
        ("nodeSelector", json!({"k": "v".repeat(100_000)})),
        ("nodeName", json!("n".repeat(253))),
        ("affinity", values),
    ];
    for (field, value) in table {
        let mut cluster = Cluster::empty(0);
        cluster.daemon_set["spec"]["template"]["spec"][field] = value;
        cluster.nodes = (0..4_000)
            .map(|number| v1::Node {
                name: format!("{number:x}"),
                ..Default::default()
            })
            .collect();
        let bytes = cluster.request(1, Form::Inline).encode_to_vec();
        let most = 2 * bytes.len() + (1 << 20);
        let request = decode::<v1::ExplainRequest>(bytes.into()).expect("a request");
        let answer = engine().explain(request, &never).expect("an answer");
        assert_eq!(answer.nodes.len(), 4_000);
        assert!(answer.nodes.iter().all(|node| !node.message.is_empty()));
        assert!(!answer.nodes[0].details.is_empty(), "{field}");
        assert!(
            answer.encoded_len() < most,
            "{field}: {} of {most}",
            answer.encoded_len()
        );
    }
}

#[test]
fn explanations_of_all_nodes_have_the_details_of_each() {
    let mut cluster = Cluster::empty(3_000);
    cluster.daemon_set["spec"]["template"]["spec"]["nodeSelector"] =
        json!({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "disk": "ssd"});
    let request = cluster.request(1, Form::Inline);
    let explain = |node_name: &str| {
        let request = v1::ExplainRequest {
            snapshot: request.snapshot.clone(),
            options: request.options.clone(),
            node_name: node_name.to_owned(),
        };
        engine().explain(request, &never).expect("an answer").nodes
    };
    let all = explain("");
    assert_eq!(all.len(), 3_000);
    for node in all.iter().step_by(500) {
        assert_eq!(node.details.len(), 3);
        assert_eq!(&explain(&node.node_name)[0], node);
    }
}

/// The plan for a workload whose name, namespace and uid have `length` bytes, and which selects these orphans.
fn orphans(length: usize, pods: impl Iterator<Item = v1::Pod>) -> Result<v1::Plan, Refusal> {
    let mut cluster = Cluster::empty(1);
    for field in ["name", "namespace", "uid"] {
        cluster.daemon_set["metadata"][field] = json!("n".repeat(length));
    }
    cluster.daemon_set["spec"]["selector"] =
        json!({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]});
    cluster.pods = pods.collect();
    let request = cluster.request(1, Form::Inline).encode_to_vec();
    let request = decode::<v1::PlanRequest>(request.into()).expect("a request");
    Ok(engine().plan(request, &never)?.plan.expect("a plan"))
}

/// Others than the owner of the workload can create orphans, so small orphans must not make a request fail, however long the name
/// of the workload. A plan adopts a bounded number of them, so its size is bounded too.
#[test]
fn small_orphans_are_adopted_by_a_workload_with_a_long_name() {
    let tiny = |count: usize| {
        (0..count).map(|number| v1::Pod {
            name: format!("{number:x}"),
            uid: format!("{number:x}"),
            ..Default::default()
        })
    };
    let real = (0..20_000).map(|number| v1::Pod {
        controller: None,
        ..support::pod(number, "h")
    });
    for plan in [
        orphans(12, tiny(5_000)),
        orphans(253, tiny(5_000)),
        orphans(60, real),
    ] {
        let plan = plan.expect("a plan");
        let adopted =
            actions(&plan).filter(|action| matches!(action.kind, Some(v1::action::Kind::AdoptPod(_))));
        // The limit is 1,000. The created revision counts too.
        assert_eq!(adopted.count(), 999, "later plans adopt the rest");
    }
}

#[test]
fn reports_of_large_plans_are_accepted() {
    let outcome = |number: u32| v1::Outcome {
        action_id: number + 1,
        result: v1::Result::Succeeded.into(),
        ..Default::default()
    };
    let report = |outcomes| v1::ReportRequest {
        workload: Some(v1::WorkloadReference::default()),
        outcomes,
        ..Default::default()
    };
    let creates = report(
        (0..200_000)
            .map(|number| v1::Outcome {
                subject: Some(v1::outcome::Subject::CreatedPod(v1::ExpectedCreate {
                    pod_name: format!("node-agent-bcdfg{number:05}"),
                    node_name: support::node(number as usize).name,
                })),
                ..outcome(number)
            })
            .collect(),
    );
    let bytes = creates.encode_to_vec();
    assert_eq!(
        decode::<v1::ReportRequest>(bytes.into()).expect("a report"),
        creates
    );
    let mut adoptions: Vec<_> = (0..100_000).map(outcome).collect();
    assert_eq!(
        refused::<v1::ReportRequest>(report(adoptions.clone()).encode_to_vec()),
        "outcomes"
    );
    adoptions[70_000].result = v1::Result::Failed.into();
    adoptions.retain(reconcile::is_telling);
    let left = report(adoptions);
    assert_eq!(left.outcomes.len(), 1);
    decode::<v1::ReportRequest>(left.encode_to_vec().into()).expect("a report");
}

/// A DaemonSet whose container has these arguments and this environment.
fn running(args: &str, env: impl IntoIterator<Item = Value>) -> Cluster {
    let mut cluster = Cluster::settled(2);
    let container = &mut cluster.daemon_set["spec"]["template"]["spec"]["containers"][0];
    container["args"] = json!([args]);
    container["env"] = env.into_iter().collect();
    cluster
}

/// `count` environment variables of about fifty bytes each.
fn variables(count: usize) -> impl Iterator<Item = Value> {
    (0..count)
        .map(|number| json!({"name": format!("VARIABLE_{number:05}"), "value": format!("value-{number:05}")}))
}

/// The cluster with `count` further revisions, each of another template.
fn with_history(mut cluster: Cluster, count: usize) -> Cluster {
    for number in 0..count {
        let mut revision = cluster.revisions[0].clone();
        revision["metadata"]["name"] = json!(format!("node-agent-{number}"));
        revision["metadata"]["uid"] = json!(format!("uid-{number}"));
        revision["revision"] = json!(number + 2);
        let mut template = cluster.daemon_set["spec"]["template"].clone();
        template["metadata"]["annotations"] = json!({"round": number.to_string()});
        revision["data"] = json!({"spec": {"template": template}});
        cluster.revisions.push(revision);
    }
    cluster
}

/// An object as an apiserver serves it: with managed fields.
fn served(mut object: Value) -> Value {
    fn fields(value: &Value) -> Value {
        let members = value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (format!("f:{key}"), fields(value)));
        let items = value
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| (format!("k:{}", json!({"name": item["name"]})), fields(item)));
        members.chain(items).collect::<serde_json::Map<_, _>>().into()
    }
    object["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields(&object)}]);
    object
}

/// Objects of about 1.5 MiB, the most that an apiserver stores, are planned for.
#[test]
fn the_largest_objects_of_an_apiserver_are_accepted() {
    let table = [
        (
            "99 kB of variables",
            with_history(running("", variables(2_000)), 11),
        ),
        (
            "8 kB, a thousand times",
            with_history(running("", variables(150)), 1_000),
        ),
        ("all that fits", with_history(running("", variables(28_000)), 2)),
        (
            "short variables",
            running("", (0..40_000).map(|_| json!({"name": "A", "value": "b"}))),
        ),
        (
            "a configuration as argument",
            with_history(running(&"key: value # a line\n".repeat(50_000), []), 3),
        ),
        (
            "a page as argument",
            running(&"<p>One of many lines of a page</p>\n".repeat(35_000), []),
        ),
        ("small objects", running("", vec![json!({"a": 0}); 150_000])),
        ("an affinity to nodes by name", {
            let names: Vec<_> = (0..16_384)
                .map(|number| format!("ip-10-0-0-{number}.internal"))
                .collect();
            let mut cluster = running("", []);
            cluster.daemon_set["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]},
                ]},
            }});
            cluster
        }),
        ("an annotation", {
            let mut cluster = Cluster::settled(2);
            cluster.daemon_set["metadata"]["annotations"]["note"] = json!("x".repeat(256 << 10));
            cluster
        }),
    ];
    for (what, cluster) in table {
        for (form, cluster) in [("projected", cluster.clone()), ("served", as_served(cluster))] {
            let bytes = cluster.request(1, Form::Inline).encode_to_vec();
            let request = decode::<v1::PlanRequest>(bytes.into())
                .unwrap_or_else(|status| panic!("{what}, {form}: {status}"));
            let plan = engine()
                .plan(request, &never)
                .unwrap_or_else(|refusal| panic!("{what}, {form}: {refusal:?}"));
            let plan = plan.plan.expect("a plan");
            let creates =
                actions(&plan).any(|action| matches!(action.kind, Some(v1::action::Kind::CreateRevision(_))));
            assert!(
                creates || what == "an annotation",
                "{what}, {form}: a new template is a new revision"
            );
        }
    }
}

fn as_served(cluster: Cluster) -> Cluster {
    Cluster {
        daemon_set: served(cluster.daemon_set),
        revisions: cluster.revisions.into_iter().map(served).collect(),
        ..cluster
    }
}

#[test]
fn the_executor_leaves_out_managed_fields() {
    let cluster = with_history(running("", variables(1_000)), 1);
    let projected = nodewise_projection::Workload::daemon_set_from_json(&served(cluster.daemon_set.clone()))
        .expect("a DaemonSet");
    assert_eq!(projected.object, cluster.daemon_set.to_string());
    for revision in cluster.revisions {
        let projected =
            nodewise_projection::Revision::from_json(&served(revision.clone())).expect("a revision");
        assert_eq!(projected.object.expect("all of it"), revision.to_string());
    }
}

#[test]
fn the_decoder_refuses_bytes_that_are_no_message() {
    for bytes in [&[0x0a, 0xff][..], &[0x0a, 2, 0x4a], &[0xff; 12], &[0x1a, 0x80]] {
        let status = decode::<v1::PlanRequest>(bytes.to_vec().into()).expect_err("broken");
        assert_eq!(status.code(), Code::Internal, "{status}");
    }
}

#[tokio::test]
async fn the_service_estimates_requests_before_it_decodes_them() {
    let server = Server::start(Config::default()).await;
    let mut client = server.client().await;
    let heavy = v1::PlanRequest {
        undelivered_reports: vec![v1::ReportRequest::default(); MANY],
        ..Default::default()
    };
    let refused = client.plan(heavy.clone()).await.expect_err("too much memory");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().starts_with("undelivered_reports["), "{refused}");
    let question = v1::PlanStreamRequest {
        id: "a".into(),
        request: Some(heavy),
    };
    let mut answers = client
        .plan_stream(tokio_stream::iter([question]))
        .await
        .expect("a stream")
        .into_inner();
    let refused = answers.message().await.expect_err("too much memory");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(
        refused.message().starts_with("request.undelivered_reports["),
        "{refused}"
    );
    let small = Cluster::empty(1).request(1, Form::Inline);
    client.plan(small).await.expect("the server goes on");
}

/// A revision of another template, whose JSON has `bytes` bytes.
fn revision_of(number: usize, bytes: usize) -> v1::ControllerRevision {
    let object = |padding: &str| {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number,
            "metadata": {
                "name": format!("node-agent-{number}"), "uid": format!("uid-of-old-{number}"), "namespace": "monitoring",
                "labels": {"app": "node-agent", "controller-revision-hash": format!("hash-{number}")},
            },
            "data": {"spec": {"template": {"metadata": {"annotations": {"padding": padding}}}}},
        });
        serde_json::to_vec(&object).expect("JSON")
    };
    let padding = "x".repeat(bytes - object("").len());
    v1::ControllerRevision {
        object: object(&padding).into(),
        ..Default::default()
    }
}

#[test]
fn revisions_may_fill_the_longest_message() {
    const EACH: usize = 4 << 20;
    let with = |revisions: Vec<v1::ControllerRevision>| {
        let mut request = Cluster::settled(1).request(1, Form::Inline);
        request
            .snapshot
            .as_mut()
            .expect("a snapshot")
            .revisions
            .extend(revisions);
        request.encode_to_vec()
    };
    let longest = Config::default().max_message_size.as_usize();
    // One revision fewer than fits: the rest of the message takes some bytes too.
    let all = with(
        (1..longest / EACH)
            .map(|number| revision_of(number, EACH))
            .collect(),
    );
    assert!(
        (longest - EACH..longest).contains(&all.len()),
        "{} bytes",
        all.len()
    );
    let request: v1::PlanRequest = decode(all.into()).expect("not too much memory");
    let plan = engine()
        .plan(request, &never)
        .expect("a plan")
        .plan
        .expect("a plan");
    assert_eq!(plan.warnings, []);
}
