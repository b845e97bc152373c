//! Renders explanations as text. For a DaemonSet: one line per group of equal nodes, or all details of one node.

pub(crate) mod one_node;
pub(crate) mod one_pod;
pub(crate) mod replicas;

use std::collections::{BTreeMap, HashMap};

use anstyle::Style;
use nodewise_proto::v1::{self, NodeState, PodPhase};

use super::{ADD, BOLD, CHANGE, DIM, PLAIN, Page, REMOVE, count, impersonal, names};

/// Groups of at most this size have a line per node.
const MAX_SINGLE_LINES: usize = 3;

/// The states in the order of the output.
const STATES: [NodeState; 8] = [
    NodeState::Blocking,
    NodeState::NotAvailable,
    NodeState::Missing,
    NodeState::BeingReplaced,
    NodeState::Waiting,
    NodeState::Runs,
    NodeState::MustNotRun,
    NodeState::Unspecified,
];

fn word(state: NodeState) -> (&'static str, Style) {
    match state {
        NodeState::Runs => ("runs", ADD),
        NodeState::Missing => ("missing", REMOVE),
        NodeState::BeingReplaced => ("being replaced", CHANGE),
        NodeState::Waiting => ("waiting", CHANGE),
        NodeState::NotAvailable => ("not available", REMOVE),
        NodeState::Blocking => ("blocking", REMOVE),
        NodeState::MustNotRun => ("must not run", DIM),
        NodeState::Unspecified => ("unknown", PLAIN),
    }
}

/// All nodes of a DaemonSet: first what holds up pods, by cause, then the nodes, the worst first.
pub(crate) fn render_all(
    page: &mut Page,
    title: &str,
    nodes: &[v1::NodeExplanation],
    status: &v1::WorkloadStatus,
) {
    page.line(0, BOLD, &format!("{title} on {}", count(nodes.len(), "node")));
    if let Some(policy) = &status.policy {
        super::status::render_policy_line(page, status, policy);
        if status.causes.is_empty() {
            page.blank();
        }
    }
    super::status::render_causes(page, status);
    if !status.causes.is_empty() {
        page.blank();
    }
    let about: HashMap<&str, &v1::NodeStatus> = status
        .nodes
        .iter()
        .map(|about| (about.node_name.as_str(), about))
        .collect();
    let message = |node: &v1::NodeExplanation| message(node, about.get(node.node_name.as_str()).copied());
    let mut groups: BTreeMap<(usize, i32, String), Vec<&v1::NodeExplanation>> = BTreeMap::new();
    for node in nodes {
        let reason = impersonal(
            &message(node),
            &node.node_name,
            node.pods.iter().map(|pod| pod.pod_name.as_str()),
        );
        let rank = STATES
            .iter()
            .position(|state| *state == node.state())
            .unwrap_or(STATES.len());
        groups.entry((rank, node.rule, reason)).or_default().push(node);
    }
    let widest = nodes
        .iter()
        .map(|node| word(node.state()).0.len())
        .max()
        .unwrap_or_default();
    for ((_, _, reason), nodes) in &groups {
        let (state, style) = word(nodes[0].state());
        let state = format!("{state:widest$} ");
        if nodes.len() <= MAX_SINGLE_LINES {
            for node in nodes {
                page.marked(
                    2,
                    &state,
                    style,
                    PLAIN,
                    &format!("{}: {}", node.node_name, message(node)),
                );
            }
        } else {
            let names = names::shorten(nodes.iter().map(|node| node.node_name.as_str()));
            page.marked(
                2,
                &state,
                style,
                PLAIN,
                &format!("{names} ({}): {reason}", count(nodes.len(), "node")),
            );
        }
    }
    page.blank();
    page.line(0, BOLD, &summary(nodes));
}

/// The sentence about a node. If its pod is not available, with the reason that the pod's status tells.
fn message(node: &v1::NodeExplanation, about: Option<&v1::NodeStatus>) -> String {
    let is_unavailable = matches!(node.state(), NodeState::Blocking | NodeState::NotAvailable);
    let pods = about.into_iter().flat_map(|about| &about.pods);
    let mut problems = pods.filter_map(|pod| pod.problem.as_ref());
    match problems.next().filter(|_| is_unavailable) {
        Some(problem) => format!("{}: {}", node.message, problem.message),
        None => node.message.clone(),
    }
}

/// What is said about a pod that the apiserver refused.
fn refused(refusal: &v1::Refusal) -> String {
    format!("the apiserver refused to create the pod: {}", refusal.message)
}

