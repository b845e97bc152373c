//! The cluster of the properties is a simulated one: here actions become calls of its apiserver, and its objects become the
//! planner's types.

use jiff::Timestamp;
use nodewise_planner::{
    daemonset::{DaemonSet, UpdateStrategy},
    plan::{ActionKind, DaemonSetStatus, PodManifest},
    report::OutcomeResult,
    snapshot::{ControllerRef, IntOrString, Node, Pod, PodPhase, Revision, Taint, TaintEffect, Target},
};
use nodewise_simulator::{Cluster, Config, ObjectKey, Patch, Reason, Refusal, Resource, pod};
use serde_json::{Value, json};

use crate::support::{self, at, labels_of};

/// The key of an object in the namespace of the DaemonSet.
pub(super) fn key(resource: Resource, name: &str) -> ObjectKey {
    ObjectKey::new(resource, "default", name)
}

/// A simulated cluster with the objects of a small cluster, and the key of its DaemonSet.
pub(super) fn cluster(of: &support::Cluster) -> (Cluster, ObjectKey) {
    assert_eq!(of.ds.generation, 1, "the DaemonSet was not changed yet");
    let mut cluster = Cluster::new(Config::default(), at(0));
    for node in &of.nodes {
        add_node(&mut cluster, &node.name);
    }
    let ds = cluster.create_daemon_set(manifest(&of.ds)).expect("it is valid");
    let mut object = cluster.read(&ds).expect("it exists").clone();
    object["status"]["observedGeneration"] = json!(of.ds.status.observed_generation);
    cluster.replace_status(&ds, &object).expect("it is as read");
    let owner = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": of.ds.name,
        "uid": object["metadata"]["uid"],
        "controller": true,
    });
    let metadata = |name: &str, labels: &nodewise_planner::snapshot::Labels| {
        let labels: Value = labels
            .iter()
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        json!({"name": name, "labels": labels, "ownerReferences": [owner]})
    };
    for revision in &of.revisions {
        let object = json!({
            "metadata": metadata(&revision.name, &revision.labels),
            "data": revision.data.to_value(),
            "revision": revision.number,
        });
        let created = cluster.create(Resource::Revisions, &of.ds.namespace, object);
        created.expect("the name is free");
    }
    for pod in &of.pods {
        let object = json!({
            "metadata": metadata(&pod.name, &pod.labels),
            "spec": {"nodeName": pod.target.node()},
        });
        let created = cluster.create(Resource::Pods, &of.ds.namespace, object);
        let key = created.expect("the name is free");
        cluster.set_ready(&key, pod.ready).expect("it exists");
    }
    cluster.set_time(of.now);
    (cluster, ds)
}

/// Adds a node as [`support::node`] makes it.
pub(super) fn add_node(cluster: &mut Cluster, name: &str) {
    cluster.add_node(name, &[("kubernetes.io/hostname", name)]);
}

fn manifest(ds: &DaemonSet) -> Value {
    let UpdateStrategy::RollingUpdate(Some(rolling)) = &ds.strategy else {
        panic!("these clusters roll");
    };
    let limit = |limit: &Option<IntOrString>| match limit {
        None => Value::Null,
        Some(IntOrString::Int(number)) => json!(number),
        Some(IntOrString::String(text)) => json!(text),
    };
    json!({
        "metadata": {"name": ds.name, "namespace": ds.namespace},
        "spec": {
            "template": ds.template.to_value(),
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {
                    "maxUnavailable": limit(&rolling.max_unavailable),
                    "maxSurge": limit(&rolling.max_surge),
                },
            },
        },
    })
}

