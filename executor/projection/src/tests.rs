//! Projections of many forms of objects.

use nodewise_proto::{Timestamp, v1};
use serde_json::{Value, json};

use crate::time::{FIRST_SECOND, LAST_SECOND};
use crate::{Key, LabelKeysRead, StatusCounts, Strategy, Workload, node, pod, timestamp};

fn pod_with(spec: &Value) -> Value {
    json!({"metadata": {"name": "p", "uid": "u"}, "spec": spec})
}

fn pinned(terms: &Value) -> Value {
    pod_with(&json!({"affinity": {"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}))
}

fn field(operator: &str, values: &[&str]) -> Value {
    json!({"key": "metadata.name", "operator": operator, "values": values})
}

// D-24.
#[test]
fn target_node_of_an_unbound_pod() {
    let other = json!({"key": "metadata.uid", "operator": "In", "values": ["x"]});
    for (terms, expected) in [
        (json!([{"matchFields": [field("In", &["a"])]}]), "a"),
        (
            json!([{"matchFields": [other.clone(), field("In", &["a"])]}]),
            "a",
        ),
        (
            json!([{"matchExpressions": []}, {"matchFields": [field("In", &["b"])]}]),
            "b",
        ),
        (
            json!([{"matchFields": [field("NotIn", &["a"])]}, {"matchFields": [field("In", &["b"])]}]),
            "b",
        ),
        // The first match decides, even if it does not have exactly one value.
        (
            json!([{"matchFields": [field("In", &["a", "b"])]}, {"matchFields": [field("In", &["c"])]}]),
            "",
        ),
        (json!([{"matchFields": [field("In", &[])]}]), ""),
        (json!([{"matchFields": [other]}]), ""),
        (json!([]), ""),
        (json!(null), ""),
    ] {
        let projected = pod(&pinned(&terms)).expect("a pod");
        assert_eq!(projected.target_node_name, expected, "{terms}");
    }
    let mut bound = pinned(&json!([{"matchFields": [field("In", &["a"])]}]));
    bound["spec"]["nodeName"] = json!("z");
    let bound = pod(&bound).expect("a pod");
    assert_eq!(
        (bound.node_name.as_str(), bound.target_node_name.as_str()),
        ("z", "")
    );
}

// A controller reference that is too long becomes an empty reference.
#[test]
fn a_controller_reference_that_is_too_long_becomes_empty() {
    for (kind, name, uid, is_kept) in [
        (9, 253, 128, true),
        (64, 253, 128, false),
        (9, 254, 128, false),
        (9, 253, 129, false),
    ] {
        let text = |length| "a".repeat(length);
        let owner = json!({"kind": text(kind), "name": text(name), "uid": text(uid), "controller": true});
        let object = json!({"metadata": {"name": "p", "uid": "u", "ownerReferences": [owner]}});
        let expected = v1::ControllerReference {
            kind: text(kind),
            name: text(name),
            uid: text(uid),
        };
        let expected = if is_kept {
            expected
        } else {
            v1::ControllerReference::default()
        };
        assert_eq!(pod(&object).expect("a pod").controller, Some(expected));
    }
}

// D-3: every field that a plan reads, and nothing else.
#[test]
fn all_fields_of_a_pod_are_projected() {
    let object = json!({
        "metadata": {
            "name": "foo-x", "namespace": "ns", "uid": "u1", "resourceVersion": "7",
            "labels": {"b": "2", "a": "1"}, "annotations": {"not": "read"},
            "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:05:05Z",
            "finalizers": ["x/y"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n1"},
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "foo", "uid": "d1", "controller": true},
            ],
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "conditions": [
            {"type": "Initialized", "status": "True"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:35Z"},
            {"type": "Ready", "status": "False"},
        ]},
    });
    let at = |text: &str| Some(timestamp(text.parse().expect("a time")));
    let expected = v1::Pod {
        name: "foo-x".into(),
        uid: "u1".into(),
        labels: vec![
            v1::Label {
                key: "a".into(),
                value: "1".into(),
            },
            v1::Label {
                key: "b".into(),
                value: "2".into(),
            },
        ],
        controller: Some(v1::ControllerReference {
            kind: "DaemonSet".into(),
            name: "foo".into(),
            uid: "d1".into(),
        }),
        node_name: "node-1".into(),
        target_node_name: String::new(),
        phase: v1::PodPhase::Running.into(),
        ready: v1::ConditionStatus::True.into(),
        ready_transition_time: at("2026-01-02T03:04:35Z"),
        creation_time: at("2026-01-02T03:04:05Z"),
        deletion_time: at("2026-01-02T03:05:05Z"),
        has_finalizers: true,
        ..v1::Pod::default()
    };
    assert_eq!(pod(&object).expect("a pod"), expected);
}

// what decides which pod of a ReplicaSet is deleted first. Pods of other controllers do not change with it.
#[test]
fn the_deletion_rank_of_a_pod_is_projected() {
    let container = |name: &str, restarts: u32| json!({"name": name, "restartCount": restarts});
    let pod_of = |kind: &str, cost: &str| {
        json!({
            "metadata": {"name": "p", "uid": "u", "annotations": {"controller.kubernetes.io/pod-deletion-cost": cost},
                "ownerReferences": if kind.is_empty() { json!(null) } else {
                    json!([{"kind": kind, "name": "foo", "uid": "o", "controller": true}])
                }},
            "spec": {"initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"},
                {"name": "log", "restartPolicy": "Always"}, {"name": "odd", "restartPolicy": "Never"}]},
            "status": {
                "containerStatuses": [container("a", 2), container("b", 5), container("c", 1)],
                "initContainerStatuses": [container("setup", 9), container("proxy", 3), container("log", 1), container("odd", 8)],
            },
        })
    };
    let long = "1".repeat(65);
    // (kind of the controller, deletion cost, projected cost, restarts, restarts of sidecars)
    for (kind, cost, expected) in [
        ("ReplicaSet", "-10", ("-10", 5, 3)),
        ("", "7", ("7", 5, 3)),
        ("ReplicaSet", "odd", ("odd", 5, 3)),
        ("ReplicaSet", &long[..64], (&long[..64], 5, 3)),
        ("ReplicaSet", &long, ("", 5, 3)),
        // maxRestarts of a RolloutPolicy (L-25).
        ("DaemonSet", "7", ("", 5, 0)),
        ("StatefulSet", "7", ("", 0, 0)),
    ] {
        let pod = pod(&pod_of(kind, cost)).expect("a pod");
        let projected = (&*pod.deletion_cost, pod.restarts, pod.sidecar_restarts);
        assert_eq!(projected, expected, "{kind} {cost}");
    }
    for status in [
        json!(null),
        json!({"containerStatuses": null, "initContainerStatuses": []}),
        json!({"containerStatuses": [{"name": "a"}, {"name": "b", "restartCount": null}]}),
        json!({"containerStatuses": [{"name": "a", "restartCount": -1}]}),
    ] {
        let object = json!({"metadata": {"name": "p", "uid": "u"}, "status": status});
        assert_eq!(pod(&object).expect("a pod").restarts, 0, "{status}");
    }
}

// D-2: name, labels and taints in their order. The other fields are for explanations and for RolloutPolicies (L-21, L-23).
#[test]
fn all_fields_of_a_node_are_projected() {
    let object = json!({
        "metadata": {"name": "n", "uid": "u", "labels": {"zone": "a"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"unschedulable": true, "taints": [
            {"key": "b", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
            {"key": "a", "value": "v", "effect": "NoSchedule"},
        ]},
        "status": {"conditions": [
            {"type": "MaintenanceInProgress", "status": "True"},
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-02T00:00:00Z",
                "lastHeartbeatTime": "2026-01-03T00:00:00Z"},
        ]},
    });
    let at = |text: &str| Some(timestamp(text.parse().expect("a time")));
    let taint = |key: &str, value: &str, effect: &str| v1::Taint {
        key: key.into(),
        value: value.into(),
        effect: effect.into(),
    };
    let expected = v1::Node {
        name: "n".into(),
        uid: "u".into(),
        labels: vec![v1::Label {
            key: "zone".into(),
            value: "a".into(),
        }],
        taints: vec![taint("b", "", "NoExecute"), taint("a", "v", "NoSchedule")],
        unschedulable: true,
        ready: v1::ConditionStatus::Unknown.into(),
        ready_transition_time: at("2026-01-02T00:00:00Z"),
        maintenance_in_progress: true,
        shared_labels: vec![],
    };
    assert_eq!(node(&object).expect("a node"), expected);
}

// Heartbeats change nodes all the time.
#[test]
fn a_heartbeat_does_not_change_the_projection_of_a_node() {
    let of = |heartbeat: &str| {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z",
            "lastHeartbeatTime": heartbeat});
        node(&json!({"metadata": {"name": "n"}, "status": {"conditions": [ready]}})).expect("a node")
    };
    assert_eq!(of("2026-01-03T00:00:00Z"), of("2026-01-04T00:00:00Z"));
}

// L-23
#[test]
fn a_node_is_in_maintenance_if_the_condition_is_true() {
    for (conditions, expected) in [
        (json!([{"type": "MaintenanceInProgress", "status": "True"}]), true),
        (
            json!([{"type": "MaintenanceInProgress", "status": "False"}]),
            false,
        ),
        (
            json!([{"type": "MaintenanceInProgress", "status": "Unknown"}]),
            false,
        ),
        (json!([{"type": "Ready", "status": "True"}]), false),
        (json!(null), false),
    ] {
        let object = json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}});
        let node = node(&object).expect("a node");
        assert_eq!(node.maintenance_in_progress, expected, "{conditions}");
    }
}

