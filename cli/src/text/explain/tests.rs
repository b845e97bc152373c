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
    render_node(&mut page, "DaemonSet default/web", &node[0], None);
    insta::assert_snapshot!(strip(page));
}
