//! Explanations as messages.

use nodewise_planner::{
    daemonset::explain::{NodeExplanation, NodeState, PodExplanation, Rule},
    snapshot::PodPhase,
};
use nodewise_proto::v1;

/// The explanation of a node as a message.
pub(crate) fn explanation(node: NodeExplanation) -> v1::NodeExplanation {
    v1::NodeExplanation {
        node_name: node.node_name,
        state: state(node.state).into(),
        rule: rule(node.rule).into(),
        message: node.message,
        pods: node.pods.into_iter().map(pod).collect(),
        should_run: node.should_run,
        should_keep: node.should_keep,
        details: node.details,
    }
}

fn pod(pod: PodExplanation) -> v1::PodExplanation {
    v1::PodExplanation {
        pod_name: pod.pod_name,
        updated: pod.updated,
        ready: pod.ready,
        available: pod.available,
        deleting: pod.deleting,
        phase: phase(pod.phase).into(),
    }
}

fn phase(phase: PodPhase) -> v1::PodPhase {
    match phase {
        PodPhase::Pending => v1::PodPhase::Pending,
        PodPhase::Running => v1::PodPhase::Running,
        PodPhase::Succeeded => v1::PodPhase::Succeeded,
        PodPhase::Failed => v1::PodPhase::Failed,
        PodPhase::Unknown => v1::PodPhase::Unknown,
    }
}

fn state(state: NodeState) -> v1::NodeState {
    match state {
        NodeState::Runs => v1::NodeState::Runs,
        NodeState::Missing => v1::NodeState::Missing,
        NodeState::MustNotRun => v1::NodeState::MustNotRun,
        NodeState::BeingReplaced => v1::NodeState::BeingReplaced,
        NodeState::Waiting => v1::NodeState::Waiting,
    }
}

fn rule(rule: Rule) -> v1::Rule {
    match rule {
        Rule::Eligible => v1::Rule::Eligible,
        Rule::NodeName => v1::Rule::NodeName,
        Rule::NodeSelector => v1::Rule::NodeSelector,
        Rule::NodeAffinity => v1::Rule::NodeAffinity,
        Rule::TaintNoSchedule => v1::Rule::TaintNoSchedule,
        Rule::TaintNoExecute => v1::Rule::TaintNoExecute,
        Rule::NodeMissing => v1::Rule::NodeMissing,
        Rule::MaxUnavailable => v1::Rule::MaxUnavailable,
        Rule::MaxSurge => v1::Rule::MaxSurge,
        Rule::OnDelete => v1::Rule::OnDelete,
        Rule::FailedPodBackoff => v1::Rule::FailedPodBackoff,
        Rule::PodDeleting => v1::Rule::PodDeleting,
        Rule::Expectations => v1::Rule::Expectations,
        Rule::Burst => v1::Rule::Burst,
        Rule::ExcessPod => v1::Rule::ExcessPod,
        Rule::Outdated => v1::Rule::Outdated,
        Rule::NewPodNotAvailable => v1::Rule::NewPodNotAvailable,
        Rule::PodFinished => v1::Rule::PodFinished,
        Rule::WorkloadInactive => v1::Rule::WorkloadInactive,
        Rule::PlacementFirst => v1::Rule::PlacementFirst,
    }
}