#[test]
fn errors_name_the_path() {
    for (object, expected) in [
        (
            json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": "yesterday"}}),
            "metadata.creationTimestamp: not a time: \"yesterday\"",
        ),
        (json!({"metadata": {"name": "p"}}), "metadata.uid: is missing"),
        (json!({"metadata": {"uid": "u"}}), "metadata.name: is missing"),
        (json!({"spec": {}}), ".: missing field `metadata`"),
    ] {
        assert_eq!(pod(&object).expect_err("wrong").to_string(), expected);
    }
    let object = json!({"metadata": {"name": "n", "labels": {"a": 1}}});
    let error = node(&object).expect_err("wrong").to_string();
    assert!(error.starts_with("metadata.labels.a: "), "{error}");
}

// The apiserver serves these for `0000-01-01T00:00:00+23:59`, for `9999-12-31T23:59:59-23:59`, and for larger numbers from
// Protobuf clients; and times that the apiserver accepts but the service does not.
#[test]
fn times_out_of_range_are_clamped() {
    for (text, expected) in [
        ("-0001-12-31T00:01:00Z", FIRST_SECOND),
        ("-9223-02-29T00:01:00Z", FIRST_SECOND),
        ("-292277022656-01-27T08:29:52Z", FIRST_SECOND),
        ("0000-06-01T00:00:00Z", FIRST_SECOND),
        ("0001-01-01T00:00:00Z", FIRST_SECOND),
        ("0001-01-01T00:00:01Z", FIRST_SECOND + 1),
        ("2026-01-02T03:04:05Z", 1_767_323_045),
        ("9999-12-29T23:59:59Z", LAST_SECOND - 1),
        ("9999-12-31T23:59:59Z", LAST_SECOND),
        ("10000-01-01T23:58:59Z", LAST_SECOND),
        ("292277026596-12-04T15:30:08Z", LAST_SECOND),
    ] {
        let ready = json!([{"type": "Ready", "status": "True", "lastTransitionTime": text}]);
        let object = json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": text},
            "status": {"conditions": ready}});
        let pod = pod(&object).unwrap_or_else(|error| panic!("{error}"));
        let expected = Some(Timestamp {
            seconds: expected,
            nanos: 0,
        });
        assert_eq!(
            (pod.ready_transition_time, pod.creation_time),
            (expected, expected),
            "{text}"
        );
    }
    for text in [
        "",
        "-",
        "10000",
        "-0001",
        "10000-13-01T00:00:00Z",
        "9999-02-30T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "-0001-12-31",
        "-001-12-31T00:01:00Z",
        "1e400-01-01T00:00:00Z",
        "soon-01-01T00:00:00Z",
    ] {
        let object = json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": text}});
        assert!(pod(&object).is_err(), "{text:?}");
    }
}

