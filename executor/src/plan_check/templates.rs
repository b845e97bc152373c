//! Normalises pod templates so that they can be compared.

use nodewise_projection::Workload;
use nodewise_proto::workload::{HASH_LABEL, TEMPLATE_HASH_LABEL};
use serde_json::{Map, Value, json};

/// The JSON pointer to the required node affinity of a pod spec.
pub(super) const NODE_TERMS: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// The labels that the service adds to those of the template.
pub(super) const SET_LABELS: [&str; 2] = [HASH_LABEL, "pod-template-generation"];

/// Whether an owner reference makes the workload the controller.
pub(super) fn is_owner(owner: &Value, workload: &Workload) -> bool {
    let mut owner = owner.clone();
    if let Some(owner) = owner.as_object_mut() {
        owner.remove("blockOwnerDeletion");
    }
    owner
        == json!({
            "apiVersion": "apps/v1", "kind": workload.key.kind, "name": &*workload.key.name, "uid": &*workload.uid, "controller": true,
        })
}

/// A pod template in the form that is compared: without nulls, with metadata, and with the resources of each container.
/// Upstream writes templates in that form into revisions.
pub(super) fn normal(template: &Value) -> Value {
    let mut template = without_nulls(template);
    for member in ["metadata", "spec"] {
        if !template[member].is_object() {
            template[member] = json!({});
        }
    }
    for list in ["containers", "initContainers"] {
        let containers = template["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            container.entry("resources").or_insert_with(|| json!({}));
        }
    }
    template
}

/// A pod template in the form that is compared, without the label of its hash.
pub(super) fn without_hash(template: &Value) -> Value {
    let mut template = normal(template);
    remove(&mut template, &["metadata", "labels", TEMPLATE_HASH_LABEL]);
    if !template["metadata"].is_object() {
        template["metadata"] = json!({});
    }
    template
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// A normalised pod spec without the parts that the service sets: required node affinity and tolerations.
pub(super) fn for_any_node(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(members) = spec.as_object_mut() {
        members.remove("tolerations");
    }
    let path = [
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ];
    remove(&mut spec, &path);
    spec
}

/// Removes a member, and each parent object that becomes empty.
fn remove(object: &mut Value, path: &[&str]) {
    let (Some(members), Some((member, inner))) = (object.as_object_mut(), path.split_first()) else {
        return;
    };
    let Some(value) = members.get_mut(*member) else {
        return;
    };
    remove(value, inner);
    if inner.is_empty() || value.as_object().is_some_and(Map::is_empty) {
        members.remove(*member);
    }
}

/// Whether these tolerations are those of the template and automatic ones. A toleration of the template may lose its
/// seconds.
pub(super) fn tolerates_as(tolerations: &Value, template: &Value) -> bool {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(members) = toleration.as_object_mut() {
            members.remove("tolerationSeconds");
            // An absent string equals an empty one.
            members.retain(|_, value| *value != "");
        }
        toleration
    };
    let list = |tolerations: &Value| -> Vec<Value> {
        tolerations
            .as_array()
            .into_iter()
            .flatten()
            .map(without_seconds)
            .collect()
    };
    let (have, own) = (list(tolerations), list(template));
    let is_automatic = |toleration: &Value| {
        toleration["key"]
            .as_str()
            .is_some_and(|key| key.starts_with("node.kubernetes.io/"))
    };
    own.iter().all(|toleration| have.contains(toleration))
        && have
            .iter()
            .all(|toleration| own.contains(toleration) || is_automatic(toleration))
}

/// The labels without those that the service sets; absent labels are empty.
pub(super) fn labels(labels: &Value) -> Map<String, Value> {
    let mut labels = labels.as_object().cloned().unwrap_or_default();
    labels.retain(|key, _| !SET_LABELS.contains(&key.as_str()));
    labels
}
