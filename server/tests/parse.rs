//! The parser finds every error of a request and names its field.

mod support;

use nodewise_proto::{Duration, Timestamp, pods, v1};
use nodewise_server::{Engine, Limits, Refusal, never};
use prost::Message as _;
use serde_json::{Value, json};
use support::{Cluster, Form, NOW, engine, moment, node, pod};

/// The violations of a request as `field: description`.
fn violations(request: v1::PlanRequest) -> Vec<String> {
    match engine().plan(request, &never) {
        Err(Refusal::Invalid { violations, .. }) => violations.iter().map(ToString::to_string).collect(),
        other => panic!("expected violations, got {other:?}"),
    }
}

/// A request for two nodes with a pod each, changed.
fn changed(change: impl FnOnce(&mut v1::Snapshot)) -> v1::PlanRequest {
    let mut request = Cluster::settled(2).request(1, Form::Inline);
    change(request.snapshot.as_mut().unwrap());
    request
}

fn with_nodes(nodes: Vec<v1::Node>) -> v1::PlanRequest {
    let bucket = v1::NodeBucket {
        nodes,
        ..Default::default()
    };
    changed(|snapshot| snapshot.node_buckets[0].data = Some(bucket.encode_to_vec().into()))
}

/// A bucket of pods without shared metadata.
fn pods_alone(pods: Vec<v1::Pod>) -> Vec<u8> {
    let bucket = v1::PodBucket {
        pods,
        ..Default::default()
    };
    bucket.encode_to_vec()
}

fn with_pods(pods: Vec<v1::Pod>) -> v1::PlanRequest {
    changed(|snapshot| snapshot.pod_buckets[0].data = Some(pods_alone(pods).into()))
}

fn with_pod(change: impl FnOnce(&mut v1::Pod)) -> v1::PlanRequest {
    let mut pods = vec![pod(0, "h"), pod(1, "h")];
    change(&mut pods[1]);
    with_pods(pods)
}

fn with_daemon_set(change: impl FnOnce(&mut Value)) -> v1::PlanRequest {
    let mut cluster = Cluster::settled(2);
    change(&mut cluster.daemon_set);
    cluster.request(1, Form::Inline)
}

fn with_state(state: v1::ReconcileState) -> v1::PlanRequest {
    changed(|snapshot| snapshot.state = Some(state))
}

fn with_options(options: v1::PlanOptions) -> v1::PlanRequest {
    v1::PlanRequest {
        options: Some(options),
        ..Cluster::settled(2).request(1, Form::Inline)
    }
}

/// Checks that each request has exactly one violation, which begins with the expected text.
fn check(table: Vec<(v1::PlanRequest, &str)>) {
    for (request, expected) in table {
        let found = violations(request);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "expected `{expected}`, found {found:#?}"
        );
    }
}

#[test]
fn errors_of_shared_metadata_name_the_field() {
    let shared = |change: fn(&mut v1::PodBucket)| {
        changed(|snapshot| {
            let mut bucket = pods::sharing(vec![pod(0, "h"), pod(1, "h")]);
            change(&mut bucket);
            snapshot.pod_buckets[0].data = Some(bucket.encode_to_vec().into());
        })
    };
    assert!(engine().plan(shared(|_| ()), &never).is_ok());
    check(vec![
        (
            shared(|bucket| bucket.pods[1].shared_metadata = 2),
            "snapshot.pod_buckets[0].data.pods[1].shared_metadata: is 2; the bucket's shared_metadata has 1 entries",
        ),
        (
            shared(|bucket| bucket.pods[1].labels = node(0).labels),
            "snapshot.pod_buckets[0].data.pods[1].shared_metadata: is set, and so are labels or a controller of the pod's own",
        ),
        (
            shared(|bucket| bucket.pods[0].controller = Some(v1::ControllerReference::default())),
            "snapshot.pod_buckets[0].data.pods[0].shared_metadata: is set, and so are labels or a controller of the pod's own",
        ),
        (
            shared(|bucket| bucket.shared_metadata[0].controller.as_mut().unwrap().uid.clear()),
            "snapshot.pod_buckets[0].data.shared_metadata[0].controller.uid: is required",
        ),
    ]);
}

#[test]
fn a_valid_request_is_planned_for() {
    for form in [Form::Inline, Form::InlineWithDigest] {
        for buckets in [1, 7, 64] {
            let plan = engine()
                .plan(Cluster::settled(5).request(buckets, form), &never)
                .unwrap()
                .plan
                .unwrap();
            assert_eq!(plan.verdict(), v1::Verdict::Noop, "{form:?} {buckets}: {plan:#?}");
        }
    }
}