#[test]
fn times_before_the_epoch_have_positive_nanos() {
    let time = "1969-12-31T23:59:58.25Z".parse().expect("a time");
    assert_eq!(
        timestamp(time),
        Timestamp {
            seconds: -2,
            nanos: 250_000_000
        }
    );
}

fn label_keys(keys: &std::collections::BTreeSet<String>) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

// what the caches know about a ReplicaSet. Plans count the pods that have all labels of the template.
#[test]
fn a_replica_set_is_read() {
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": "web-1", "uid": "r1", "resourceVersion": "7", "generation": 3,
            "labels": {"app": "web"}, "creationTimestamp": "2026-01-02T03:04:05Z",
            "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "d1", "controller": true}],
            "managedFields": [{"manager": "kubectl", "subresource": "status", "time": "2026-01-02T03:04:05Z"}],
        },
        "spec": {
            "replicas": 5, "minReadySeconds": 10, "selector": {"matchLabels": {"app": "web", "hash": "1"}},
            "template": {"metadata": {"labels": {"app": "web", "tier": "front"}}, "spec": {"nodeSelector": {"zone": "a"}}},
        },
        "status": {"observedGeneration": 3, "replicas": 4, "fullyLabeledReplicas": 4, "readyReplicas": 3, "availableReplicas": 2},
    });
    let set = Workload::replica_set_from_json(&object).expect("a ReplicaSet");
    assert_eq!(set.key, Key::new("ReplicaSet", "ns", "web-1"));
    assert_eq!(
        (&*set.uid, &*set.resource_version, set.generation),
        ("r1", "7", 3)
    );
    assert_eq!(
        (set.replicas, set.min_ready_seconds, set.strategy, set.deleting),
        (Some(5), 10, Strategy::RollingUpdate, false)
    );
    let controller = set.controller.expect("a controller");
    assert_eq!(
        (&*controller.kind, &*controller.name, &*controller.uid),
        ("Deployment", "web", "d1")
    );
    assert_eq!(
        set.created.map(|time| time.seconds),
        Some(timestamp("2026-01-02T03:04:05Z".parse().expect("a time")).seconds)
    );
    assert_eq!(label_keys(&set.reads.pod_labels), ["app", "hash", "tier"]);
    assert_eq!(label_keys(&set.reads.node_labels), [""; 0]);
    let counts = StatusCounts {
        observed_generation: 3,
        desired: 5,
        current: 4,
        updated: 4,
        available: 2,
    };
    assert_eq!(set.status, counts);
    assert_eq!(
        set.other_status_writer.map(|writer| writer.manager).as_deref(),
        Some("kubectl")
    );
    let stored: Value = serde_json::from_slice(&set.object).expect("JSON");
    assert_eq!(stored["metadata"]["managedFields"], Value::Null);
    assert_eq!(stored["spec"], object["spec"]);
}

