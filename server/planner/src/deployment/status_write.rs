//! The one write of the Deployment's status, with its revision annotation (P-3, P-57).

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    core::{
        canonical,
        plan::{Action, ActionKind, ObjectRef, PatchType, Reason, Resource, Subresource},
        status::{Condition, DeploymentStatus},
    },
    deployment::{annotations::REVISION, set_write, workload::Deployment},
};

/// The action that writes a status and a revision; `None` if neither changes.
pub(crate) fn action(
    deployment: &Deployment,
    status: &DeploymentStatus,
    revision: Option<&str>,
) -> Option<Action> {
    let changes = Changes::of(deployment, status, revision);
    let (reason, message) = changes.describe()?;
    let mut metadata = set_write::metadata(&deployment.uid, &deployment.resource_version);
    if let Some(revision) = revision {
        metadata.insert("annotations".to_owned(), json!({REVISION: revision}));
    }
    let patch = json!({"metadata": metadata, "status": to_json(&deployment.status, status)});
    Some(patch_status(deployment, (reason, message), &patch, String::new()))
}

/// The action that writes only the conditions, after the plan failed. The executor appends the error to the message of the last
/// condition.
pub(crate) fn failure(deployment: &Deployment, conditions: &[Condition], message: String) -> Action {
    let metadata = set_write::metadata(&deployment.uid, &deployment.resource_version);
    let list: Vec<Value> = conditions.iter().map(condition).collect();
    let pointer = format!("/status/conditions/{}/message", list.len().saturating_sub(1));
    let patch = json!({"metadata": metadata, "status": {"conditions": list}});
    patch_status(deployment, (Reason::WritesFailed, message), &patch, pointer)
}

/// The action that only raises observedGeneration (P-10).
pub(crate) fn observe_generation(deployment: &Deployment) -> Action {
    let metadata = set_write::metadata(&deployment.uid, &deployment.resource_version);
    let generation = deployment.generation;
    let patch = json!({"metadata": metadata, "status": {"observedGeneration": generation}});
    let message = format!("generation {generation} is observed");
    patch_status(
        deployment,
        (Reason::GenerationObserved, message),
        &patch,
        String::new(),
    )
}

fn patch_status(
    deployment: &Deployment,
    (reason, message): (Reason, String),
    patch: &Value,
    failure_pointer: String,
) -> Action {
    Action {
        reason,
        message,
        kind: ActionKind::PatchObject {
            resource: Resource::Deployments,
            object: ObjectRef {
                name: deployment.name.clone(),
                uid: deployment.uid.clone(),
            },
            subresource: Subresource::Status,
            patch_type: PatchType::Merge,
            patch: canonical::to_bytes(patch),
            failure_pointer,
            claim: None,
            events: Box::default(),
        },
    }
}

/// What differs from the present Deployment.
#[derive(Debug)]
struct Changes {
    counts: Vec<String>,
    collision: Option<i32>,
    conditions: Vec<String>,
    generation: Option<i64>,
    revision: Option<String>,
}

impl Changes {
    fn of(deployment: &Deployment, new: &DeploymentStatus, revision: Option<&str>) -> Self {
        let old = &deployment.status;
        let count = |count: Option<i32>| count.map_or_else(|| "unset".to_owned(), |count| count.to_string());
        let fields = [
            ("replicas", Some(old.replicas), Some(new.replicas)),
            ("updated", Some(old.updated_replicas), Some(new.updated_replicas)),
            ("ready", Some(old.ready_replicas), Some(new.ready_replicas)),
            (
                "available",
                Some(old.available_replicas),
                Some(new.available_replicas),
            ),
            (
                "unavailable",
                Some(old.unavailable_replicas),
                Some(new.unavailable_replicas),
            ),
            ("terminating", old.terminating_replicas, new.terminating_replicas),
        ];
        Self {
            counts: fields
                .into_iter()
                .filter(|(_, old, new)| old != new)
                .map(|(name, old, new)| format!("{name} {} → {}", count(old), count(new)))
                .collect(),
            collision: new
                .collision_count
                .filter(|_| new.collision_count != old.collision_count),
            conditions: condition_changes(&old.conditions, &new.conditions),
            generation: (old.observed_generation != new.observed_generation)
                .then_some(new.observed_generation),
            revision: revision.map(str::to_owned),
        }
    }