#[test]
fn errors_of_the_snapshot_name_the_field() {
    check(vec![
        (v1::PlanRequest::default(), "snapshot: is required"),
        (changed(|s| s.now = None), "snapshot.now: is required"),
        (
            changed(|s| s.now = moment(-62_135_596_801)),
            "snapshot.now.seconds: ",
        ),
        (changed(|s| s.now = moment(i64::MAX)), "snapshot.now.seconds: "),
        (
            changed(|s| {
                s.now = Some(Timestamp {
                    seconds: 0,
                    nanos: -1,
                });
            }),
            "snapshot.now.nanos: ",
        ),
        (
            changed(|s| {
                s.now = Some(Timestamp {
                    seconds: 0,
                    nanos: 1_000_000_000,
                });
            }),
            "snapshot.now.nanos: ",
        ),
        (changed(|s| s.workload = None), "snapshot.workload: is required"),
        (
            changed(|s| s.workload = Some(v1::Workload::default())),
            "snapshot.workload: is required",
        ),
        (
            changed(|s| s.bucket_count = 0),
            "snapshot.bucket_count: is required",
        ),
        (
            changed(|s| {
                s.node_buckets.clear();
            }),
            "snapshot.node_buckets: has 0 buckets; bucket_count is 1",
        ),
        (
            changed(|s| s.pod_buckets.push(v1::Bucket::default())),
            "snapshot.pod_buckets: has 2 buckets; bucket_count is 1",
        ),
        (
            changed(|s| s.digest_function = 99),
            "snapshot.digest_function: 99 is no DigestFunction",
        ),
        (
            changed(|s| {
                let bucket = s.node_buckets[0].data.take().unwrap();
                s.node_buckets[0] = support::bucket_message(bucket.to_vec(), Form::InlineWithDigest);
            }),
            "snapshot.digest_function: is required",
        ),
        (
            changed(|s| {
                s.caches_synced = false;
                s.node_buckets[0].data = Some(bytes::Bytes::new());
            }),
            "snapshot.caches_synced: is false, and there are no nodes",
        ),
        (
            changed(|s| {
                s.caches_synced = false;
                s.pod_buckets[0].data = Some(bytes::Bytes::new());
            }),
            "snapshot.caches_synced: is false, and there are no pods",
        ),
        (
            changed(|s| s.own_writes.push(v1::OwnWrite::default())),
            "snapshot.own_writes[0].resource: is required",
        ),
    ]);
}

#[test]
fn without_synced_caches_a_snapshot_needs_nodes_and_pods() {
    let request = changed(|snapshot| snapshot.caches_synced = false);
    assert!(engine().plan(request, &never).is_ok());
}

#[test]
fn errors_of_buckets_name_the_field() {
    let digest = |bucket: fn(&mut v1::Snapshot) -> &mut v1::Bucket, change: fn(&mut v1::Bucket)| {
        let mut request = Cluster::settled(2).request(1, Form::InlineWithDigest);
        change(bucket(request.snapshot.as_mut().unwrap()));
        request
    };
    check(vec![
        (
            digest(
                |s| &mut s.node_buckets[0],
                |bucket| bucket.digest = vec![0; 32].into(),
            ),
            "snapshot.node_buckets[0].digest: is not the SHA-256 of data",
        ),
        (
            digest(
                |s| &mut s.pod_buckets[0],
                |bucket| bucket.digest = vec![0; 31].into(),
            ),
            "snapshot.pod_buckets[0].digest: has 31 bytes",
        ),
        (
            changed(|s| s.pod_buckets[0] = v1::Bucket::default()),
            "snapshot.pod_buckets[0]: has neither data nor a digest",
        ),
        (
            changed(|s| s.node_buckets[0].data = Some(vec![0x0a, 0x05, 0x00].into())),
            "snapshot.node_buckets[0].data: ends within an element of 5 bytes",
        ),
        (
            changed(|s| s.node_buckets[0].data = Some(vec![0x0a, 0x02, 0x0a, 0x07].into())),
            "snapshot.node_buckets[0].data.nodes[0]: ",
        ),
        (
            changed(|s| s.pod_buckets[0].data = Some(vec![0xff].into())),
            "snapshot.pod_buckets[0].data: ",
        ),
        (
            with_nodes(vec![v1::Node {
                name: "x".repeat(1 << 20),
                ..node(0)
            }]),
            "snapshot.node_buckets[0].data.nodes[0].name: has 1048576 bytes",
        ),
    ]);
    // A node in the wrong one of two buckets, and a pod whose target node belongs to the other.
    let mut request = Cluster::settled(2).request(2, Form::Inline);
    let snapshot = request.snapshot.as_mut().unwrap();
    snapshot.node_buckets.swap(0, 1);
    snapshot.pod_buckets.swap(0, 1);
    let found = violations(request);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(
        found
            .iter()
            .all(|violation| violation.contains("which belongs to bucket")),
        "{found:#?}"
    );
    assert!(
        found
            .iter()
            .any(|violation| violation.starts_with("snapshot.pod_buckets[")),
        "{found:#?}"
    );
}

