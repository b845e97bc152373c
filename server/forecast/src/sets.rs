//! The ReplicaSets of a Deployment, as the simulated cluster stores them.

use jiff::Timestamp;
use nodewise_planner::{
    deployment::{Deployment, Set},
    json::Json,
    plan::{ObjectClaim, ReplicaSetStatus},
    replicaset::ReplicaSet,
    snapshot::{ControllerRef, Labels, Selector},
};
use serde_json::Value;

use crate::objects::{strings, text};

/// The label that tells the ReplicaSets of a Deployment apart.
const HASH_LABEL: &str = "pod-template-hash";

/// A ReplicaSet as the planner of ReplicaSets sees it. Its selector is that of the Deployment, with the hash label.
pub(crate) fn workload(deployment: &Deployment, set: &Set) -> ReplicaSet {
    let template = set.template.to_value();
    let template_labels = Labels::new(strings(&template["metadata"]["labels"]));
    let mut selector = deployment.selector.clone().unwrap_or(Selector {
        match_labels: None,
        match_expressions: None,
    });
    if let Some(hash) = template_labels.get(HASH_LABEL) {
        let labels = selector.match_labels.get_or_insert_default();
        labels.retain(|(key, _)| key != HASH_LABEL);
        labels.push((HASH_LABEL.to_owned(), hash.to_owned()));
        labels.sort();
    }
    ReplicaSet {
        name: set.name.clone(),
        namespace: deployment.namespace.clone(),
        uid: set.uid.clone(),
        resource_version: set.resource_version.clone(),
        generation: set.generation,
        deleting: set.deleting,
        selector: Some(selector),
        replicas: set.replicas,
        min_ready_seconds: set.min_ready_seconds,
        template: set.template.clone(),
        template_labels,
        status: set.status.clone(),
        related_pods: Vec::new(),
    }
}

/// A Deployment as the controller of its ReplicaSets.
pub(crate) fn owner(deployment: &Deployment) -> ControllerRef {
    ControllerRef {
        kind: "Deployment".to_owned(),
        name: deployment.name.clone(),
        uid: deployment.uid.clone(),
    }
}

/// A ReplicaSet that the Deployment creates.
pub(crate) fn created(deployment: &Deployment, manifest: &Value, number: u64, now: Timestamp) -> Set {
    let (metadata, spec) = (&manifest["metadata"], &manifest["spec"]);
    let mut annotations = strings(&metadata["annotations"]);
    annotations.sort();
    Set {
        name: text(&metadata["name"]),
        uid: format!("00000000-0000-4000-9000-{number:012x}"),
        resource_version: "1".to_owned(),
        generation: 1,
        deleting: false,
        labels: Labels::new(strings(&metadata["labels"])),
        annotations,
        controller: Some(owner(deployment)),
        created: Some(now),
        replicas: int(&spec["replicas"]).unwrap_or(1),
        min_ready_seconds: int(&spec["minReadySeconds"]).unwrap_or_default(),
        template: Json::from(&spec["template"]),
        status: ReplicaSetStatus::default(),
        unfinished_pods: 0,
        read_after_name_collision: false,
    }
}

/// Patches a ReplicaSet.
pub(crate) fn patch(set: &mut Set, patch: &Value, claim: Option<ObjectClaim>, owner: ControllerRef) {
    match claim {
        Some(ObjectClaim::Adopt) => set.controller = Some(owner),
        Some(ObjectClaim::Release) => set.controller = None,
        None => {}
    }
    annotate(&mut set.annotations, patch);
    let spec = &patch["spec"];
    let (replicas, min_ready) = (int(&spec["replicas"]), int(&spec["minReadySeconds"]));
    if replicas.is_some() || min_ready.is_some() {
        set.generation = set.generation.saturating_add(1);
        set.replicas = replicas.unwrap_or(set.replicas);
        set.min_ready_seconds = min_ready.unwrap_or(set.min_ready_seconds);
    }
}

/// Applies the annotations of a merge patch.
pub(crate) fn annotate(annotations: &mut Vec<(String, String)>, patch: &Value) {
    for (key, value) in patch["metadata"]["annotations"].as_object().into_iter().flatten() {
        annotations.retain(|(found, _)| found != key);
        if let Some(value) = value.as_str() {
            annotations.push((key.clone(), value.to_owned()));
        }
    }
    annotations.sort();
}

/// Applies the rollback that a Deployment asked for with an annotation.
pub(crate) fn roll_back(deployment: &mut Deployment, patch: &Value) {
    let Some(change) = patch["spec"].get("template") else {
        return;
    };
    let mut template = deployment.template.to_value();
    merge(&mut template, change);
    deployment.template = template.into();
    deployment.generation = deployment.generation.saturating_add(1);
}

/// JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn int(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|number| i32::try_from(number).ok())
}
