//! Each node or pod of a rollout, for `-o wide`.

use anstyle::Style;
use nodewise_proto::{
    v1::{self, UnitState},
    workload::DAEMON_SET,
};

use super::{FAINT, HEADING, age};
use crate::text::{
    ADD, CHANGE, PLAIN, Page, REMOVE, count, names,
    table::{self, Column, Narrow, Row},
};

/// The states in the order of the output: problems first.
const ORDER: [UnitState; 6] = [
    UnitState::Blocked,
    UnitState::MustNotRun,
    UnitState::Progressing,
    UnitState::Waiting,
    UnitState::Unspecified,
    UnitState::Done,
];

/// The word for the state of a node or pod, and its colour. Pods without a state are of an older revision.
fn word(state: UnitState) -> (&'static str, Style) {
    match state {
        UnitState::Blocked => ("blocked", REMOVE),
        UnitState::MustNotRun => ("must not run", CHANGE),
        UnitState::Progressing => ("progressing", CHANGE),
        UnitState::Waiting => ("waiting", FAINT),
        UnitState::Unspecified => ("old revision", FAINT),
        UnitState::Done => ("done", ADD),
    }
}

/// The row of a node or pod, with what it is sorted by.
struct Unit {
    rank: usize,
    has_reason: bool,
    name: String,
    row: Row,
}

/// A table of the nodes of a DaemonSet, or of the pods of the other kinds that are not available.
pub(super) fn render(page: &mut Page, status: &v1::WorkloadStatus) {
    page.blank();
    if status.kind == DAEMON_SET {
        page.line(0, HEADING, "Nodes");
        let is_counted = |node: &&v1::NodeStatus| node.unit_state() != UnitState::Unspecified;
        let nodes = status.nodes.iter().filter(is_counted);
        let units: Vec<Unit> = nodes.map(|node| of_node(node, status.observed_at)).collect();
        let others = status.nodes.len() - units.len();
        let header = [
            ("STATE", Narrow::Stay),
            ("NODE", Narrow::Shorten),
            ("RULE", Narrow::LeaveOut),
            ("POD", Narrow::Shorten),
            ("AGE", Narrow::Stay),
            ("REASON", Narrow::Note),
        ];
        render_units(page, header.to_vec(), units);
        if others > 0 {
            let others = count(others, "more node");
            page.line(2, FAINT, &format!("{others}, on which it must not run"));
        }
    } else {
        page.line(0, HEADING, "Pods that are not available");
        let pods = status.pods.iter();
        let units = pods.map(|pod| of_pod(pod, status.observed_at)).collect();
        let header = [
            ("STATE", Narrow::Stay),
            ("POD", Narrow::Shorten),
            ("NODE", Narrow::Shorten),
            ("AGE", Narrow::Stay),
            ("REASON", Narrow::Note),
        ];
        render_units(page, header.to_vec(), units);
    }
}

