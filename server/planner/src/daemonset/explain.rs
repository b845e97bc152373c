//! Why a workload runs, or does not run, on a node: the decisions of a plan, told node by node.

mod decisions;
mod sentences;
mod size_limit;

use crate::{
    core::{
        cancellation::Cancellation,
        snapshot::{PodPhase, Snapshot},
    },
    daemonset::eligibility::Constraint,
};
use decisions::Decisions;

/// What is true of the workload on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeExplanation {
    /// The node.
    pub node_name: String,
    /// The answer in one word.
    pub state: NodeState,
    /// The rule that decides.
    pub rule: Rule,
    /// One sentence for people that names what decides.
    pub message: String,
    /// The workload's pods on or for this node, first the one that would be kept first.
    pub pods: Vec<PodExplanation>,
    /// The workload may start a pod here.
    pub should_run: bool,
    /// A pod that is here may stay.
    pub should_keep: bool,
    /// Each constraint that was looked at and how it came out.
    pub details: Vec<String>,
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
    /// Of the current template.
    pub updated: bool,
    /// Ready.
    pub ready: bool,
    /// Ready for minReadySeconds.
    pub available: bool,
    /// Being deleted.
    pub deleting: bool,
    /// The phase.
    pub phase: PodPhase,
}

/// What is true of the workload on a node. The variants are those of the protocol's `NodeState`, which documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "documented once, in proto/nodewise/v1/explain.proto")]
pub enum NodeState {
    Runs,
    Missing,
    MustNotRun,
    BeingReplaced,
    Waiting,
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

/// Explains one node, or every node and every missing node that pods are on or meant for, by name. A node that was asked for
/// and is not known is explained, too: it is missing.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn explain(snapshot: &Snapshot, node: Option<&str>) -> Vec<NodeExplanation> {
    explain_until(snapshot, node, &|| false).expect("nothing asks to stop")
}

/// As [`explain`], but gives up with `None` soon after `stop` turns true.
#[must_use]
pub fn explain_until(
    snapshot: &Snapshot,
    node: Option<&str>,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<NodeExplanation>> {
    let mut all = Vec::new();
    explain_each(snapshot, node, stop, &mut |explanation| all.push(explanation))?;
    Some(all)
}

/// As [`explain_until`], but hands over one node after the other.
#[must_use = "whether it came to the end"]
pub fn explain_each(
    snapshot: &Snapshot,
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
