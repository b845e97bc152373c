//! The counts of a rollout, from a plan and from what the caches know of ReplicaSets.

use std::sync::Arc;

use jiff::Timestamp;
use nodewise_projection::{Strategy, Workload, moment, timestamp};
use nodewise_proto::{
    v1::{self, action, plan::Status},
    workload::{HASH_LABEL, REPLICA_SET, TEMPLATE_HASH_LABEL},
};
use nodewise_runtime::store::{Store, target_node};
use nodewise_status::{Controlled, PodFacts, TemplateFacts, UnreadyUnit, changes_pods};
use serde::Deserialize;

/// What a plan says about the rollout of its workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tally {
    pub(super) controlled: Controlled,
    /// The hash of the current template.
    pub(super) revision: String,
    /// The uids of the controllers of its pods, and whether all pods of that controller have the current template. `None`: the hash
    /// of the pod says so.
    pub(super) controllers: Vec<(Arc<str>, Option<bool>)>,
    /// Whether the units are nodes, and not pods.
    is_per_node: bool,
}

/// The counts. `None` if the plan does not say how far the rollout is.
pub(super) fn of(store: &Store, workload: &Workload, plan: &v1::Plan) -> Option<Tally> {
    let controlled = Controlled {
        workload: v1::WorkloadReference {
            resource_version: String::new(),
            ..workload.reference()
        },
        is_paused: workload.is_paused,
        is_on_delete: workload.strategy == Strategy::OnDelete,
        is_recreate: workload.strategy == Strategy::Recreate,
        moves: changes_pods(plan),
        ..Controlled::default()
    };
    if let Some(rollout) = &plan.rollout {
        return Some(Tally {
            controlled: Controlled {
                desired: rollout.desired,
                done: rollout.updated_available,
                unavailable: rollout.updated_unavailable,
                outdated: rollout.outdated,
                missing: rollout.without_pod,
                ..controlled
            },
            revision: rollout.current_hash.clone(),
            controllers: vec![(Arc::clone(&workload.uid), None)],
            is_per_node: true,
        });
    }
    match plan.status.as_ref()? {
        Status::ReplicaSetStatus(status) => {
            let [desired, pods, available] = [
                workload.replicas.unwrap_or_default(),
                status.replicas,
                status.available_replicas,
            ]
            .map(count);
            Some(Tally {
                controlled: Controlled {
                    desired,
                    done: available,
                    unavailable: pods.saturating_sub(available),
                    missing: desired.saturating_sub(pods),
                    surplus: pods.saturating_sub(desired),
                    ..controlled
                },
                revision: revision(workload),
                controllers: vec![(Arc::clone(&workload.uid), Some(true))],
                is_per_node: false,
            })
        }
        Status::DeploymentStatus(status) => of_deployment(store, workload, plan, status, controlled),
    }
}

/// The counts of a Deployment: the ReplicaSet with the highest revision has the current template, unless the plan creates one.
fn of_deployment(
    store: &Store,
    workload: &Workload,
    plan: &v1::Plan,
    status: &v1::DeploymentStatus,
    controlled: Controlled,
) -> Option<Tally> {
    let creates = |action: &v1::Action| matches!(action.kind, Some(action::Kind::CreateObject(_)));
    if plan.actions().any(creates) {
        return None;
    }
    let sets = || store.controlled(REPLICA_SET, workload);
    let current = sets().max_by_key(|set| number(set))?;
    let [desired, all] = [workload.replicas.unwrap_or_default(), status.replicas].map(count);
    let [pods, available] = [current.status.current, current.status.available]
        .map(|count| u32::try_from(count.max(0)).unwrap_or(u32::MAX));
    let others = all.saturating_sub(pods);
    let missing = desired.saturating_sub(pods);
    let waiting = missing.min(others);
    let failure = (missing > 0)
        .then(|| TemplateFacts::of_replica_set(&String::from_utf8_lossy(&current.object)).failure)
        .flatten();
    Some(Tally {
        controlled: Controlled {
            desired,
            done: available,
            unavailable: pods.saturating_sub(available),
            outdated: waiting,
            missing: missing - waiting,
            surplus: others,
            refusal: failure.map(|(message, at)| v1::Refusal {
                message,
                at: at.map(timestamp),
                since: at.map(timestamp),
            }),
            ..controlled
        },
        revision: revision(current),
        controllers: sets()
            .filter(|set| !set.is_scaled_to_zero() || set.uid == current.uid)
            .map(|set| (Arc::clone(&set.uid), Some(set.uid == current.uid)))
            .collect(),
        is_per_node: false,
    })
}

fn count(count: i32) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

/// The number of a ReplicaSet's revision. 0 if it has none.
fn number(set: &Workload) -> i64 {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Object {
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Metadata {
        annotations: Annotations,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Annotations {
        #[serde(rename = "deployment.kubernetes.io/revision")]
        revision: String,
    }
    let object: Object = serde_json::from_slice(&set.object).unwrap_or_default();
    object.metadata.annotations.revision.parse().unwrap_or_default()
}

/// The hash in the labels of a ReplicaSet, or its name.
fn revision(set: &Workload) -> String {
    let hash = set.labels.iter().find(|label| label.key == TEMPLATE_HASH_LABEL);
    hash.map_or_else(|| set.key.name.to_string(), |label| label.value.clone())
}

impl Tally {
    /// The pods that are not ready or are being deleted.
    pub(super) fn unready(&self, store: &Store, namespace: &str) -> Vec<UnreadyUnit> {
        let mut units = Vec::new();
        for (uid, all_are_updated) in &self.controllers {
            for (pod, unready) in store.unready_pods(namespace, uid) {
                let pod = PodFacts::of_projected(namespace, &pod, target_node(&pod), unready);
                units.push(UnreadyUnit {
                    is_updated: all_are_updated.unwrap_or_else(|| pod.hash == self.revision),
                    is_node: self.is_per_node,
                    pod,
                });
            }
        }
        units
    }
}

/// When the rollout to a revision began, as far as the caches know: the last time that the object with its template was created, or a
/// pod of another template. Visits all pods of the workload.
pub(super) fn began(store: &Store, workload: &Workload, revision: &str) -> Option<Timestamp> {
    let is_current = |labels: &[v1::Label]| {
        let mut hashes = labels
            .iter()
            .filter(|label| label.key == HASH_LABEL || label.key == TEMPLATE_HASH_LABEL);
        hashes.any(|label| label.value == revision)
    };
    store
        .began(workload, &is_current)
        .or(workload.created)
        .and_then(moment)
}

/// Updates the refusal from the outcomes of a plan. It begins with the first refused create, and ends with a successful one.
pub(super) fn take_outcomes(
    refusal: &mut Option<v1::Refusal>,
    plan: &v1::Plan,
    outcomes: &[v1::Outcome],
    at: Timestamp,
) {
    let creates = |action: &v1::Action| matches!(action.kind, Some(action::Kind::CreatePod(_)));
    for (action, outcome) in plan.actions().zip(outcomes) {
        match outcome.result() {
            v1::Result::Succeeded if creates(action) => {
                *refusal = None;
                return;
            }
            // The apiserver answered, and did not ask to try again.
            v1::Result::Failed if creates(action) && matches!(outcome.http_status, 400..=428 | 430..=499) => {
                let since = refusal.as_ref().and_then(|refusal| refusal.since);
                *refusal = Some(v1::Refusal {
                    message: outcome.message.clone(),
                    at: Some(timestamp(at)),
                    since: since.or(Some(timestamp(at))),
                });
            }
            _ => {}
        }
    }
}
