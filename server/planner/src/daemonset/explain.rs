//! Explains for each node why the workload runs there or not.

mod budget;
mod decisions;
mod sentences;
mod size_limit;

use crate::{
    core::{
        cancellation::Cancellation,
        snapshot::{PodPhase, Snapshot},
    },
    daemonset::{eligibility::Constraint, workload::DaemonSet},
};
use decisions::Decisions;

/// The explanation for one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeExplanation {
    /// The node.
    pub node_name: String,
    /// The state of the workload on the node.
    pub state: NodeState,
    /// The rule that decides about the node.
    pub rule: Rule,
    /// One sentence for people that names the reason.
    pub message: String,
    /// The workload's pods on or for this node, in the order of D-38: the pod that would be kept comes first.
    pub pods: Vec<PodExplanation>,
    /// Whether the workload may start a pod on the node.
    pub should_run: bool,
    /// Whether a pod on the node may stay.
    pub should_keep: bool,
    /// One sentence for each constraint with its result.
    pub details: Vec<String>,
    /// The place among the nodes that wait for the budget, from 1; `None` if the node does not.
    pub queue_position: Option<usize>,
    /// The stage of a RolloutPolicy that the node belongs to; empty if no rollout is going on.
    pub rollout_stage: String,
    /// Whether a RolloutPolicy leaves the node alone, because it is not ready or in maintenance.
    pub rollout_exempt: bool,
}

/// One pod on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "four facts about a pod, each shown by itself"
)]
pub struct PodExplanation {
    /// The pod's name.
    pub pod_name: String,
    /// Whether the pod is of the current template.
    pub updated: bool,
    /// Whether the pod is ready.
    pub ready: bool,
    /// Whether the pod has been ready for minReadySeconds.
    pub available: bool,
    /// Whether the pod is being deleted.
    pub deleting: bool,
    /// The pod's phase.
    pub phase: PodPhase,
}

/// The state of the workload on a node. The variants are those of the protocol's `NodeState`, which documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "documented once, in proto/nodewise/v1/explain.proto")]
pub enum NodeState {
    Runs,
    Missing,
    MustNotRun,
    BeingReplaced,
    Waiting,
    NotAvailable,
    Blocking,
}

/// The rule that decides about a node. The variants are those of the protocol's `Rule`, which documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "documented once, in proto/nodewise/v1/explain.proto")]
pub enum Rule {
    Eligible,
    NodeName,
    NodeSelector,
    NodeAffinity,
    TaintNoSchedule,
    TaintNoExecute,
    NodeMissing,
    MaxUnavailable,
    MaxSurge,
    OnDelete,
    FailedPodBackoff,
    PodDeleting,
    Expectations,
    Burst,
    ExcessPod,
    Outdated,
    NewPodNotAvailable,
    PodFinished,
    WorkloadInactive,
    PlacementFirst,
    RolloutPolicy,
}

impl From<Constraint> for Rule {
    fn from(constraint: Constraint) -> Self {
        match constraint {
            Constraint::Eligible => Self::Eligible,
            Constraint::NodeName => Self::NodeName,
            Constraint::NodeSelector => Self::NodeSelector,
            Constraint::NodeAffinity => Self::NodeAffinity,
            Constraint::TaintNoSchedule => Self::TaintNoSchedule,
            Constraint::TaintNoExecute => Self::TaintNoExecute,
        }
    }
}

/// Explains one node, or all nodes by name. "All" includes missing nodes that pods are on or meant for. If `node` names an unknown
/// node, the explanation says that it is missing.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn explain(snapshot: &Snapshot<DaemonSet>, node: Option<&str>) -> Vec<NodeExplanation> {
    explain_until(snapshot, node, &|| false).expect("nothing asks to stop")
}

/// Like [`explain`], but returns `None` soon after `stop` returns true.
#[must_use]
pub fn explain_until(
    snapshot: &Snapshot<DaemonSet>,
    node: Option<&str>,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<NodeExplanation>> {
    let mut all = Vec::new();
    explain_each(snapshot, node, stop, &mut |explanation| all.push(explanation))?;
    Some(all)
}

/// Like [`explain_until`], but calls `each` for one node after the other.
#[must_use = "`None` means that it was stopped before the end"]
pub fn explain_each(
    snapshot: &Snapshot<DaemonSet>,
    node: Option<&str>,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(NodeExplanation),
) -> Option<()> {
    let cancellation = Cancellation::new(stop);
    let decisions = Decisions::of(snapshot, cancellation)?;
    if let Some(name) = node {
        each(decisions.node(name));
        return Some(());
    }
    decisions.every_node(cancellation, each)
}