#[test]
fn errors_of_nodes_name_the_field() {
    let one = |change: fn(&mut v1::Node)| {
        let mut nodes = vec![node(0), node(1)];
        change(&mut nodes[1]);
        with_nodes(nodes)
    };
    check(vec![
        (
            one(|n| n.name = String::new()),
            "snapshot.node_buckets[0].data.nodes[1].name: is required",
        ),
        (
            with_nodes(vec![node(1), node(0), node(1)]),
            "snapshot.node_buckets[0].data.nodes[2].name: `ip-10-0-0-1",
        ),
        (
            one(|n| n.ready = 17),
            "snapshot.node_buckets[0].data.nodes[1].ready: 17 is no ConditionStatus",
        ),
        (
            one(|n| n.taints.push(v1::Taint::default())),
            "snapshot.node_buckets[0].data.nodes[1].taints[0].key: is required",
        ),
    ]);
}

#[test]
fn errors_of_pods_name_the_field() {
    let at = |rest: &str| format!("snapshot.pod_buckets[0].data.pods[1].{rest}");
    let in_list = |rest: &str| format!("snapshot.pod_buckets[0].data.pods.{rest}");
    let table: Vec<(v1::PlanRequest, String)> = vec![
        (with_pod(|p| p.name = String::new()), at("name: is required")),
        (with_pod(|p| p.uid = String::new()), at("uid: is required")),
        (
            with_pod(|p| p.name = pod(0, "h").name),
            in_list("name: `node-agent-00000` is there twice"),
        ),
        (with_pod(|p| p.uid = pod(0, "h").uid), in_list("uid: `33333333-")),
        (with_pod(|p| p.phase = 9), at("phase: 9 is no PodPhase")),
        (with_pod(|p| p.ready = -1), at("ready: -1 is no ConditionStatus")),
        (
            with_pod(|p| p.controller.as_mut().unwrap().uid = String::new()),
            at("controller.uid: is required"),
        ),
    ];
    for (request, expected) in table {
        check(vec![(request, &expected)]);
    }
    // Pods with the same name are found in different buckets too.
    let mut cluster = Cluster::settled(50);
    cluster.pods[49].name = cluster.pods[0].name.clone();
    let found = violations(cluster.request(16, Form::Inline));
    assert!(
        found.len() == 1 && found[0].ends_with("`node-agent-00000` is there twice"),
        "{found:?}"
    );
}

#[test]
fn errors_of_the_workload_name_the_field_inside_the_json() {
    let at = |rest: &str| format!("snapshot.workload.daemon_set.object: {rest}");
    let raw = |object: &'static [u8]| {
        changed(|s| {
            let kind = v1::workload::Kind::DaemonSet(v1::DaemonSet {
                object: object.into(),
                ..v1::DaemonSet::default()
            });
            s.workload = Some(v1::Workload { kind: Some(kind) });
        })
    };
    let table: Vec<(v1::PlanRequest, String)> = vec![
        (raw(b""), at("is required")),
        (
            with_daemon_set(|d| {
                d["metadata"]["annotations"] = json!({"a": "x".repeat(Limits::OBJECT_BYTES)});
            }),
            at("has 16"),
        ),
        (raw(b"{"), at("EOF")),
        (raw(b"[]"), at("invalid length 0")),
        (raw(b"\xff"), at("expected value")),
        (raw(b"{} x"), at("trailing characters")),
        (
            with_daemon_set(|d| d["kind"] = json!("Deployment")),
            at("kind: must be DaemonSet"),
        ),
        (
            with_daemon_set(|d| d["apiVersion"] = json!("apps/v1beta1")),
            at("apiVersion: must be apps/v1"),
        ),
        (
            with_daemon_set(|d| d["metadata"]["name"] = json!("")),
            at("metadata.name: is required"),
        ),
        (
            with_daemon_set(|d| d["metadata"]["namespace"] = Value::Null),
            at("metadata.namespace: is required"),
        ),
        (
            with_daemon_set(|d| d["metadata"]["uid"] = Value::Null),
            at("metadata.uid: is required"),
        ),
        (
            with_daemon_set(|d| d["metadata"]["generation"] = json!("1")),
            at("metadata.generation: invalid type"),
        ),
        (
            with_daemon_set(|d| d["spec"] = Value::Null),
            at("spec: is required"),
        ),
        (
            with_daemon_set(|d| d["spec"]["template"] = json!("t")),
            at("spec.template: is required and must be"),
        ),
        (
            with_daemon_set(|d| d["spec"]["minReadySeconds"] = json!(1.5)),
            at("spec.minReadySeconds: invalid type"),
        ),
        (
            with_daemon_set(|d| d["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"] = json!(1u64 << 40)),
            at("spec.updateStrategy.rollingUpdate.maxSurge: invalid value"),
        ),
        // D-22
        (
            with_daemon_set(|d| {
                d["spec"]["selector"] =
                    json!({"matchExpressions": [{"key": "app", "operator": "Near", "values": []}]});
            }),
            at("spec.selector.matchExpressions[0].operator: `Near`"),
        ),
        (
            with_daemon_set(|d| d["spec"]["selector"] = json!({"matchExpressions": [{"key": 1}]})),
            at("spec.selector.matchExpressions[0].key: invalid type"),
        ),
        (
            with_daemon_set(|d| d["spec"]["template"]["spec"]["tolerations"] = json!([{}, {"key": true}])),
            at("spec.template.spec.tolerations[1].key: invalid type"),
        ),
        (
            with_daemon_set(|d| d["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": 1})),
            at("spec.template.spec.nodeSelector.a: invalid type"),
        ),
    ];
    for (request, expected) in table {
        check(vec![(request, &expected)]);
    }
}

