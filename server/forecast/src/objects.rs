//! Converts between the planner's types and the JSON of the simulated cluster.

use jiff::Timestamp;
use nodewise_planner::{
    plan::PodManifest,
    snapshot::{ControllerRef, Labels, Pod, PodPhase, Revision, Target},
};
use nodewise_simulator::pod;
use serde_json::{Map, Value, json};

/// A pod as the simulated cluster stores it. A pod that is not bound is stored as bound to the node that it is meant for.
pub(crate) fn pod_json(pod: &Pod) -> Value {
    let phase = match pod.phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    };
    let mut object = json!({
        "metadata": metadata(&pod.name, &pod.uid, &pod.labels, pod.controller.as_deref(), pod.created),
        "spec": {"nodeName": pod.target.node()},
        "status": {"phase": phase, "conditions": [{
            "type": "Ready",
            "status": if pod.ready { "True" } else { "False" },
            "lastTransitionTime": pod.ready_since.map(|time| time.to_string()),
        }]},
    });
    if pod.deleting {
        object["metadata"]["deletionTimestamp"] = json!(Timestamp::UNIX_EPOCH.to_string());
    }
    object
}

fn metadata(
    name: &str,
    uid: &str,
    labels: &Labels,
    controller: Option<&ControllerRef>,
    created: Option<Timestamp>,
) -> Value {
    let labels: Map<String, Value> = labels
        .iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    let owner = controller.map(|owner| {
        json!({
            "apiVersion": "apps/v1",
            "kind": owner.kind,
            "name": owner.name,
            "uid": owner.uid,
            "controller": true,
        })
    });
    json!({
        "name": name,
        "uid": uid,
        "labels": labels,
        "ownerReferences": owner.into_iter().collect::<Vec<_>>(),
        "creationTimestamp": created.map(|time| time.to_string()),
    })
}

/// Reads a pod. What only its first state says is taken from `before`.
pub(crate) fn read_pod(object: &Value, before: Option<&Pod>) -> Pod {
    let metadata = &object["metadata"];
    let uid = text(&metadata["uid"]);
    let before = before.filter(|pod| pod.uid == uid);
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions
        .filter(|condition| condition["type"] == "Ready")
        .find_map(|condition| time(&condition["lastTransitionTime"]));
    Pod {
        name: text(&metadata["name"]),
        uid,
        labels: labels(metadata),
        controller: controller(metadata).map(Into::into),
        target: match (object["spec"]["nodeName"].as_str(), pod::node(object)) {
            (Some(node), _) => Target::Bound(node.to_owned()),
            (None, Some(node)) => Target::Meant(node.to_owned()),
            (None, None) => Target::Nowhere,
        },
        phase: match object["status"]["phase"].as_str() {
            Some("Pending") => PodPhase::Pending,
            Some("Running") => PodPhase::Running,
            Some("Succeeded") => PodPhase::Succeeded,
            Some("Failed") => PodPhase::Failed,
            _ => PodPhase::Unknown,
        },
        ready: pod::is_ready(object),
        ready_since: ready,
        created: time(&metadata["creationTimestamp"]),
        deleting: pod::is_deleting(object),
        has_finalizers: before.is_some_and(|pod| pod.has_finalizers),
        deletion_cost: before.map_or(0, |pod| pod.deletion_cost),
        restarts: before.map_or(0, |pod| pod.restarts),
        sidecar_restarts: before.map_or(0, |pod| pod.sidecar_restarts),
    }
}

/// A revision as the simulated cluster stores it.
pub(crate) fn revision_json(revision: &Revision) -> Value {
    let controller = revision.controller.as_ref();
    json!({
        "metadata": metadata(&revision.name, &revision.uid, &revision.labels, controller, revision.created),
        "data": revision.data.to_value(),
        "revision": revision.number,
    })
}

/// Reads a revision.
pub(crate) fn read_revision(object: &Value) -> Revision {
    let metadata = &object["metadata"];
    Revision {
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        labels: labels(metadata),
        controller: controller(metadata),
        created: time(&metadata["creationTimestamp"]),
        deleting: false,
        number: object["revision"].as_i64().unwrap_or_default(),
        data: (&object["data"]).into(),
        read_after_name_collision: false,
    }
}

/// The manifest of a pod of a plan, with what has an effect on the play. The apiserver chooses the name if there is none, and the
/// scheduler the node.
pub(crate) fn pod_manifest(manifest: &PodManifest, name: &str, node: &str) -> Value {
    let object: Value = serde_json::from_slice(&manifest.json).unwrap_or_default();
    let mut metadata = Map::new();
    for field in ["generateName", "labels", "ownerReferences"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    if !name.is_empty() {
        metadata.insert("name".to_owned(), json!(name));
    }
    let spec = if node.is_empty() {
        json!({})
    } else {
        let by_name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        let required = json!({"nodeSelectorTerms": [{"matchFields": [by_name]}]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    };
    json!({"metadata": metadata, "spec": spec})
}

pub(crate) fn labels(metadata: &Value) -> Labels {
    strings(&metadata["labels"]).into_iter().collect()
}

pub(crate) fn strings(object: &Value) -> Vec<(String, String)> {
    let members = object.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.clone(), text(value))).collect()
}

pub(crate) fn controller(metadata: &Value) -> Option<ControllerRef> {
    let mut owners = metadata["ownerReferences"].as_array()?.iter();
    let owner = owners.find(|owner| owner["controller"] == true)?;
    Some(ControllerRef {
        kind: text(&owner["kind"]),
        name: text(&owner["name"]),
        uid: text(&owner["uid"]),
    })
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(|text| text.parse().ok())
}
