//! Checks the patches of a plan. Each patch contains the uid of its object, so that the apiserver refuses it for
//! another object.

use std::sync::LazyLock;

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
    let patch = parse_patch(patch, object)?;
    let metadata = members(&patch, "metadata");
    let number: &[&str] = if matches!(may, Allowed::Number) {
        &["revision"]
    } else {
        &[]
    };
    only(&patch, &[&["metadata"], number].concat(), "")?;
    match may {
        Allowed::Adopt(workload) => check_owner(metadata, workload, Ownership::Taken),
        Allowed::Release(workload) => check_owner(metadata, workload, Ownership::GivenUp),
        Allowed::Label | Allowed::Number => {
            only(metadata, &["uid", "labels"], "metadata.")?;
            if patch.get("revision").is_some_and(|number| !number.is_i64()) {
                return Err("its patch sets revision to what is no number".to_owned());
            }
            check_labels(metadata.get("labels"))
        }
    }
}

/// Parses the patch of an object. It must contain the object's uid.
pub(super) fn parse_patch(patch: &[u8], object: &ObjectReference) -> Result<Map<String, Value>, String> {
    let Value::Object(patch) = parse_written(patch, "its patch")? else {
        return Err("its patch is no object".to_owned());
    };
    if members(&patch, "metadata").get("uid").and_then(Value::as_str) != Some(&object.uid) {
        return Err(format!("its patch does not carry the uid {:?}", object.uid));
    }
    Ok(patch)
}

/// The members of a member; none if it is absent or no object.
pub(super) fn members<'a>(object: &'a Map<String, Value>, member: &str) -> &'a Map<String, Value> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    object.get(member).and_then(Value::as_object).unwrap_or(&NONE)
}

/// What a claim does with the ownership of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The workload becomes the controller.
    Taken,
    /// The workload is no owner any more.
    GivenUp,
}

/// Checks that a claim changes only the workload's own owner reference.
pub(super) fn check_owner(
    metadata: &Map<String, Value>,
    workload: &Workload,
    ownership: Ownership,
) -> Result<(), String> {
    only(metadata, &["uid", "ownerReferences"], "metadata.")?;
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let is_right = |owner: &Value| match ownership {
        Ownership::Taken => templates::is_owner(owner, workload),
        Ownership::GivenUp => *owner == serde_json::json!({"$patch": "delete", "uid": &*workload.uid}),
    };
    match owners.map(Vec::as_slice) {
        Some([owner]) if is_right(owner) => Ok(()),
        _ => Err("its patch changes other owner references than the workload's".to_owned()),
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
pub(super) fn only(object: &Map<String, Value>, members: &[&str], path: &str) -> Result<(), String> {
    match object.keys().find(|key| !members.contains(&key.as_str())) {
        Some(other) => Err(format!("its patch changes {path}{other}")),
        None => Ok(()),
    }
}

/// A null in a merge patch removes the whole member.
pub(super) fn are_objects(body: &Map<String, Value>) -> Result<(), String> {
    match body.iter().find(|(_, value)| !value.is_object()) {
        Some((member, _)) => Err(format!("its patch sets {member} to what is no object")),
        None => Ok(()),
    }
}
