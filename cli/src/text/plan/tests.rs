//! Tests the text of plans that are written by hand.

use serde_json::{Value, json};

use super::*;

fn create(id: u32, node: &str) -> Value {
    json!({
        "id": id,
        "reason": "REASON_NODE_WITHOUT_POD",
        "message": format!("{node} has no pod of this DaemonSet"),
        "createPod": {"podName": format!("web-{id}"), "nodeName": node},
    })
}

fn delete(id: u32, node: &str, message: &str) -> Value {
    json!({
        "id": id,
        "reason": "REASON_ROLLOUT_WITHIN_BUDGET",
        "message": message,
        "deletePod": {"pod": {"name": format!("web-{id}"), "uid": "u"}, "nodeName": node, "uidPrecondition": true},
    })
}

fn plan(value: Value) -> v1::Plan {
    serde_json::from_value(value).expect("a plan in the protocol's JSON")
}

fn rendered(plan: &v1::Plan, width: Option<usize>) -> String {
    let status = v1::DaemonSetStatus {
        desired_number_scheduled: 299,
        ..v1::DaemonSetStatus::default()
    };
    let planned = [Planned {
        title: "DaemonSet default/web".to_owned(),
        kind: "DaemonSet",
        plan,
        status,
    }];
    let mut page = Page::new(width);
    render(&mut page, &planned);
    anstream::adapter::strip_str(&page.into_text()).to_string()
}

/// The first plan for 300 nodes without pods.
fn first_plan() -> v1::Plan {
    let mut id = 1;
    let batches: Vec<Value> = [1, 2, 4, 8, 16, 32, 64, 123]
        .into_iter()
        .map(|size| {
            let actions: Vec<Value> = (0..size)
                .map(|_| {
                    id += 1;
                    create(id, &format!("node-{:03}", id - 1))
                })
                .collect();
            json!({"actions": actions})
        })
        .collect();
    plan(json!({
        "verdict": "VERDICT_APPLY",
        "phases": [
            {"kind": "PHASE_KIND_REVISIONS", "abortsOnFailure": true, "batches": [{"actions": [{
                "id": 1, "reason": "REASON_NEW_TEMPLATE", "message": "no revision has the present template",
                "createRevision": {"name": "web-6c9d", "manifest": ""},
            }]}]},
            {"kind": "PHASE_KIND_CREATES", "batches": batches},
            {"kind": "PHASE_KIND_STATUS", "batches": [{"actions": [{
                "id": 252, "reason": "REASON_STATUS_CHANGED", "message": "counts changed",
                "updateStatus": {"status": {"desiredNumberScheduled": 300, "numberUnavailable": 300, "observedGeneration": "1"}},
            }]}]},
        ],
        "rollout": {"currentHash": "6c9d", "currentRevision": "1", "desired": 300, "maxUnavailable": 1, "unavailable": 300},
        "requeueAfter": "1.500s",
        "requeueReason": "a failed pod may be replaced",
        "deviations": ["DEVIATION_IDEMPOTENT_CREATES", "DEVIATION_SKIP_DELETING_ON_MISSING_NODES"],
    }))
}

#[test]
fn hundreds_of_equal_actions_are_one_line() {
    insta::assert_snapshot!(rendered(&first_plan(), None));
}

#[test]
fn a_narrow_terminal_wraps() {
    insta::assert_snapshot!(rendered(&first_plan(), Some(60)));
}

#[test]
fn few_actions_get_a_line_each_and_many_reasons_are_examples() {
    let deletes: Vec<Value> = (1..=5)
        .map(|id| {
            delete(
                id,
                &format!("node-{id}"),
                &format!("pod web-{id} is {id} minutes old"),
            )
        })
        .collect();
    let plan = plan(json!({
        "verdict": "VERDICT_APPLY",
        "phases": [
            {"kind": "PHASE_KIND_CLAIMS", "batches": [{"actions": [
                {"id": 9, "reason": "REASON_SELECTOR_MATCHES", "message": "no controller and the selector matches",
                 "adoptPod": {"pod": {"name": "stray", "uid": "u"}, "patch": ""}},
            ]}]},
            {"kind": "PHASE_KIND_CREATES", "batches": [{"actions": [create(7, "node-7")]}, {"actions": [create(8, "node-8")]}]},
            {"kind": "PHASE_KIND_DELETES", "batches": [{"actions": deletes}]},
        ],
        "error": "spec.updateStrategy.rollingUpdate.maxUnavailable: \"five\" is no percentage",
    }));
    insta::assert_snapshot!(rendered(&plan, None));
}

#[test]
fn an_empty_plan_says_so() {
    insta::assert_snapshot!(rendered(&plan(json!({"verdict": "VERDICT_NOOP"})), None));
}

#[test]
fn an_event_alone_changes_nothing() {
    let plan = plan(
        json!({"phases": [{"kind": "PHASE_KIND_EVENTS", "batches": [{"actions": [{
            "id": 1, "reason": "REASON_SELECTING_ALL", "message": "the selector is empty",
            "emitEvent": {"type": "Warning", "reason": "SelectingAll", "message": "selects all"},
        }]}]}]}),
    );
    assert!(!changes_something(&plan));
    assert!(changes_something(&first_plan()));
}

#[test]
fn warnings_are_shown_with_the_plan() {
    let plan = plan(json!({
        "verdict": "VERDICT_NOOP",
        "warnings": [
            {"kind": "Node", "name": "node-1", "message": "labels: there are 2000, more than 1024; all of them are read"},
            {"kind": "Pod", "name": "web-1", "message": "labels: 1 without a key; they are left out"},
        ],
        "moreWarnings": 3,
    }));
    let text = rendered(&plan, None);
    for line in [
        "  ! warning: Node node-1: labels: there are 2000, more than 1024; all of them are read\n",
        "  ! warning: Pod web-1: labels: 1 without a key; they are left out\n",
        "  ! and 3 more warnings\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
