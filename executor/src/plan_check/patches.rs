//! Checks the patches of a plan. Each patch contains the uid of its object, so that the apiserver refuses it for
//! another object.

use nodewise_projection::Workload;
use nodewise_proto::v1::{ObjectReference, action::Kind};
use nodewise_proto::workload::HASH_LABEL;
use serde_json::{Map, Value};

use super::{json::parse_written, templates, v1};

/// What a patch may change besides containing the uid.
enum Allowed<'a> {
    /// Add the workload to the owners.
    Adopt(&'a Workload),
    /// Remove the workload from the owners.
    Release(&'a Workload),
    /// Set the hash label.
    Label,
    /// Set the number and the hash label of a revision.
    Number,
}

/// Checks the patch of an action, if the action has one.
pub(super) fn check(
    action: &v1::Action,
    object: &ObjectReference,
    workload: &Workload,
) -> Result<(), String> {
    let (patch, may) = match &action.kind {
        Some(Kind::AdoptPod(a)) => (&a.patch, Allowed::Adopt(workload)),
        Some(Kind::AdoptRevision(a)) => (&a.patch, Allowed::Adopt(workload)),
        Some(Kind::ReleasePod(a)) => (&a.patch, Allowed::Release(workload)),
        Some(Kind::ReleaseRevision(a)) => (&a.patch, Allowed::Release(workload)),
        Some(Kind::RelabelPod(a)) => (&a.patch, Allowed::Label),
        Some(Kind::UpdateRevision(a)) => (&a.patch, Allowed::Number),
        _ => return Ok(()),
    };
    let patch = parse_written(patch, "its patch")?;
    let patch = patch.as_object().ok_or("its patch is no object")?;
    let metadata = patch.get("metadata").and_then(Value::as_object);
    let empty = Map::new();
    let metadata = metadata.unwrap_or(&empty);
    if metadata.get("uid").and_then(Value::as_str) != Some(&object.uid) {
        return Err(format!("its patch does not carry the uid {:?}", object.uid));
    }
    let number: &[&str] = if matches!(may, Allowed::Number) {
        &["revision"]
    } else {
        &[]
    };
    only(patch, &[&["metadata"], number].concat(), "")?;
    match may {
        Allowed::Adopt(workload) | Allowed::Release(workload) => {
            only(metadata, &["uid", "ownerReferences"], "metadata.")?;
            let owners = metadata.get("ownerReferences").and_then(Value::as_array);
            let is_right = |owner: &Value| match may {
                Allowed::Adopt(_) => templates::is_owner(owner, workload),
                _ => *owner == serde_json::json!({"$patch": "delete", "uid": &*workload.uid}),
            };
            match owners.map(Vec::as_slice) {
                Some([owner]) if is_right(owner) => Ok(()),
                _ => Err("its patch changes other owner references than the workload's".to_owned()),
            }
        }
        Allowed::Label | Allowed::Number => {
            only(metadata, &["uid", "labels"], "metadata.")?;
            if patch.get("revision").is_some_and(|number| !number.is_i64()) {
                return Err("its patch sets revision to what is no number".to_owned());
            }
            check_labels(metadata.get("labels"))
        }
    }
}

/// Checks that only the hash label is set.
fn check_labels(labels: Option<&Value>) -> Result<(), String> {
    let Some(labels) = labels else {
        return Ok(());
    };
    let labels = labels
        .as_object()
        .ok_or("its patch sets metadata.labels to what is no object")?;
    only(labels, &[HASH_LABEL], "metadata.labels.")?;
    if labels.values().all(Value::is_string) {
        return Ok(());
    }
    Err(format!("its patch sets label {HASH_LABEL} to what is no string"))
}

/// Checks that the object has no other members.
fn only(object: &Map<String, Value>, members: &[&str], path: &str) -> Result<(), String> {
    match object.keys().find(|key| !members.contains(&key.as_str())) {
        Some(other) => Err(format!("its patch changes {path}{other}")),
        None => Ok(()),
    }
}