#[test]
fn errors_of_revisions_name_the_field() {
    let with = |change: fn(&mut Vec<Value>)| {
        let mut cluster = Cluster::settled(2);
        change(&mut cluster.revisions);
        cluster.request(1, Form::Inline)
    };
    check(vec![
        (
            with(|r| r[0]["metadata"]["name"] = Value::Null),
            "snapshot.revisions[0].object: metadata.name: is required",
        ),
        (
            with(|r| r[0]["revision"] = json!("one")),
            "snapshot.revisions[0].object: revision: invalid type",
        ),
        (
            with(|r| r[0]["kind"] = json!("Pod")),
            "snapshot.revisions[0].object: kind: must be ControllerRevision",
        ),
        (
            with(|r| {
                let mut copy = r[0].clone();
                copy["metadata"]["uid"] = json!("other");
                r.push(copy);
            }),
            "snapshot.revisions[1].object: metadata.name: ",
        ),
        (
            with(|r| {
                let mut copy = r[0].clone();
                copy["metadata"]["name"] = json!("other");
                r.push(copy);
            }),
            "snapshot.revisions[1].object: metadata.uid: ",
        ),
    ]);
}

/// The apiserver stores the data of a revision byte for byte. Data that cannot be read counts as another template: the plan equals
/// that for readable data of another template.
#[test]
fn data_that_cannot_be_read_is_another_template() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let plan = |data: &str, collided: bool| {
        let mut cluster = Cluster::settled(2);
        let mut other = cluster.revisions[0].clone();
        (other["metadata"]["uid"], other["revision"]) = (json!("other"), json!(7));
        if collided {
            cluster.revisions.clear();
        } else {
            other["metadata"]["name"] = json!("by-hand");
        }
        other["data"] = json!("here");
        let mut request = cluster.request(1, Form::Inline);
        request
            .snapshot
            .as_mut()
            .unwrap()
            .revisions
            .push(v1::ControllerRevision {
                object: other.to_string().replace("\"here\"", data).into(),
                read_after_name_collision: collided,
            });
        let answer = engine().plan(request, &never);
        let mut plan = answer
            .unwrap_or_else(|refusal| panic!("{refusal:?}"))
            .plan
            .unwrap();
        // Both depend on the bytes of the request.
        plan.plan_id.clear();
        plan.warnings.clear();
        plan
    };
    for collided in [false, true] {
        let expected = plan("{}", collided);
        for data in [r#"{"a":"\ud800"}"#, r#"{"\udfff":1}"#, r#"{"spec":1e999}"#, &deep] {
            assert_eq!(plan(data, collided), expected, "{data:.40}");
        }
    }
    let broken =
        changed(|s| s.revisions[0].object = r#"{"metadata":{"name":"n","uid":"u"},"data":{"a":}"#.into());
    check(vec![(broken, "snapshot.revisions[0].object: ")]);
}

/// A request in which every text that the response repeats has `bytes` bytes.
fn named_with(bytes: usize) -> v1::PlanRequest {
    let name = |last: char| format!("{}{last}", "n".repeat(bytes - 1));
    let mut cluster = Cluster::settled(1);
    let (workload, revision) = (&mut cluster.daemon_set, &mut cluster.revisions[0]);
    for object in [&mut *workload, revision] {
        object["metadata"]["name"] = json!(name('n'));
        object["metadata"]["uid"] = json!(name('u'));
    }
    revision["metadata"]["ownerReferences"][0]["uid"] = json!(name('u'));
    workload["metadata"]["namespace"] = json!(name('s'));
    workload["spec"]["template"]["spec"]["nodeName"] = json!(name('1'));
    revision["metadata"]["labels"][HASH_LABEL] = json!("h".repeat(bytes - LONGEST_NAME + LONGEST_HASH));
    cluster.nodes[0].name = name('1');
    let bound = &mut cluster.pods[0];
    (bound.name, bound.uid, bound.node_name) = (name('b'), name('b'), name('1'));
    let mut meant = bound.clone();
    (meant.name, meant.uid) = (name('m'), name('m'));
    (meant.node_name, meant.target_node_name) = (String::new(), name('1'));
    cluster.pods.push(meant);
    cluster.request(1, Form::Inline)
}

const HASH_LABEL: &str = "controller-revision-hash";
/// The longest name, and the longest label value, that an apiserver accepts.
const LONGEST_NAME: usize = 253;
const LONGEST_HASH: usize = 63;