fn summary(nodes: &[v1::NodeExplanation]) -> String {
    let parts: Vec<String> = STATES
        .into_iter()
        .map(|state| (state, nodes.iter().filter(|node| node.state() == state).count()))
        .filter(|(_, number)| *number > 0)
        .map(|(state, number)| match state {
            NodeState::Runs if number > 1 => format!("{number} run"),
            _ => format!("{number} {}", word(state).0),
        })
        .collect();
    if parts.is_empty() {
        "No nodes.".to_owned()
    } else {
        format!("Nodes: {}.", parts.join(", "))
    }
}

/// All details of one node.
pub(crate) fn render_node(
    page: &mut Page,
    title: &str,
    node: &v1::NodeExplanation,
    status: &v1::WorkloadStatus,
) {
    let about = status
        .nodes
        .iter()
        .find(|about| about.node_name == node.node_name);
    let (state, style) = word(node.state());
    page.line(0, BOLD, &format!("{title} on {}", node.node_name));
    page.marked(2, &format!("{state}:"), style, PLAIN, &node.message);
    let may = |allowed| if allowed { "yes" } else { "no" };
    page.blank();
    page.line(
        2,
        PLAIN,
        &format!("a pod may start here: {}", may(node.should_run)),
    );
    page.line(
        2,
        PLAIN,
        &format!("a pod may stay here:  {}", may(node.should_keep)),
    );
    let rule = node.rule().as_str_name().trim_start_matches("RULE_");
    page.line(2, PLAIN, &format!("deciding rule:        {rule}"));
    if let Some(policy) = &status.policy {
        let belongs_to = match node.rollout_stage.as_str() {
            "" => "no rollout is going on",
            name => name,
        };
        let text = format!(
            "stage:                {belongs_to} (RolloutPolicy {})",
            policy.name
        );
        page.line(2, PLAIN, &text);
        if node.state() == NodeState::Waiting && !policy.message.is_empty() {
            page.line(2, PLAIN, &format!("the rollout waits:    {}", policy.message));
        }
        if node.rollout_exempt {
            let text = "the policy leaves it alone: it is not ready or in maintenance";
            page.marked(2, "!", CHANGE, PLAIN, text);
        }
    }
    page.blank();
    if node.pods.is_empty() {
        page.line(2, PLAIN, "no pod here");
        let refusal = status.last_refusal.as_ref();
        if let Some(refusal) = refusal.filter(|_| node.state() == NodeState::Missing) {
            page.marked(4, "✗", REMOVE, PLAIN, &refused(refusal));
        }
    } else {
        page.line(2, PLAIN, "pods here:");
        for pod in &node.pods {
            page.line(4, PLAIN, &format!("{}: {}", pod.pod_name, condition(pod)));
            let facts = about.and_then(|about| about.pods.iter().find(|one| one.pod_name == pod.pod_name));
            if let Some(problem) = facts.and_then(|facts| facts.problem.as_ref()) {
                page.marked(6, "✗", REMOVE, PLAIN, &problem.message);
            }
        }
    }
    if node.queue_position > 0 {
        let place = format!(
            "place {} among the nodes that wait for the budget",
            node.queue_position
        );
        page.line(2, PLAIN, &place);
    }
    for condition in about.iter().flat_map(|about| &about.conditions) {
        let text = format!(
            "the node's condition {} is {}",
            condition.r#type, condition.status
        );
        page.marked(2, "!", CHANGE, PLAIN, &text);
    }
    if !node.details.is_empty() {
        page.blank();
        page.line(2, PLAIN, "looked at:");
        for detail in &node.details {
            page.marked(4, "·", DIM, PLAIN, detail);
        }
    }
}

/// `running, ready, not yet available, of an older template`.
fn condition(pod: &v1::PodExplanation) -> String {
    let phase = match pod.phase() {
        PodPhase::Unspecified => "no phase yet",
        PodPhase::Pending => "pending",
        PodPhase::Running => "running",
        PodPhase::Succeeded => "succeeded",
        PodPhase::Failed => "failed",
        PodPhase::Unknown => "phase unknown",
    };
    let ready = match (pod.ready, pod.available) {
        (_, true) => "available",
        (true, false) => "ready, not yet available",
        (false, false) => "not ready",
    };
    let template = if pod.updated {
        "of the current template"
    } else {
        "of an older template"
    };
    let mut parts = vec![phase, ready, template];
    if pod.deleting {
        parts.push("being deleted");
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests;