/// Writes an action as an executor does.
pub(super) fn write(
    cluster: &mut Cluster,
    ds: &ObjectKey,
    manifest: Option<&PodManifest>,
    action: &ActionKind,
) -> OutcomeResult {
    let patch = |body: &[u8]| serde_json::from_slice::<Value>(body).expect("a patch is JSON");
    let of = |resource, object: &nodewise_planner::plan::ObjectRef| key(resource, &object.name);
    match action {
        ActionKind::CreateRevision { manifest, .. } => {
            let object = serde_json::from_slice(manifest).expect("a manifest is JSON");
            let created = cluster.create(Resource::Revisions, &ds.namespace, object);
            created.expect("revisions do not lag");
        }
        ActionKind::UpdateRevision {
            revision,
            patch: body,
            ..
        } => {
            let patched = cluster.patch(&of(Resource::Revisions, revision), &Patch::Merge(patch(body)));
            patched.expect("revisions do not lag");
        }
        ActionKind::DeleteRevision { revision, .. } => {
            let deleted = cluster.delete(&of(Resource::Revisions, revision), Some(&revision.uid));
            deleted.expect("revisions do not lag");
        }
        ActionKind::RelabelPod { pod, patch: body } => {
            let patched = cluster.patch(&of(Resource::Pods, pod), &Patch::Merge(patch(body)));
            return unless_gone(&patched);
        }
        ActionKind::CreatePod { pod_name, node_name } => {
            let manifest = manifest.expect("a plan with creates has a manifest");
            return create(cluster, &pod_manifest(manifest, pod_name, node_name));
        }
        ActionKind::DeletePod {
            pod,
            uid_precondition,
            ..
        } => {
            let uid = uid_precondition.then_some(pod.uid.as_str());
            return unless_gone(&cluster.delete(&of(Resource::Pods, pod), uid));
        }
        ActionKind::UpdateStatus {
            status, collision, ..
        } => {
            let mut object = cluster.read(ds).expect("it exists").clone();
            let counts = *status;
            match collision {
                Some(collision) => object["status"]["collisionCount"] = json!(collision.count),
                None => write_status(&mut object["status"], counts),
            }
            cluster.replace_status(ds, &object).expect("it is as read");
        }
        ActionKind::EmitEvent { .. } => {}
        other => panic!("no property needs {other:?}"),
    }
    OutcomeResult::Succeeded
}

fn unless_gone(result: &Result<(), Refusal>) -> OutcomeResult {
    match result {
        Ok(()) => OutcomeResult::Succeeded,
        // Another uid: the pod that was meant is gone.
        Err(refusal) if matches!(refusal.reason, Reason::NotFound | Reason::Conflict) => {
            OutcomeResult::NotFound
        }
        Err(refusal) => panic!("{refusal}"),
    }
}

/// The manifest of a pod of a plan; without a name if the apiserver chooses it.
pub(super) fn pod_manifest(manifest: &PodManifest, name: &str, node: &str) -> Value {
    let mut object: Value = serde_json::from_slice(&manifest.json).expect("a manifest is JSON");
    for pointer in &manifest.node_name_pointers {
        *object.pointer_mut(pointer).expect("the pointer leads somewhere") = json!(node);
    }
    if !name.is_empty() {
        object["metadata"]["name"] = json!(name);
    }
    object
}