fn render_units(page: &mut Page, header: Vec<(&'static str, Narrow)>, mut units: Vec<Unit>) {
    if units.is_empty() {
        page.line(2, FAINT, "none");
        return;
    }
    units.sort_by(|a, b| {
        let order = (a.rank, !a.has_reason).cmp(&(b.rank, !b.has_reason));
        order.then_with(|| names::natural_order(&a.name, &b.name))
    });
    let header = header.into_iter();
    let header: Vec<Column> = header.map(|(name, narrow)| Column { name, narrow }).collect();
    let rows: Vec<Row> = units.into_iter().map(|unit| unit.row).collect();
    table::render(page, 2, &header, &rows);
}

fn of_node(node: &v1::NodeStatus, now: Option<pbjson_types::Timestamp>) -> Unit {
    let pods = || node.pods.iter();
    let pod = pods()
        .find(|pod| pod.problem.is_some())
        .or_else(|| pods().find(|pod| pod.deleted_at.is_some()))
        .or_else(|| pods().next());
    let mut reasons = pod.map_or_else(Vec::new, |pod| reasons(pod, now));
    // A refused create has no pod.
    if !node.block_reason.is_empty() && !reasons.iter().any(|one| one.starts_with(&node.block_reason)) {
        reasons.insert(0, node.block_reason.clone());
    }
    reasons.extend(node.conditions.iter().map(|condition| {
        let since = lasting(condition.since, now);
        format!("{} is {}{since}", condition.r#type, condition.status)
    }));
    if node.unschedulable {
        reasons.push("cordoned".to_owned());
    }
    let rule = node.rule().as_str_name().trim_start_matches("RULE_");
    let pod_name = pod.map_or_else(dash, |pod| pod.pod_name.clone());
    let created = pod.and_then(|pod| age(pod.created_at, now));
    unit(
        node.unit_state(),
        &node.node_name,
        vec![node.node_name.clone(), rule.to_owned(), pod_name],
        created,
        &reasons,
    )
}

fn of_pod(pod: &v1::PodStatus, now: Option<pbjson_types::Timestamp>) -> Unit {
    let node = if pod.node_name.is_empty() {
        dash()
    } else {
        pod.node_name.clone()
    };
    unit(
        pod.unit_state(),
        &pod.pod_name,
        vec![pod.pod_name.clone(), node],
        age(pod.created_at, now),
        &reasons(pod, now),
    )
}

fn unit(
    state: UnitState,
    name: &str,
    names: Vec<String>,
    created: Option<String>,
    reasons: &[String],
) -> Unit {
    let (word, style) = word(state);
    let reason = reasons.join("; ");
    let plain = if state == UnitState::Done { FAINT } else { PLAIN };
    let mut cells = vec![(style, word.to_owned())];
    cells.extend(names.into_iter().map(|name| (plain, name)));
    cells.push((plain, created.unwrap_or_else(dash)));
    let has_reason = !reason.is_empty();
    let notes = if has_reason {
        vec![("", PLAIN, reason.clone())]
    } else {
        Vec::new()
    };
    cells.push((plain, if has_reason { reason } else { dash() }));
    Unit {
        rank: ORDER.iter().position(|one| *one == state).unwrap_or(ORDER.len()),
        has_reason,
        name: name.to_owned(),
        row: Row { cells, notes },
    }
}

/// Why a pod is not ready, and why it does not end.
fn reasons(pod: &v1::PodStatus, now: Option<pbjson_types::Timestamp>) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(problem) = &pod.problem {
        let mut more = Vec::new();
        if problem.restarts > 0 {
            more.push(count(problem.restarts as usize, "restart"));
        }
        if !problem.last_exit.is_empty() {
            more.push(problem.last_exit.clone());
        }
        let more = if more.is_empty() {
            String::new()
        } else {
            format!(" ({})", more.join(", "))
        };
        let since = lasting(pod.not_ready_since, now);
        reasons.push(format!("{}{more}{since}", problem.reason));
    }
    if pod.deleted_at.is_some() {
        let since = lasting(pod.deleted_at, now);
        let finalizers = match pod.finalizers.as_slice() {
            [] => String::new(),
            all => format!(", finalizers {}", all.join(", ")),
        };
        reasons.push(format!("being deleted{since}{finalizers}"));
    }
    reasons
}

/// ` for 5m`. Empty if it is not known since when.
fn lasting(since: Option<pbjson_types::Timestamp>, now: Option<pbjson_types::Timestamp>) -> String {
    age(since, now).map_or_else(String::new, |age| format!(" for {age}"))
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use serde_json::json;

    use super::*;

    fn table(status: serde_json::Value, width: Option<usize>) -> String {
        let status: v1::WorkloadStatus = serde_json::from_value(status).expect("a status");
        let mut page = Page::new(width);
        render(&mut page, &status);
        strip_str(&page.into_text()).to_string()
    }

    #[test]
    fn the_nodes_with_problems_are_first() {
        let node = |name: &str, state: &str, pods: serde_json::Value| json!({"nodeName": name, "unitState": state, "rule": "RULE_ELIGIBLE", "pods": pods});
        let status = json!({
            "kind": "DaemonSet", "observedAt": "2026-01-01T02:00:00Z",
            "nodes": [
                node("node-1", "UNIT_STATE_DONE", json!([{"podName": "a-1", "createdAt": "2026-01-01T01:00:00Z"}])),
                node("node-10", "UNIT_STATE_WAITING", json!([{"podName": "a-10", "createdAt": "2026-01-01T01:00:00Z"}])),
                node("node-2", "UNIT_STATE_WAITING", json!([{"podName": "a-2", "createdAt": "2026-01-01T01:00:00Z"}])),
                node("node-3", "UNIT_STATE_BLOCKED", json!([{
                    "podName": "b-3", "createdAt": "2026-01-01T01:50:00Z", "notReadySince": "2026-01-01T01:55:00Z",
                    "problem": {"reason": "CrashLoopBackOff", "restarts": 5, "lastExit": "exit code 137, OOMKilled"},
                }])),
                node("node-4", "UNIT_STATE_UNSPECIFIED", json!([])),
                {
                    "nodeName": "node-5", "unitState": "UNIT_STATE_BLOCKED", "rule": "RULE_ELIGIBLE",
                    "blockReason": "CreateRefused", "unschedulable": true,
                    "conditions": [{"type": "Ready", "status": "False", "since": "2026-01-01T01:57:00Z"}],
                },
            ],
        });
        assert_eq!(
            table(status.clone(), None),
            "
Nodes
  STATE    NODE     RULE      POD   AGE  REASON
  blocked  node-3   ELIGIBLE  b-3   10m  CrashLoopBackOff (5 restarts, exit code 137, OOMKilled) for 5m
  blocked  node-5   ELIGIBLE  -     -    CreateRefused; Ready is False for 3m; cordoned
  waiting  node-2   ELIGIBLE  a-2   60m  -
  waiting  node-10  ELIGIBLE  a-10  60m  -
  done     node-1   ELIGIBLE  a-1   60m  -
  1 more node, on which it must not run
"
        );
        assert!(table(status, Some(60)).contains(
            "
  blocked  node-3   ELIGIBLE  b-3   10m
    CrashLoopBackOff (5 restarts, exit code 137, OOMKilled)
    for 5m
"
        ));
    }

    #[test]
    fn the_pods_of_a_deployment_are_those_that_are_not_available() {
        let status = json!({
            "kind": "Deployment", "observedAt": "2026-01-01T02:00:00Z",
            "pods": [
                {"podName": "old-1", "createdAt": "2026-01-01T01:00:00Z", "deletedAt": "2026-01-01T01:59:00Z", "finalizers": ["x/y"]},
                {"podName": "web-1", "nodeName": "node-1", "unitState": "UNIT_STATE_PROGRESSING", "createdAt": "2026-01-01T01:59:50Z"},
            ],
        });
        assert_eq!(
            table(status, None),
            "
Pods that are not available
  STATE         POD    NODE    AGE  REASON
  progressing   web-1  node-1  10s  -
  old revision  old-1  -       60m  being deleted for 60s, finalizers x/y
"
        );
        let empty = table(json!({"kind": "Deployment"}), None);
        assert_eq!(empty, "\nPods that are not available\n  none\n");
    }
}
