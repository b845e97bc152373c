//! Tests the text of explanations that are written by hand.

use serde_json::{Value, json};

use super::*;

fn nodes(value: Value) -> Vec<v1::NodeExplanation> {
    serde_json::from_value(value).expect("explanations in the protocol's JSON")
}

fn strip(page: Page) -> String {
    anstream::adapter::strip_str(&page.into_text()).to_string()
}

#[test]
fn equal_nodes_are_one_line() {
    let mut list: Vec<Value> = (1..=200)
        .map(|n| {
            json!({
                "nodeName": format!("node-{n:03}"), "state": "NODE_STATE_RUNS", "rule": "RULE_ELIGIBLE",
                "message": format!("pod web-{n} runs on node-{n:03}"), "pods": [{"podName": format!("web-{n}")}],
            })
        })
        .collect();
    for n in [201, 202] {
        list.push(json!({
            "nodeName": format!("node-{n}"), "state": "NODE_STATE_MUST_NOT_RUN", "rule": "RULE_TAINT_NO_SCHEDULE",
            "message": "taint dedicated=gpu:NoSchedule is not tolerated",
        }));
    }
    let mut page = Page::new(None);
    let status = v1::WorkloadStatus::default();
    render_all(
        &mut page,
        "DaemonSet default/web",
        &nodes(Value::Array(list)),
        &status,
    );
    insta::assert_snapshot!(strip(page));
}

#[test]
fn one_node_has_every_detail() {
    let node = nodes(json!([{
        "nodeName": "node-3", "state": "NODE_STATE_WAITING", "rule": "RULE_MAX_UNAVAILABLE",
        "message": "maxUnavailable 1 is used up by pod web-1 on node-1",
        "shouldRun": true, "shouldKeep": true,
        "pods": [
            {"podName": "web-3", "ready": true, "available": true, "phase": "POD_PHASE_RUNNING"},
            {"podName": "web-4", "updated": true, "deleting": true, "phase": "POD_PHASE_PENDING"},
        ],
        "details": ["nodeSelector disk=ssd: the node has disk=ssd", "no taint"],
    }]));
    let mut page = Page::new(None);
    let status = v1::WorkloadStatus::default();
    render_node(&mut page, "DaemonSet default/web", &node[0], &status);
    insta::assert_snapshot!(strip(page));
}

#[test]
fn causes_come_first_and_a_blocking_pod_has_its_reason() {
    let node = |number: u32, state: &str| {
        json!({
            "nodeName": format!("node-{number}"), "state": state, "rule": "RULE_NEW_POD_NOT_AVAILABLE",
            "message": format!("pod web-{number} runs, but is not ready"),
        })
    };
    let nodes = nodes(json!([
        node(1, "NODE_STATE_NOT_AVAILABLE"),
        node(2, "NODE_STATE_BLOCKING")
    ]));
    let problem = json!({"reason": "CrashLoopBackOff", "message": "container web: CrashLoopBackOff", "isFailing": true});
    let status = json!({
        "kind": "DaemonSet",
        "causes": [{"reason": "CrashLoopBackOff", "message": "container web: CrashLoopBackOff", "units": ["node-2"]}],
        "nodes": [{"nodeName": "node-2", "pods": [{"podName": "web-2", "problem": problem}]}],
    });
    let status: v1::WorkloadStatus = serde_json::from_value(status).expect("a status in the protocol's JSON");
    let mut page = Page::new(None);
    render_all(&mut page, "DaemonSet default/web", &nodes, &status);
    insta::assert_snapshot!(strip(page));
}

#[test]
fn a_missing_pod_that_was_refused_says_by_whom() {
    let node = nodes(json!([{
        "nodeName": "node-3", "state": "NODE_STATE_MISSING", "rule": "RULE_ELIGIBLE", "message": "node-3 has no pod of this workload",
    }]));
    let status = v1::WorkloadStatus {
        last_refusal: Some(v1::Refusal {
            message: "exceeded quota: none".to_owned(),
            ..v1::Refusal::default()
        }),
        ..v1::WorkloadStatus::default()
    };
    let mut page = Page::new(None);
    render_node(&mut page, "DaemonSet default/web", &node[0], &status);
    let text = strip(page);
    let expected = "no pod here\n    ✗ the apiserver refused to create the pod: exceeded quota: none\n";
    assert!(text.contains(expected), "{text}");
}
