//! Parses a Deployment and its ReplicaSets.

use std::collections::HashSet;

use k8s_openapi::{
    api::apps::v1::{DeploymentStrategy, RollingUpdateDeployment},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use nodewise_planner::{
    deployment::{Deployment, RollingUpdate, Set, Strategy},
    json::Json,
    plan::DeploymentStatus,
};
use nodewise_proto::{
    v1,
    workload::{DEPLOYMENT, REPLICA_SET},
};
use serde::Deserialize;

use super::{
    super::{
        Context,
        problems::{Path, Problems},
    },
    object::{self, Read},
    replica_set::Spec as SetSpec,
    status::{SetStatus, conditions},
};
use crate::{limits::Limits, refusal::Refusal};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    /// As served, since a new ReplicaSet gets it.
    #[serde(default)]
    selector: Json,
    #[serde(default)]
    template: Json,
    replicas: Option<i32>,
    paused: Option<bool>,
    strategy: Option<DeploymentStrategy>,
    min_ready_seconds: Option<i32>,
    progress_deadline_seconds: Option<i32>,
    revision_history_limit: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Counts {
    replicas: Option<i32>,
    updated_replicas: Option<i32>,
    ready_replicas: Option<i32>,
    available_replicas: Option<i32>,
    unavailable_replicas: Option<i32>,
    terminating_replicas: Option<i32>,
    collision_count: Option<i32>,
    observed_generation: Option<i64>,
    conditions: Option<Vec<Json>>,
}

impl From<Counts> for DeploymentStatus {
    fn from(status: Counts) -> Self {
        Self {
            replicas: status.replicas.unwrap_or_default(),
            updated_replicas: status.updated_replicas.unwrap_or_default(),
            ready_replicas: status.ready_replicas.unwrap_or_default(),
            available_replicas: status.available_replicas.unwrap_or_default(),
            unavailable_replicas: status.unavailable_replicas.unwrap_or_default(),
            terminating_replicas: status.terminating_replicas,
            collision_count: status.collision_count,
            observed_generation: status.observed_generation.unwrap_or_default(),
            conditions: conditions(status.conditions),
        }
    }
}

/// Reads the Deployment at `at`. `None` if it has errors, which are noted.
pub(super) fn read(
    message: &v1::Deployment,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Option<Deployment>, Refusal> {
    let sets = sets(&message.replica_sets, &at.field("replica_sets"), context)?;
    let (at, problems) = (at.field("object"), &mut context.problems);
    Ok(deployment(&message.object, sets, &at, problems))
}

fn deployment(object: &[u8], sets: Vec<Set>, at: &Path<'_>, problems: &mut Problems) -> Option<Deployment> {
    let Read { head, spec, status } = object::read::<Spec, Counts>(object, DEPLOYMENT, at, problems)?;
    object::require_template(spec.template.is_object(), at, problems);
    let selector: Option<LabelSelector> = serde_json::from_str(spec.selector.as_str())
        .map_err(|error| problems.add(at, format!("spec.selector: {error}")))
        .unwrap_or_default();
    let selector = object::selector(selector, head.deleting, at, problems);
    let (name, uid) = head.identity?;
    Some(Deployment {
        name,
        uid,
        namespace: head.namespace,
        resource_version: head.resource_version,
        generation: head.generation,
        deleting: head.deleting,
        annotations: head.annotations,
        selector,
        selector_json: spec.selector,
        // Absent fields have the apiserver's defaults, which it always sets.
        replicas: spec.replicas.unwrap_or(1),
        paused: spec.paused.unwrap_or_default(),
        strategy: strategy(spec.strategy),
        min_ready_seconds: spec.min_ready_seconds.unwrap_or_default(),
        progress_deadline_seconds: spec.progress_deadline_seconds,
        revision_history_limit: spec.revision_history_limit,
        template: spec.template,
        status: status.into(),
        sets,
    })
}

fn strategy(strategy: Option<DeploymentStrategy>) -> Strategy {
    let strategy = strategy.unwrap_or_default();
    let limits = |limits: RollingUpdateDeployment| RollingUpdate {
        max_unavailable: limits.max_unavailable.map(object::int_or_string),
        max_surge: limits.max_surge.map(object::int_or_string),
    };
    match strategy.type_.as_deref() {
        Some("RollingUpdate") => Strategy::RollingUpdate(strategy.rolling_update.map(limits)),
        Some("Recreate") => Strategy::Recreate,
        other => Strategy::Unknown(other.unwrap_or_default().to_owned()),
    }
}

/// Reads the ReplicaSets. Their names and uids must be unique.
fn sets(
    messages: &[v1::DeploymentReplicaSet],
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Set>, Refusal> {
    Context::bound(at, messages.len(), Limits::REPLICA_SETS)?;
    let mut sets = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        // A ReplicaSet may take milliseconds.
        context.check_stop()?;
        let at = at.index(index);
        sets.extend(set(message, &at.field("object"), &mut context.problems));
        if context.problems.is_full() {
            return Ok(sets);
        }
    }
    let (mut names, mut uids) = (HashSet::new(), HashSet::new());
    for set in &sets {
        for (field, value, seen) in [("name", &set.name, &mut names), ("uid", &set.uid, &mut uids)] {
            if !seen.insert(value) {
                let problem = format!("metadata.{field}: `{value}` is there twice");
                context.problems.add(at, problem);
            }
        }
    }
    Ok(sets)
}

fn set(message: &v1::DeploymentReplicaSet, at: &Path<'_>, problems: &mut Problems) -> Option<Set> {
    let Read { head, spec, status } =
        object::read::<SetSpec, SetStatus>(&message.object, REPLICA_SET, at, problems)?;
    let replicas = spec.replicas();
    let (name, uid) = head.identity?;
    Some(Set {
        name,
        uid,
        resource_version: head.resource_version,
        generation: head.generation,
        deleting: head.deleting,
        labels: head.labels,
        annotations: head.annotations,
        controller: head.controller,
        created: head.created,
        replicas,
        min_ready_seconds: spec.min_ready_seconds.unwrap_or_default(),
        template: spec.template,
        status: status.into(),
        unfinished_pods: message.unfinished_pods,
        read_after_name_collision: message.read_after_name_collision,
    })
}