#[test]
fn texts_that_the_response_repeats_may_be_as_long_as_an_apiserver_accepts() {
    let longest = engine().plan(named_with(LONGEST_NAME), &never);
    assert!(longest.is_ok(), "{longest:?}");
    let too_long = violations(named_with(LONGEST_NAME + 1));
    let (name, hash) = (
        "has 254 bytes; at most 253 are taken",
        "has 64 bytes; at most 63 are taken",
    );
    let expected: Vec<_> = [
        ("workload.daemon_set.object: metadata.name", name),
        ("workload.daemon_set.object: metadata.uid", name),
        ("workload.daemon_set.object: metadata.namespace", name),
        ("workload.daemon_set.object: spec.template.spec.nodeName", name),
        ("revisions[0].object: metadata.name", name),
        ("revisions[0].object: metadata.uid", name),
        (
            "revisions[0].object: metadata.labels.controller-revision-hash",
            hash,
        ),
        ("node_buckets[0].data.nodes[0].name", name),
        ("pod_buckets[0].data.pods[0].name", name),
        ("pod_buckets[0].data.pods[0].uid", name),
        ("pod_buckets[0].data.pods[0].node_name", name),
        ("pod_buckets[0].data.pods[1].name", name),
        ("pod_buckets[0].data.pods[1].uid", name),
        ("pod_buckets[0].data.pods[1].target_node_name", name),
    ]
    .iter()
    .map(|(field, what)| format!("snapshot.{field}: {what}"))
    .collect();
    assert_eq!(too_long, expected);
}

/// The apiserver does not limit the length of the name in an owner reference, so a long one is not refused.
#[test]
fn owners_may_have_names_of_any_length() {
    let mut cluster = Cluster::settled(2);
    let owner = cluster.pods[1].controller.as_mut().unwrap();
    (owner.name, owner.uid) = ("n".repeat(1_000), "u".repeat(1_000));
    cluster.revisions[0]["metadata"]["ownerReferences"][0]["uid"] = json!("u".repeat(1_000));
    let answer = engine().plan(cluster.request(1, Form::Inline), &never);
    assert!(answer.is_ok(), "{answer:?}");
}

#[test]
fn errors_of_the_state_name_the_field() {
    let expecting = |change: fn(&mut v1::Expectations)| {
        let mut expectations = v1::Expectations {
            set_at: moment(NOW),
            ..Default::default()
        };
        change(&mut expectations);
        with_state(v1::ReconcileState {
            expectations: Some(expectations),
            ..Default::default()
        })
    };
    let backing_off = |change: fn(&mut Vec<v1::FailedPodBackoff>)| {
        let mut backoffs = vec![v1::FailedPodBackoff {
            observed_generation: 1,
            node_name: "n".into(),
            delay: Some(Duration { seconds: 1, nanos: 0 }),
            last: moment(NOW),
        }];
        change(&mut backoffs);
        with_state(v1::ReconcileState {
            failed_pod_backoffs: backoffs,
            ..Default::default()
        })
    };
    check(vec![
        (
            expecting(|e| (e.set_at, e.delete_uids) = (None, vec!["a".into()])),
            "snapshot.state.expectations.set_at: is required",
        ),
        (
            expecting(|e| e.creates.push(v1::ExpectedCreate::default())),
            "snapshot.state.expectations.creates[0].node_name: is required",
        ),
        (
            expecting(|e| e.delete_uids = vec!["a".into(), String::new()]),
            "snapshot.state.expectations.delete_uids[1]: is required",
        ),
        (
            backing_off(|b| b[0].delay = None),
            "snapshot.state.failed_pod_backoffs[0].delay: is required",
        ),
        (
            backing_off(|b| {
                b[0].delay = Some(Duration {
                    seconds: -1,
                    nanos: 0,
                });
            }),
            "snapshot.state.failed_pod_backoffs[0].delay: is not in 0 s to 900 s",
        ),
        (
            backing_off(|b| {
                b[0].delay = Some(Duration {
                    seconds: 900,
                    nanos: 1,
                });
            }),
            "snapshot.state.failed_pod_backoffs[0].delay: is not in",
        ),
        (
            backing_off(|b| b[0].last = None),
            "snapshot.state.failed_pod_backoffs[0].last: is required",
        ),
        (
            backing_off(|b| b[0].node_name = String::new()),
            "snapshot.state.failed_pod_backoffs[0].node_name: is required",
        ),
        (
            backing_off(|b| b.push(b[0].clone())),
            "snapshot.state.failed_pod_backoffs[1]: has the observed generation",
        ),
    ]);
}

