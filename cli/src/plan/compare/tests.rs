//! Tests comparisons of plans that are written by hand.

use serde_json::{Value, json};

use super::*;

fn plan(actions: &Value) -> v1::Plan {
    let plan = json!({"phases": [{"batches": [{"actions": actions}]}]});
    serde_json::from_value(plan).expect("a plan in the protocol's JSON")
}

fn kept(plan: &v1::Plan) -> Kept {
    serde_json::from_value(json!({
        "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "1", "generation": 1,
        "specDigest": "", "snapshotDigest": "", "nodes": {}, "podsDigest": "", "plan": plan,
    }))
    .expect("a kept plan")
}

fn action(kind: &str, fields: &Value) -> Value {
    json!({"id": 1, "reason": "REASON_REPLICAS_CHANGED", kind: fields})
}

/// JSON as the protocol's JSON has bytes.
fn bytes(content: &Value) -> Value {
    let message = v1::CreateObject {
        manifest: content.to_string().into_bytes().into(),
        ..v1::CreateObject::default()
    };
    serde_json::to_value(message).expect("JSON")["manifest"].clone()
}

fn patch(patch: &Value) -> Value {
    let resource = json!({"group": "apps", "version": "v1", "resource": "replicasets"});
    let object = json!({"name": "web-x", "uid": "u"});
    action(
        "patchObject",
        &json!({"resource": resource, "object": object, "patch": bytes(patch)}),
    )
}

fn create(manifest: &Value) -> Value {
    let resource = json!({"group": "apps", "version": "v1", "resource": "replicasets"});
    action(
        "createObject",
        &json!({"resource": resource, "name": "web-y", "manifest": bytes(manifest)}),
    )
}

/// The lines about what changed.
fn compared(before: &Value, now: &Value) -> (Outcome, Vec<String>) {
    let compared = both(&kept(&plan(before)), &kept(&plan(now)));
    let result = compared.result;
    let text = render(&Comparison {
        is_equal: result == Outcome::Equal,
        kept_at: String::new(),
        workloads: vec![compared],
    });
    let text = anstream::adapter::strip_str(&text).to_string();
    let lines = text.lines().filter(|line| line.starts_with("  "));
    (result, lines.map(|line| line.trim().to_owned()).collect())
}

#[test]
fn another_size_is_another_plan() {
    let scaled = |replicas: u32, version: &str| {
        json!([patch(&json!({
            "metadata": {"uid": "u", "resourceVersion": version},
            "spec": {"replicas": replicas},
        }))])
    };
    assert_eq!(
        compared(&scaled(5, "1"), &scaled(50, "2")),
        (
            Outcome::Changed,
            vec!["~ scale ReplicaSet web-x to 5 → to 50".to_owned()]
        )
    );
    // Another version of the object is no other plan.
    assert_eq!(
        compared(&scaled(5, "1"), &scaled(5, "2")),
        (Outcome::Equal, Vec::new())
    );
}

#[test]
fn another_content_is_another_plan() {
    let annotated = |value: &str| json!([patch(&json!({"metadata": {"annotations": {"a": value}}}))]);
    assert_eq!(
        compared(&annotated("1"), &annotated("2")),
        (
            Outcome::Changed,
            vec!["~ update ReplicaSet web-x: metadata.annotations.a: 1 → 2".to_owned()]
        )
    );
    let created = |replicas: u32| json!([create(&json!({"spec": {"replicas": replicas}}))]);
    assert_eq!(
        compared(&created(5), &created(50)),
        (
            Outcome::Changed,
            vec!["~ create ReplicaSet web-y: spec.replicas: 5 → 50".to_owned()]
        )
    );
    let (result, lines) = compared(&created(5), &annotated("1"));
    assert_eq!(result, Outcome::Changed);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("+ update ReplicaSet web-x: "), "{lines:?}");
    assert!(
        lines[1].starts_with("- create ReplicaSet web-y: ") && lines[1].ends_with(", no longer planned"),
        "{lines:?}"
    );
}

#[test]
fn other_pods_are_another_plan() {
    let creates = |image: &str| v1::Plan {
        pod_manifest: json!({"metadata": {"creationTimestamp": null}, "spec": {"image": image}})
            .to_string()
            .into_bytes()
            .into(),
        ..plan(&json!([action(
            "createPod",
            &json!({"podName": "web-x-1", "nodeName": "node-1"})
        )]))
    };
    let result = both(&kept(&creates("a:1")), &kept(&creates("a:2")));
    assert_eq!(result.result, Outcome::Changed);
    assert_eq!(result.new_pods, ["spec.image: a:1 → a:2"]);
    let result = both(&kept(&creates("a:1")), &kept(&creates("a:1")));
    assert_eq!(result.result, Outcome::Equal);
}
