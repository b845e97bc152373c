//! The units of a ReplicaSet or Deployment: its pods.

use jiff::{SignedDuration, Timestamp};
use nodewise_projection::timestamp;
use nodewise_proto::{
    v1::{self, plan::Status},
    workload::DEPLOYMENT,
};

use crate::{
    facts::{PodFacts, TemplateFacts},
    inputs::Inputs,
    units::{self, Progress, Unit, View},
};

/// The most pods in a status.
const MAX_PODS: usize = 10_000;

/// The pods of a ReplicaSet or Deployment.
pub(crate) fn view(inputs: &Inputs<'_>, refusal: Option<&v1::Refusal>) -> View {
    let current = current(inputs);
    let is_current = |pod: &PodFacts| {
        inputs.workload.kind != DEPLOYMENT || current.is_some_and(|set| set.uid == pod.controller)
    };
    let desired = u32::try_from(inputs.workload.replicas).unwrap_or_default();
    let mut view = View {
        units: Vec::new(),
        desired,
        strategy: strategy(inputs),
        revisions: revisions(inputs, current),
        nodes: Vec::new(),
        pods: Vec::new(),
        surplus: 0,
        ready_times: Vec::new(),
        started_at: started_at(inputs, current),
    };
    let mut left = 0;
    for pod in inputs.pods {
        let updated = is_current(pod);
        let available = is_available(pod, inputs);
        if updated && pod.ready && pod.deleted.is_none() {
            view.ready_times.extend(pod.ready_changed);
        }
        let progress = progress(pod, updated, available, inputs.now);
        if !available {
            view.pods.push(v1::PodStatus {
                unit_state: progress
                    .as_ref()
                    .map_or(v1::UnitState::Unspecified, Progress::state)
                    .into(),
                ..pod.status(updated, available)
            });
        }
        match progress {
            Some(progress) => view.units.push(Unit {
                name: pod.name.clone(),
                progress,
            }),
            None => left += 1,
        }
    }
    view.surplus = left;
    let is_held = view.strategy.r#type == "Recreate" && view.units.iter().any(is_stuck_deletion);
    add_missing(&mut view, if is_held { usize::MAX } else { left }, refusal);
    view.pods.sort_by(|a, b| a.pod_name.cmp(&b.pod_name));
    view.pods.truncate(MAX_PODS);
    view
}

/// How far a pod is. `None` for a pod of an older revision.
fn progress(pod: &PodFacts, updated: bool, available: bool, now: Timestamp) -> Option<Progress> {
    let of_pod = units::of_pod(pod, now);
    match (updated, &of_pod) {
        // A pod that ends is none of the replicas. It matters only if it does not end.
        (_, Progress::Blocked(_)) if pod.deleted.is_some() => Some(of_pod),
        (false, _) => None,
        (true, _) if available => Some(Progress::Done),
        (true, _) => Some(of_pod),
    }
}

/// Whether a pod does not end. With `Recreate`, new pods are created when all older ones are gone.
fn is_stuck_deletion(unit: &Unit) -> bool {
    matches!(&unit.progress, Progress::Blocked(cause) if cause.problem.reason == units::DELETION_STUCK)
}

/// Adds the replicas that have no pod of the current revision: as many as there are older pods wait, the others are to be created.
fn add_missing(view: &mut View, old: usize, refusal: Option<&v1::Refusal>) {
    let desired = view.desired as usize;
    let missing = desired.saturating_sub(view.units.len());
    for number in 0..missing {
        let progress = match refusal {
            _ if number < old => Progress::Waiting,
            Some(refusal) => Progress::Blocked(units::refused(refusal)),
            None => Progress::Progressing,
        };
        view.units.push(Unit {
            name: String::new(),
            progress,
        });
    }
}

fn is_available(pod: &PodFacts, inputs: &Inputs<'_>) -> bool {
    let Some(since) = pod.ready_changed.filter(|_| pod.ready && pod.deleted.is_none()) else {
        return pod.ready && pod.deleted.is_none() && inputs.workload.min_ready_seconds == 0;
    };
    inputs.now.duration_since(since) >= SignedDuration::from_secs(inputs.workload.min_ready_seconds)
}

/// The ReplicaSet with the template of the Deployment.
fn current<'a>(inputs: &Inputs<'a>) -> Option<&'a TemplateFacts> {
    let mut sets = inputs
        .explanation
        .workload
        .iter()
        .flat_map(|workload| &workload.replica_sets);
    let name = &sets.find(|set| set.is_new)?.name;
    inputs.templates.iter().find(|template| template.name == *name)
}

fn strategy(inputs: &Inputs<'_>) -> v1::UpdateStrategy {
    let available = match &inputs.plan.status {
        Some(Status::DeploymentStatus(status)) => status.available_replicas,
        Some(Status::ReplicaSetStatus(status)) => status.available_replicas,
        None => 0,
    };
    let (replicas, pods) = (inputs.workload.replicas, inputs.pods.iter());
    let present = pods.filter(|pod| pod.deleted.is_none()).count();
    let [max_unavailable, max_surge] = inputs.workload.budget;
    let count = |number: i64| u32::try_from(number.max(0)).unwrap_or(u32::MAX);
    v1::UpdateStrategy {
        r#type: inputs.workload.strategy.clone(),
        max_unavailable,
        max_surge,
        unavailable: count(replicas - i64::from(available)),
        surging: count(i64::try_from(present).unwrap_or(i64::MAX) - replicas),
    }
}

fn revisions(inputs: &Inputs<'_>, current: Option<&TemplateFacts>) -> Vec<v1::RevisionStatus> {
    let is_current = |set: &TemplateFacts| current.is_some_and(|current| current.uid == set.uid);
    let mut revisions: Vec<v1::RevisionStatus> = (inputs.templates.iter())
        .map(|set| {
            (
                set,
                inputs.pods.iter().filter(|pod| pod.controller == set.uid).count(),
            )
        })
        .filter(|(set, pods)| *pods > 0 || set.replicas > 0 || is_current(set))
        .map(|(set, pods)| v1::RevisionStatus {
            name: set.name.clone(),
            number: set.number,
            hash: set.hash.clone(),
            is_current: is_current(set),
            images: set.images.clone(),
            created_at: set.created.map(timestamp),
            pods: u32::try_from(pods).unwrap_or(u32::MAX),
        })
        .collect();
    if !revisions.iter().any(|revision| revision.is_current) {
        revisions.push(v1::RevisionStatus {
            is_current: true,
            images: inputs.workload.images.clone(),
            pods: if inputs.workload.kind == DEPLOYMENT {
                0
            } else {
                u32::try_from(inputs.pods.len()).unwrap_or(u32::MAX)
            },
            ..v1::RevisionStatus::default()
        });
    }
    revisions.sort_by_key(|revision| (!revision.is_current, std::cmp::Reverse(revision.number)));
    revisions
}

/// As for a DaemonSet. A ReplicaSet has one template, which begins with it.
fn started_at(inputs: &Inputs<'_>, current: Option<&TemplateFacts>) -> Option<Timestamp> {
    if inputs.workload.kind != DEPLOYMENT {
        return inputs.workload.created;
    }
    let current = current?;
    let others = inputs.pods.iter().filter(|pod| pod.controller != current.uid);
    others.filter_map(|pod| pod.created).chain(current.created).max()
}