#[test]
fn errors_of_pod_names_in_the_state_name_the_field() {
    let colliding = |nodes: &[&str]| {
        let collision = |node: &&str| v1::PodNameCollision {
            node_name: (*node).to_owned(),
            count: 1,
            refused_count: 0,
        };
        with_state(v1::ReconcileState {
            pod_name_collisions: nodes.iter().map(collision).collect(),
            ..Default::default()
        })
    };
    let used = |node_name: &str, pod_name: &str| {
        with_state(v1::ReconcileState {
            used_pod_names: vec![v1::UsedPodName {
                node_name: node_name.to_owned(),
                pod_name: pod_name.to_owned(),
            }],
            ..Default::default()
        })
    };
    check(vec![
        (
            colliding(&[""]),
            "snapshot.state.pod_name_collisions[0].node_name: is required",
        ),
        (
            colliding(&["n", "n"]),
            "snapshot.state.pod_name_collisions[1].node_name: `n` is there twice",
        ),
        (
            used("", "p"),
            "snapshot.state.used_pod_names[0].node_name: is required",
        ),
        (
            used("n", ""),
            "snapshot.state.used_pod_names[0].pod_name: is required",
        ),
    ]);
}

#[test]
fn errors_of_the_slow_start_name_the_field() {
    let starting = |change: fn(&mut v1::SlowStart)| {
        let mut slow_start = v1::SlowStart {
            size: 1,
            revision_hash: "h".to_owned(),
            last: moment(NOW),
        };
        change(&mut slow_start);
        with_state(v1::ReconcileState {
            slow_start: Some(slow_start),
            ..Default::default()
        })
    };
    check(vec![
        (
            starting(|s| s.size = 0),
            "snapshot.state.slow_start.size: is required; 1 is the beginning",
        ),
        (
            starting(|s| s.last = None),
            "snapshot.state.slow_start.last: is required",
        ),
        (
            starting(|s| s.revision_hash = "h".repeat(254)),
            "snapshot.state.slow_start.revision_hash: ",
        ),
    ]);
}

#[test]
fn errors_of_the_options_name_the_field() {
    let burst = i32::from(v1::Deviation::DeleteWithUid);
    check(vec![
        (
            with_options(v1::PlanOptions {
                profile: 9,
                ..Default::default()
            }),
            "options.profile: 9 is no Profile",
        ),
        (
            with_options(v1::PlanOptions {
                enabled_deviations: vec![burst, 0],
                ..Default::default()
            }),
            "options.enabled_deviations[1]: 0 is no Deviation",
        ),
        (
            with_options(v1::PlanOptions {
                disabled_deviations: vec![999],
                ..Default::default()
            }),
            "options.disabled_deviations[0]: 999 is no Deviation",
        ),
        (
            with_options(v1::PlanOptions {
                enabled_deviations: vec![burst],
                disabled_deviations: vec![burst],
                ..Default::default()
            }),
            "options.disabled_deviations: DEVIATION_DELETE_WITH_UID is also enabled",
        ),
        (
            with_options(v1::PlanOptions {
                feature_gates: vec![0],
                ..Default::default()
            }),
            "options.feature_gates[0]: 0 is no FeatureGate",
        ),
        (
            with_options(v1::PlanOptions {
                burst: Some(0),
                ..Default::default()
            }),
            "options.burst: must not be 0",
        ),
        (
            with_options(v1::PlanOptions {
                scope: 9,
                ..Default::default()
            }),
            "options.scope: 9 is no Scope",
        ),
    ]);
}

/// D-120: there is a plan for objects that the apiserver would refuse.
#[test]
fn d_120_the_apiservers_validation_is_not_relied_upon() {
    let both_zero = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}});
    let bad_term = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "!", "operator": "Near"}]}, {}]
    }}});
    let table: Vec<(&str, Value)> = vec![
        ("/spec/updateStrategy", json!({"type": "Sideways"})), // D-50
        ("/spec/updateStrategy", json!({"type": "RollingUpdate"})), // D-40
        (
            "/spec/updateStrategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {}}),
        ), // D-40
        (
            "/spec/updateStrategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "5"}}),
        ), // D-40
        ("/spec/updateStrategy", both_zero),                   // D-40, D-115
        ("/spec/updateStrategy", Value::Null),                 // D-114
        ("/spec/selector", json!({})),                         // D-71, D-116
        ("/spec/selector", Value::Null),                       // D-22
        ("/spec/revisionHistoryLimit", Value::Null),           // Q-15
        ("/spec/revisionHistoryLimit", json!(-1)),             // D-116
        ("/spec/minReadySeconds", json!(-5)),                  // D-116
        ("/spec/template/spec/affinity", bad_term),            // D-16
        (
            "/spec/template/spec/tolerations",
            json!([{"operator": "Near", "effect": "Never"}]),
        ), // D-17
        ("/status", json!({"numberReady": -3, "observedGeneration": -1})), // D-117
        ("/metadata/generation", json!(-1)),                   // D-118
    ];
    for (pointer, value) in table {
        let mut cluster = Cluster::settled(3);
        if let Some(place) = cluster.daemon_set.pointer_mut(pointer) {
            *place = value.clone();
        } else {
            cluster.daemon_set["spec"]["template"]["spec"][pointer.rsplit('/').next().unwrap()] =
                value.clone();
        }
        let answer = engine().plan(cluster.request(1, Form::Inline), &never);
        assert!(answer.is_ok(), "{pointer} = {value}: {answer:?}");
    }
    // D-119
    let mut cluster = Cluster::settled(3);
    cluster.revisions[0]["data"] = json!([1, 2]);
    cluster.revisions[0]["revision"] = json!(-1);
    assert!(engine().plan(cluster.request(1, Form::Inline), &never).is_ok());
}

