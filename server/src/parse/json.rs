//! Objects that travel as the JSON which the apiserver served.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use nodewise_planner::snapshot::ControllerRef;
use serde::de::DeserializeOwned;

use super::problems::{Path, Problems};
use crate::limits::Limits;

/// Reads an object; what is wrong with it begins with the path inside the object.
pub(super) fn read<T: DeserializeOwned>(json: &[u8], at: &Path<'_>, problems: &mut Problems) -> Option<T> {
    if json.is_empty() {
        problems.add(at, "is required");
        return None;
    }
    if json.len() > Limits::OBJECT_BYTES {
        let most = Limits::OBJECT_BYTES;
        problems.add(at, format!("has {} bytes; at most {most} are taken", json.len()));
        return None;
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| match error.path().to_string() {
            // The object itself, and a text that is no JSON.
            path if path == "." || path == "?" => error.inner().to_string(),
            path => format!("{path}: {}", error.inner()),
        })
        .and_then(|object| reader.end().map(|()| object).map_err(|error| error.to_string()));
    match read {
        Ok(object) => Some(object),
        Err(error) => {
            problems.add(at, error);
            None
        }
    }
}

/// Checks the kind of an object. Items of a list carry none, which is fine.
pub(super) fn type_meta(
    api_version: Option<&str>,
    kind: Option<&str>,
    (right_version, right_kind): (&str, &str),
    at: &Path<'_>,
    problems: &mut Problems,
) {
    for (field, value, right) in [
        ("apiVersion", api_version, right_version),
        ("kind", kind, right_kind),
    ] {
        if value.is_some_and(|value| !value.is_empty() && value != right) {
            problems.add(at, format!("{field}: must be {right}"));
        }
    }
}

/// An object's name and uid.
pub(super) fn identity(
    meta: &ObjectMeta,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<(String, String)> {
    let name = meta.name.clone().unwrap_or_default();
    let uid = meta.uid.clone().unwrap_or_default();
    for (field, value) in [("metadata.name", &name), ("metadata.uid", &uid)] {
        if value.is_empty() {
            problems.add(at, format!("{field}: is required"));
        }
    }
    (!name.is_empty() && !uid.is_empty()).then_some((name, uid))
}

/// The owner reference with `controller: true`.
pub(super) fn controller(meta: &ObjectMeta) -> Option<ControllerRef> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    owners
        .iter()
        .find(|owner| owner.controller == Some(true))
        .map(|owner| ControllerRef {
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        })
}
