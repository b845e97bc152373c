//! Projections of many forms of objects.

use nodewise_proto::{Timestamp, v1};
use serde_json::{Value, json};

use crate::time::{FIRST_SECOND, LAST_SECOND};
use crate::{node, pod, timestamp};

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
        shared_metadata: 0,
    };
    assert_eq!(pod(&object).expect("a pod"), expected);
}

// D-2: name, labels and taints in their order. The other fields are for explanations.
#[test]
fn all_fields_of_a_node_are_projected() {
    let object = json!({
        "metadata": {"name": "n", "uid": "u", "labels": {"zone": "a"}},
        "spec": {"unschedulable": true, "taints": [
            {"key": "b", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
            {"key": "a", "value": "v", "effect": "NoSchedule"},
        ]},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    });
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
    };
    assert_eq!(node(&object).expect("a node"), expected);
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