/// Creates a pod. If its name is taken, says whether the pod of that name is what was to be created.
pub(super) fn create(cluster: &mut Cluster, object: &Value) -> OutcomeResult {
    match cluster.create(Resource::Pods, "default", object.clone()) {
        Ok(_) => OutcomeResult::Succeeded,
        Err(refusal) if refusal.reason == Reason::AlreadyExists => {
            let name = object["metadata"]["name"]
                .as_str()
                .expect("a generated name is free");
            let present = cluster.read(&key(Resource::Pods, name)).expect("it exists");
            let same =
                pod::owner_uid(present) == pod::owner_uid(object) && pod::node(present) == pod::node(object);
            if same {
                OutcomeResult::AlreadyExists
            } else {
                OutcomeResult::NameTaken
            }
        }
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Writes the counts of a status; the collision count stays.
fn write_status(status: &mut Value, counts: DaemonSetStatus) {
    let fields = [
        ("currentNumberScheduled", counts.current_number_scheduled),
        ("numberMisscheduled", counts.number_misscheduled),
        ("desiredNumberScheduled", counts.desired_number_scheduled),
        ("numberReady", counts.number_ready),
        ("updatedNumberScheduled", counts.updated_number_scheduled),
        ("numberAvailable", counts.number_available),
        ("numberUnavailable", counts.number_unavailable),
    ];
    for (field, count) in fields {
        status[field] = json!(count);
    }
    status["observedGeneration"] = json!(counts.observed_generation);
}

/// Reads what changes of a DaemonSet in the properties: its identity, generation, template and status.
pub(super) fn read_daemon_set(ds: &mut DaemonSet, object: &Value) {
    let status = &object["status"];
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let count = |field: &str| i32::try_from(number(&status[field])).expect("a count");
    ds.uid = text(&object["metadata"]["uid"]);
    ds.resource_version = text(&object["metadata"]["resourceVersion"]);
    ds.generation = number(&object["metadata"]["generation"]);
    ds.template = (&object["spec"]["template"]).into();
    ds.collision_count = status["collisionCount"]
        .is_number()
        .then(|| count("collisionCount"));
    ds.status = DaemonSetStatus {
        current_number_scheduled: count("currentNumberScheduled"),
        number_misscheduled: count("numberMisscheduled"),
        desired_number_scheduled: count("desiredNumberScheduled"),
        number_ready: count("numberReady"),
        updated_number_scheduled: count("updatedNumberScheduled"),
        number_available: count("numberAvailable"),
        number_unavailable: count("numberUnavailable"),
        observed_generation: number(&status["observedGeneration"]),
    };
}

/// Reads a node.
pub(super) fn read_node(object: &Value) -> Node {
    let taints = object["spec"]["taints"].as_array().into_iter().flatten();
    let taints = taints.map(|taint| Taint {
        key: text(&taint["key"]),
        value: text(&taint["value"]),
        effect: match taint["effect"].as_str() {
            Some("NoSchedule") => TaintEffect::NoSchedule,
            Some("NoExecute") => TaintEffect::NoExecute,
            _ => TaintEffect::Other,
        },
    });
    Node {
        name: text(&object["metadata"]["name"]),
        labels: labels_of(object),
        taints: taints.collect(),
        unschedulable: false,
        ready: Some(pod::is_ready(object)),
        ready_since: None,
        in_maintenance: false,
    }
}

/// Reads a revision.
pub(super) fn read_revision(object: &Value) -> Revision {
    let metadata = &object["metadata"];
    Revision {
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        labels: labels_of(object),
        controller: controller(object),
        created: time(&metadata["creationTimestamp"]),
        deleting: false,
        number: object["revision"].as_i64().expect("a revision has a number"),
        data: (&object["data"]).into(),
        read_after_name_collision: false,
    }
}

/// Reads a pod.
pub(super) fn read_pod(object: &Value) -> Pod {
    let metadata = &object["metadata"];
    let ready = object["status"]["conditions"][0]["lastTransitionTime"].clone();
    Pod {
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        labels: labels_of(object),
        controller: controller(object).map(Into::into),
        target: match (object["spec"]["nodeName"].as_str(), pod::node(object)) {
            (Some(node), _) => Target::Bound(node.to_owned()),
            (None, Some(node)) => Target::Meant(node.to_owned()),
            (None, None) => Target::Nowhere,
        },
        phase: match object["status"]["phase"].as_str() {
            Some("Pending") => PodPhase::Pending,
            Some("Running") => PodPhase::Running,
            Some("Failed") => PodPhase::Failed,
            other => panic!("no property needs the phase {other:?}"),
        },
        ready: pod::is_ready(object),
        ready_since: time(&ready),
        created: time(&metadata["creationTimestamp"]),
        deleting: pod::is_deleting(object),
        has_finalizers: false,
        deletion_cost: 0,
        restarts: 0,
        sidecar_restarts: 0,
    }
}

fn controller(object: &Value) -> Option<ControllerRef> {
    let mut owners = object["metadata"]["ownerReferences"].as_array()?.iter();
    let owner = owners.find(|owner| owner["controller"] == true)?;
    Some(ControllerRef {
        kind: text(&owner["kind"]),
        name: text(&owner["name"]),
        uid: text(&owner["uid"]),
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str().map(|text| text.parse().expect("a time"))
}
