//! Renders the explanation of one node.

use jiff::Timestamp;
use nodewise_projection::timestamp;
use nodewise_proto::v1::{self, NodeState};
use serde::Serialize;

use super::{STATES, refused, word};
use crate::text::{BOLD, CHANGE, DIM, PLAIN, Page, REMOVE, count, status::age};

/// The most pods of other workloads that are listed.
const MAX_PODS: usize = 50;

/// What is rendered, and the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explanation<'a> {
    pub(crate) node: &'a str,
    /// Whether the Node exists.
    pub(crate) exists: bool,
    pub(crate) unschedulable: bool,
    /// The conditions that are not as they should be.
    pub(crate) conditions: &'a [v1::NodeCondition],
    pub(crate) daemon_sets: Vec<OnNode<'a>>,
    /// The pods of other workloads.
    pub(crate) pods: Vec<OtherPod>,
}

/// One DaemonSet on the node.
#[derive(Serialize)]
pub(crate) struct OnNode<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// What the apiserver said when it refused the pod that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<v1::Refusal>,
    pub(crate) status: v1::NodeStatus,
}

/// A pod that no DaemonSet controls.
#[derive(Serialize)]
pub(crate) struct OtherPod {
    pub(crate) namespace: String,
    /// The workload, for example `Deployment web`. Empty if the pod has no controller.
    pub(crate) workload: String,
    pub(crate) status: v1::PodStatus,
}

/// The node's own problems first, then its DaemonSets, the worst first, then other pods.
pub(crate) fn render(page: &mut Page, node: &Explanation<'_>, now: Timestamp) {
    page.line(0, BOLD, &format!("Node {}", node.node));
    if !node.exists {
        page.marked(
            2,
            "!",
            REMOVE,
            PLAIN,
            "the input has no such Node; these pods were on it or are meant for it",
        );
    }
    for condition in node.conditions {
        let since = age(condition.since, Some(timestamp(now)));
        let since = since.map_or_else(String::new, |age| format!(" for {age}"));
        let reason = match condition.reason.as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        let text = format!("{} is {}{since}{reason}", condition.r#type, condition.status);
        page.marked(2, "!", REMOVE, PLAIN, &text);
    }
    if node.unschedulable {
        page.marked(2, "!", CHANGE, PLAIN, "it is cordoned (spec.unschedulable)");
    }
    page.blank();
    daemon_sets(page, &node.daemon_sets);
    others(page, &node.pods);
}

fn daemon_sets(page: &mut Page, all: &[OnNode<'_>]) {
    page.line(0, BOLD, &count(all.len(), "DaemonSet"));
    let rank = |one: &&OnNode<'_>| {
        let place = STATES.iter().position(|state| *state == one.status.state());
        place.unwrap_or(STATES.len())
    };
    let mut sorted: Vec<&OnNode<'_>> = all.iter().collect();
    sorted.sort_by_key(rank);
    let widest = sorted
        .iter()
        .map(|one| word(one.status.state()).0.len())
        .max()
        .unwrap_or_default();
    for one in sorted {
        let (state, style) = word(one.status.state());
        let problem = one.status.pods.iter().find_map(|pod| pod.problem.as_ref());
        let problem = problem.map(|problem| problem.message.clone());
        let why = problem.or_else(|| one.refusal.as_ref().map(refused));
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let place = match (one.status.rollout_stage.as_str(), one.status.rollout_exempt) {
            ("", _) => String::new(),
            (name, false) => format!(" (stage {name})"),
            (name, true) => format!(" (stage {name}, exempt)"),
        };
        let text = match one.status.state() {
            NodeState::Runs => format!("{}/{}{place}", one.namespace, one.name),
            _ => format!(
                "{}/{}{place}: {}{why}",
                one.namespace, one.name, one.status.message
            ),
        };
        page.marked(2, &format!("{state:widest$} "), style, PLAIN, &text);
    }
}

fn others(page: &mut Page, pods: &[OtherPod]) {
    if pods.is_empty() {
        return;
    }
    page.blank();
    page.line(
        0,
        BOLD,
        &format!("{} of other workloads", count(pods.len(), "pod")),
    );
    let mut sorted: Vec<&OtherPod> = pods.iter().collect();
    sorted.sort_by_key(|pod| pod.status.ready);
    for pod in sorted.iter().take(MAX_PODS) {
        let (sign, style) = if pod.status.ready {
            ("✓", DIM)
        } else {
            ("✗", REMOVE)
        };
        let problem = pod.status.problem.as_ref();
        let problem = problem.map_or_else(String::new, |problem: &v1::PodProblem| {
            format!(": {}", problem.message)
        });
        let workload = match pod.workload.as_str() {
            "" => "no controller",
            workload => workload,
        };
        let text = format!("{}/{} ({workload}){problem}", pod.namespace, pod.status.pod_name);
        page.marked(2, sign, style, PLAIN, &text);
    }
    if pods.len() > MAX_PODS {
        page.line(
            2,
            DIM,
            &format!("and {}", count(pods.len() - MAX_PODS, "more pod")),
        );
    }
}