    /// The reason of the write and a sentence; `None` if nothing changes.
    fn describe(&self) -> Option<(Reason, String)> {
        let reason = if self.collision.is_some() {
            Reason::RevisionNameCollision
        } else if !self.counts.is_empty() {
            Reason::StatusChanged
        } else if !self.conditions.is_empty() {
            Reason::ConditionChanged
        } else if self.generation.is_some() {
            Reason::GenerationObserved
        } else if self.revision.is_some() {
            Reason::MetadataChanged
        } else {
            return None;
        };
        let collision = self
            .collision
            .map(|count| format!("the name of the new ReplicaSet is taken {count} times"));
        let counts = (!self.counts.is_empty()).then(|| format!("status: {}", self.counts.join(", ")));
        let generation = self
            .generation
            .map(|generation| format!("generation {generation} is observed"));
        let revision = self
            .revision
            .as_ref()
            .map(|revision| format!("the revision is {revision}"));
        let sentences = [collision, counts].into_iter().flatten();
        let sentences: Vec<String> = sentences
            .chain(self.conditions.iter().cloned())
            .chain(generation)
            .chain(revision)
            .collect();
        Some((reason, sentences.join("; ")))
    }
}

/// Each of so many conditions is compared with the others, to tell what is different.
const MOST_EXPLAINED: usize = 100;

/// A sentence for each condition that is new, different or gone; one sentence if only their order differs.
fn condition_changes(old: &[Condition], new: &[Condition]) -> Vec<String> {
    if old == new {
        return Vec::new();
    }
    if old.len() > MOST_EXPLAINED {
        return vec!["the conditions are different".to_owned()];
    }
    let different = new
        .iter()
        .filter(|condition| !old.contains(condition))
        .map(|condition| {
            format!(
                "{} is {} ({})",
                condition.r#type, condition.status, condition.reason
            )
        });
    let gone = old
        .iter()
        .filter(|before| new.iter().all(|condition| condition.r#type != before.r#type))
        .map(|condition| format!("{} is removed", condition.r#type));
    let changes: Vec<String> = different.chain(gone).collect();
    if changes.is_empty() {
        return vec!["the conditions have another order".to_owned()];
    }
    changes
}

/// The status as JSON. Fields that the present one has and the new one has not are null, so that a merge patch removes them.
fn to_json(old: &DeploymentStatus, new: &DeploymentStatus) -> Value {
    let conditions: Vec<Value> = new.conditions.iter().map(condition).collect();
    let mut status = json!({
        "replicas": new.replicas,
        "updatedReplicas": new.updated_replicas,
        "readyReplicas": new.ready_replicas,
        "availableReplicas": new.available_replicas,
        "unavailableReplicas": new.unavailable_replicas,
        "observedGeneration": new.observed_generation,
        "conditions": conditions,
    });
    for (key, old, new) in [
        (
            "terminatingReplicas",
            old.terminating_replicas,
            new.terminating_replicas,
        ),
        ("collisionCount", old.collision_count, new.collision_count),
    ] {
        if old.is_some() || new.is_some() {
            status[key] = json!(new);
        }
    }
    status
}

fn condition(condition: &Condition) -> Value {
    if let Some(served) = &condition.served {
        return served.to_value();
    }
    let texts = [
        ("type", &condition.r#type),
        ("status", &condition.status),
        ("reason", &condition.reason),
        ("message", &condition.message),
    ];
    let times = [
        ("lastTransitionTime", condition.last_transition_time),
        ("lastUpdateTime", condition.last_update_time),
    ];
    let texts = texts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(key, text)| (key.to_owned(), json!(text)));
    let times = times
        .into_iter()
        .filter_map(|(key, time)| Some((key.to_owned(), json!(rfc3339(time?)))));
    Value::Object(texts.chain(times).collect::<Map<_, _>>())
}

fn rfc3339(time: Timestamp) -> String {
    time.to_string()
}