#[test]
fn one_refusal_reports_all_errors_within_bounds() {
    let mut request = changed(|snapshot| {
        snapshot.now = None;
        snapshot.revisions.push(v1::ControllerRevision::default());
        let pods = (0..500).map(|_| v1::Pod::default()).collect();
        snapshot.pod_buckets[0].data = Some(pods_alone(pods).into());
    });
    request.options = Some(v1::PlanOptions {
        burst: Some(0),
        ..Default::default()
    });
    let Err(refusal @ Refusal::Invalid { .. }) = engine().plan(request, &never) else {
        panic!("not refused")
    };
    let text = refusal.to_string();
    let Refusal::Invalid { violations, .. } = &refusal else {
        unreachable!()
    };
    assert_eq!(violations.len(), 32);
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    for field in [
        "options.burst",
        "snapshot.now",
        "snapshot.revisions[1].object",
        "snapshot.pod_buckets[0].data.pods[0].uid",
    ] {
        assert!(fields.contains(&field), "{field} in {fields:?}");
    }
    assert!(text.starts_with("options.burst: must not be 0 (and "), "{text}");
    let status = tonic::Status::from(refusal.clone());
    assert!(
        status.details().len() < 6_000,
        "{} bytes go into a header",
        status.details().len()
    );
}

#[test]
fn limits_hold_before_memory_is_spent() {
    let limits = Limits {
        nodes: 3,
        pods: 3,
        buckets: 4,
        revisions: 2,
    };
    let engine = Engine::new(limits, nodewise_server::ByteSize(0));
    let refused = |request| match engine.plan(request, &never) {
        Err(Refusal::TooLarge(violation)) => violation.field,
        other => panic!("expected a limit, got {other:?}"),
    };
    assert!(
        engine
            .plan(Cluster::settled(3).request(4, Form::Inline), &never)
            .is_ok()
    );
    assert!(refused(Cluster::empty(4).request(1, Form::Inline)).starts_with("snapshot.node_buckets[0].data"));
    let mut cluster = Cluster::settled(4);
    cluster.nodes.truncate(1);
    assert!(refused(cluster.request(2, Form::Inline)).starts_with("snapshot.pod_buckets["));
    assert_eq!(
        refused(Cluster::empty(1).request(5, Form::Inline)),
        "snapshot.bucket_count"
    );
    // Each entry has two bytes on the wire and more than a hundred in memory.
    let mut request = Cluster::empty(1).request(1, Form::Inline);
    let bomb = [0x0a, 0x00].repeat(1 << 20);
    request.snapshot.as_mut().unwrap().pod_buckets[0].data = Some(bomb.into());
    assert_eq!(refused(request), "snapshot.pod_buckets[0].data");
}

/// A request with lists that multiply: few bytes, but hours of comparisons.
fn heavy(taints: usize, tolerations: usize) -> v1::PlanRequest {
    let mut cluster = Cluster::empty(1);
    cluster.nodes[0].taints = (0..taints)
        .map(|index| v1::Taint {
            key: format!("t{index}"),
            value: String::new(),
            effect: "NoExecute".into(),
        })
        .collect();
    let mut list: Vec<_> = (1..tolerations)
        .map(|index| json!({"key": format!("o{index}"), "operator": "Exists"}))
        .collect();
    // Only the last toleration matches.
    list.push(json!({"operator": "Exists"}));
    cluster.daemon_set["spec"]["template"]["spec"]["tolerations"] = list.into();
    cluster.request(1, Form::Inline)
}

#[test]
fn lists_that_multiply_are_bounded() {
    const OBJECT: &str = "snapshot.workload.daemon_set.object: spec";
    const REQUIRED: &str =
        "template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: has";
    let required = |term: Value, count: usize| {
        with_daemon_set(|object| {
            object["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": vec![term; count]}}});
        })
    };
    let expression = json!({"key": "k", "operator": "Exists"});
    let values = json!({"key": "k", "operator": "In", "values": vec!["v"; 4_096]});
    assert!(engine().plan(heavy(1_024, 1_024), &never).is_ok());
    assert!(engine().plan(required(json!({}), 1_024), &never).is_ok());
    let table = [
        (
            heavy(1, 20_000),
            format!("{OBJECT}.template.spec.tolerations: has 20000 entries"),
        ),
        (required(json!({}), 1_025), format!("{OBJECT}.{REQUIRED} 1025")),
        (
            required(json!({"matchExpressions": vec![expression.clone(); 100]}), 11),
            format!("{OBJECT}.{REQUIRED} 1111"),
        ),
        (
            required(json!({"matchFields": [values]}), 5),
            format!("{OBJECT}.{REQUIRED} 20480"),
        ),
        (
            with_daemon_set(|object| {
                object["spec"]["selector"]["matchExpressions"] = vec![expression.clone(); 1_025].into();
            }),
            format!("{OBJECT}.selector.matchExpressions: has 1025"),
        ),
    ];
    check(
        table
            .iter()
            .map(|(request, expected)| (request.clone(), expected.as_str()))
            .collect(),
    );
}

