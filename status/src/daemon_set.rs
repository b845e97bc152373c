//! The units of a DaemonSet: its nodes.

use std::collections::HashMap;

use jiff::Timestamp;
use nodewise_projection::timestamp;
use nodewise_proto::v1::{self, NodeState};

use crate::{
    facts::{PodFacts, TemplateFacts},
    inputs::Inputs,
    units::{self, Progress, Unit, View},
};

/// The nodes of a DaemonSet.
pub(crate) fn view(inputs: &Inputs<'_>, refusal: Option<&v1::Refusal>) -> View {
    let pods: HashMap<&str, &PodFacts> = (inputs.pods.iter()).map(|pod| (&*pod.name, *pod)).collect();
    let mut view = View {
        units: Vec::new(),
        desired: 0,
        strategy: strategy(inputs),
        revisions: Vec::new(),
        nodes: Vec::new(),
        pods: Vec::new(),
        surplus: 0,
        ready_times: Vec::new(),
        started_at: None,
    };
    for node in &inputs.explanation.nodes {
        view.desired += u32::from(node.should_run);
        let progress = progress(node, &pods, refusal, inputs.now);
        view.nodes.push(status(node, progress.as_ref(), &pods, inputs));
        if let Some(progress) = progress {
            view.units.push(Unit {
                name: node.node_name.clone(),
                progress,
            });
        }
        let updated = node.pods.iter().filter(|pod| pod.updated && pod.ready);
        let facts = updated.filter_map(|pod| pods.get(&*pod.pod_name));
        view.ready_times.extend(facts.filter_map(|pod| pod.ready_changed));
    }
    let hash = inputs
        .plan
        .rollout
        .as_ref()
        .map_or("", |rollout| &rollout.current_hash);
    view.revisions = revisions(inputs, hash);
    view.started_at = started_at(inputs, hash);
    view
}

fn strategy(inputs: &Inputs<'_>) -> v1::UpdateStrategy {
    let rollout = inputs.plan.rollout.clone().unwrap_or_default();
    v1::UpdateStrategy {
        r#type: inputs.workload.strategy.clone(),
        max_unavailable: rollout.max_unavailable,
        max_surge: rollout.max_surge,
        unavailable: rollout.unavailable,
        surging: rollout.surging,
    }
}

/// How far a node is. `None` if the workload neither should run on it nor has a pod there.
fn progress(
    node: &v1::NodeExplanation,
    pods: &HashMap<&str, &PodFacts>,
    refusal: Option<&v1::Refusal>,
    now: Timestamp,
) -> Option<Progress> {
    let facts = || node.pods.iter().filter_map(|pod| pods.get(&*pod.pod_name));
    // The new pod decides, or else the one that goes.
    let deciding = || {
        let updated = node.pods.iter().filter(|pod| pod.updated && !pod.available);
        let mut updated = updated.filter_map(|pod| pods.get(&*pod.pod_name));
        let pod = updated
            .next()
            .or_else(|| facts().find(|pod| pod.deleted.is_some()));
        pod.map_or(Progress::Progressing, |pod| units::of_pod(pod, now))
    };
    Some(match node.state() {
        NodeState::Runs => Progress::Done,
        NodeState::NotAvailable | NodeState::Blocking | NodeState::BeingReplaced => deciding(),
        NodeState::Missing => match refusal {
            Some(refusal) => Progress::Blocked(units::refused(refusal)),
            None => Progress::Progressing,
        },
        NodeState::Waiting => Progress::Waiting,
        NodeState::MustNotRun if node.pods.is_empty() => return None,
        NodeState::MustNotRun => Progress::MustNotRun,
        NodeState::Unspecified => return None,
    })
}

fn status(
    node: &v1::NodeExplanation,
    progress: Option<&Progress>,
    pods: &HashMap<&str, &PodFacts>,
    inputs: &Inputs<'_>,
) -> v1::NodeStatus {
    let facts = (inputs.node)(&node.node_name).cloned().unwrap_or_default();
    let pod = |pod: &v1::PodExplanation| match pods.get(&*pod.pod_name) {
        Some(facts) => facts.status(pod.updated, pod.available),
        None => v1::PodStatus {
            pod_name: pod.pod_name.clone(),
            updated: pod.updated,
            ready: pod.ready,
            available: pod.available,
            ..v1::PodStatus::default()
        },
    };
    v1::NodeStatus {
        node_name: node.node_name.clone(),
        state: node.state,
        rule: node.rule,
        message: node.message.clone(),
        queue_position: node.queue_position,
        pods: node.pods.iter().map(pod).collect(),
        conditions: facts.conditions,
        unschedulable: facts.unschedulable,
        zone: facts.zone,
        unit_state: progress
            .map_or(v1::UnitState::Unspecified, Progress::state)
            .into(),
        block_reason: progress.map_or("", Progress::block_reason).to_owned(),
        pool: facts.pool,
        rollout_stage: node.rollout_stage.clone(),
        rollout_exempt: node.rollout_exempt,
    }
}

/// The revisions that have pods, and the current one.
fn revisions(inputs: &Inputs<'_>, hash: &str) -> Vec<v1::RevisionStatus> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for pod in inputs.pods {
        *counts.entry(&pod.hash).or_default() += 1;
    }
    let shown = |template: &&TemplateFacts| template.hash == hash || counts.contains_key(&*template.hash);
    let mut revisions: Vec<v1::RevisionStatus> = (inputs.templates.iter())
        .filter(shown)
        .map(|template| v1::RevisionStatus {
            name: template.name.clone(),
            number: template.number,
            hash: template.hash.clone(),
            is_current: template.hash == hash,
            images: template.images.clone(),
            created_at: template.created.map(timestamp),
            pods: counts.get(&*template.hash).copied().unwrap_or_default(),
        })
        .collect();
    if !revisions.iter().any(|revision| revision.is_current) {
        revisions.push(v1::RevisionStatus {
            hash: hash.to_owned(),
            is_current: true,
            images: inputs.workload.images.clone(),
            ..v1::RevisionStatus::default()
        });
    }
    revisions.sort_by_key(|revision| (!revision.is_current, std::cmp::Reverse(revision.number)));
    revisions
}

/// The time at which the rollout to the revision began: its creation or, if it existed before, when the last pod of another revision
/// was created.
fn started_at(inputs: &Inputs<'_>, hash: &str) -> Option<Timestamp> {
    let mut templates = inputs.templates.iter();
    let created = templates.find(|template| template.hash == hash)?.created?;
    let others = inputs.pods.iter().filter(|pod| pod.hash != hash);
    others.filter_map(|pod| pod.created).chain([created]).max()
}
