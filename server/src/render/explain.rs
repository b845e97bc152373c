//! Explanations as messages.

use nodewise_planner::{
    daemonset::explain::{NodeExplanation, NodeState, PodExplanation, Rule},
    deployment, replicaset,
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
        rollout_stage: node.rollout_stage,
        rollout_exempt: node.rollout_exempt,
        queue_position: node
            .queue_position
            .map_or(0, |place| u32::try_from(place).unwrap_or(u32::MAX)),
    }
}

/// Most pods in the explanation of a ReplicaSet.
pub(crate) const MOST_PODS: usize = 10_000;

/// The explanation of a ReplicaSet as a message.
pub(crate) fn replica_set_explanation(
    explanation: replicaset::explain::Explanation,
) -> v1::WorkloadExplanation {
    let more = explanation.pods.len().saturating_sub(MOST_PODS);
    let pod = |pod: replicaset::explain::PodExplanation| v1::ReplicaExplanation {
        pod_name: pod.pod_name,
        node_name: pod.node_name,
        deletion_order: pod
            .place
            .map_or(0, |place| u32::try_from(place).unwrap_or(u32::MAX)),
        message: pod.message,
    };
    v1::WorkloadExplanation {
        message: explanation.message,
        details: Vec::new(),
        replica_sets: Vec::new(),
        pods: explanation.pods.into_iter().take(MOST_PODS).map(pod).collect(),
        more_pods: u32::try_from(more).unwrap_or(u32::MAX),
    }
}

/// The explanation of a Deployment as a message.
pub(crate) fn deployment_explanation(
    explanation: deployment::explain::Explanation,
) -> v1::WorkloadExplanation {
    let set = |set: deployment::explain::SetExplanation| v1::ReplicaSetExplanation {
        name: set.name,
        revision: set.revision.unwrap_or_default(),
        is_new: set.is_new,
        replicas: set.replicas,
        pods: set.pods,
        ready: set.ready,
        available: set.available,
        message: set.message,
    };
    v1::WorkloadExplanation {
        message: explanation.message,
        details: explanation.details,
        replica_sets: explanation.sets.into_iter().map(set).collect(),
        pods: Vec::new(),
        more_pods: 0,
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
        NodeState::NotAvailable => v1::NodeState::NotAvailable,
        NodeState::Blocking => v1::NodeState::Blocking,
    }
}

pub(super) fn rule(rule: Rule) -> v1::Rule {
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
        Rule::RolloutPolicy => v1::Rule::RolloutPolicy,
    }
}