/// A report in which every create has the result NAME_TAKEN.
fn collisions(count: usize) -> v1::ReportRequest {
    let outcome = |index| v1::Outcome {
        action_id: 1,
        result: v1::Result::NameTaken.into(),
        subject: Some(v1::outcome::Subject::CreatedPod(v1::ExpectedCreate {
            pod_name: String::new(),
            node_name: format!("n{}", count - index),
        })),
        ..Default::default()
    };
    v1::ReportRequest {
        workload: Some(v1::WorkloadReference {
            uid: "11111111-2222-3333-4444-555555555555".into(),
            ..Default::default()
        }),
        plan_id: "p".into(),
        outcomes: (0..count).map(outcome).collect(),
        ..Default::default()
    }
}

#[test]
fn reports_and_states_are_bounded_in_every_list() {
    let limits = Limits {
        nodes: 3,
        pods: 3,
        ..Limits::default()
    };
    let engine = Engine::new(limits, nodewise_server::ByteSize(0));
    let field = |result| match result {
        Err(Refusal::TooLarge(violation)) => violation.field,
        other => panic!("expected a limit, got {other:?}"),
    };
    let riding = |reports| {
        field(
            engine
                .plan(
                    v1::PlanRequest {
                        undelivered_reports: reports,
                        ..Cluster::settled(2).request(1, Form::Inline)
                    },
                    &never,
                )
                .map(drop),
        )
    };
    assert_eq!(riding(vec![collisions(0); 65]), "undelivered_reports");
    assert_eq!(
        riding(vec![collisions(4), collisions(3)]),
        "undelivered_reports[1].outcomes"
    );
    assert_eq!(field(engine.report(collisions(7), &never).map(drop)), "outcomes");
    let expectations = |creates, deletes| v1::ReconcileState {
        expectations: Some(v1::Expectations {
            set_at: moment(NOW),
            creates: vec![v1::ExpectedCreate::default(); creates],
            delete_uids: vec![String::new(); deletes],
        }),
        ..Default::default()
    };
    let table = [
        ("state.expectations.creates", expectations(7, 0)),
        ("state.expectations.delete_uids", expectations(0, 7)),
        (
            "state.failed_pod_backoffs",
            v1::ReconcileState {
                failed_pod_backoffs: vec![v1::FailedPodBackoff::default(); 7],
                ..Default::default()
            },
        ),
        (
            "state.pod_name_collisions",
            v1::ReconcileState {
                pod_name_collisions: vec![v1::PodNameCollision::default(); 7],
                ..Default::default()
            },
        ),
        (
            "state.used_pod_names",
            v1::ReconcileState {
                used_pod_names: vec![v1::UsedPodName::default(); 7],
                ..Default::default()
            },
        ),
    ];
    for (expected, state) in table {
        let request = v1::ReportRequest {
            state: Some(state),
            ..collisions(1)
        };
        assert_eq!(field(engine.report(request, &never).map(drop)), expected);
    }
}

#[test]
fn a_long_report_is_folded_in_one_pass_and_can_be_stopped() {
    use std::cell::Cell;
    // With a search and a sort for each outcome this would take minutes.
    let state = engine()
        .report(collisions(100_000), &never)
        .unwrap()
        .state
        .unwrap();
    assert_eq!(state.pod_name_collisions.len(), 100_000);
    assert!(
        state
            .pod_name_collisions
            .is_sorted_by(|a, b| a.node_name < b.node_name)
    );
    let asked = Cell::new(0_u32);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 40
    };
    // Reading 100,000 outcomes polls `stop` 25 times, so folding is stopped.
    assert_eq!(engine().report(collisions(100_000), &stop), Err(Refusal::Stopped));
}

#[test]
fn parsing_stops_soon_after_the_caller_has_left() {
    use std::cell::Cell;
    let request = Cluster::settled(6_000).request(8, Form::InlineWithDigest);
    let asked = Cell::new(0_u32);
    let count = || {
        asked.set(asked.get() + 1);
        false
    };
    assert!(engine().plan(request.clone(), &count).is_ok());
    let whole = asked.replace(0);
    assert!(
        whole > 30,
        "`stop` is polled while 12,000 items are read; polled {whole} times"
    );
    for last in [1, whole / 2, whole] {
        asked.set(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() >= last
        };
        assert_eq!(
            engine().plan(request.clone(), &stop),
            Err(Refusal::Stopped),
            "after {last} of {whole}"
        );
        assert!(
            asked.get() <= last,
            "went on after being stopped: {} > {last}",
            asked.get()
        );
    }
}