// P-1: what the caches know about a Deployment.
#[test]
fn a_deployment_is_read() {
    for (strategy, expected) in [
        (json!(null), Strategy::RollingUpdate),
        (json!({"type": "RollingUpdate"}), Strategy::RollingUpdate),
        (json!({"type": "Recreate"}), Strategy::Recreate),
    ] {
        let object = json!({
            "metadata": {"namespace": "ns", "name": "web", "uid": "d1", "generation": 2},
            "spec": {"strategy": strategy, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}}},
            "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 1},
        });
        let deployment = Workload::deployment_from_json(&object).expect("a Deployment");
        assert_eq!(deployment.key, Key::new("Deployment", "ns", "web"));
        assert_eq!(deployment.strategy, expected, "{strategy}");
        assert_eq!(deployment.replicas, Some(1), "the default of the API");
        assert_eq!(deployment.reads, LabelKeysRead::default());
        let counts = StatusCounts {
            observed_generation: 2,
            desired: 1,
            current: 3,
            updated: 2,
            available: 1,
        };
        assert_eq!(deployment.status, counts);
    }
}

// A workload that is left out would look deleted.
#[test]
fn a_workload_with_an_unreadable_spec_is_kept() {
    let object = json!({"metadata": {"namespace": "ns", "name": "web"}, "spec": {"minReadySeconds": "soon"}, "status": 7});
    let unnamed = json!({"metadata": {"namespace": "ns"}});
    for (read, failed) in [
        (
            Workload::daemon_set_from_json(&object),
            Workload::daemon_set_from_json(&unnamed),
        ),
        (
            Workload::replica_set_from_json(&object),
            Workload::replica_set_from_json(&unnamed),
        ),
        (
            Workload::deployment_from_json(&object),
            Workload::deployment_from_json(&unnamed),
        ),
    ] {
        let workload = read.expect("a workload");
        assert!(!workload.selector.selects(&[]));
        let stored: Value = serde_json::from_slice(&workload.object).expect("JSON");
        assert_eq!(stored, object);
        assert!(failed.is_err());
    }
}
