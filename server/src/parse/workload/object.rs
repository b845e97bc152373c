//! What the objects of all kinds have in common: metadata, and the selector of their spec.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr};
use nodewise_planner::snapshot::{ControllerRef, IntOrString, Labels, Selector};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};

use super::super::{
    json::{self, Meta},
    problems::{Path, Problems},
    selector,
};
use crate::limits::Limits;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "S: DeserializeOwned, T: DeserializeOwned")]
struct Object<S, T> {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    metadata: Meta,
    spec: Option<S>,
    status: Option<T>,
}

/// A served object.
pub(super) struct Read<S, T> {
    pub(super) head: Head,
    pub(super) spec: S,
    /// The default if the object has none.
    pub(super) status: T,
}

/// The metadata of an object.
pub(super) struct Head {
    /// Name and uid; `None` if one is missing, which is noted.
    pub(super) identity: Option<(String, String)>,
    pub(super) namespace: String,
    pub(super) resource_version: String,
    pub(super) generation: i64,
    pub(super) deleting: bool,
    /// Sorted by key.
    pub(super) annotations: Vec<(String, String)>,
    pub(super) labels: Labels,
    pub(super) controller: Option<ControllerRef>,
    pub(super) created: Option<Timestamp>,
}

/// Reads an object of a kind of `apps/v1` that has a spec; `at` is its JSON.
pub(super) fn read<S: DeserializeOwned, T: DeserializeOwned + Default>(
    bytes: &[u8],
    kind: &str,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Read<S, T>> {
    let object: Object<S, T> = object(bytes, kind, at, problems)?;
    let head = head(object.metadata, at, problems);
    json::require_name("metadata.namespace", &head.namespace, at, problems);
    let Some(spec) = object.spec else {
        problems.add(at, "spec: is required");
        return None;
    };
    Some(Read {
        head,
        spec,
        status: object.status.unwrap_or_default(),
    })
}

/// An object whose metadata may be incomplete.
pub(super) struct Incomplete<S> {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) deleting: bool,
    pub(super) spec: S,
}

/// As [`read`], without the status, for an object that need not be in a cluster.
pub(super) fn read_incomplete<S: DeserializeOwned>(
    bytes: &[u8],
    kind: &str,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Incomplete<S>> {
    let object: Object<S, IgnoredAny> = object(bytes, kind, at, problems)?;
    let deleting = object.metadata.is_deleting();
    let Some(spec) = object.spec else {
        problems.add(at, "spec: is required");
        return None;
    };
    Some(Incomplete {
        namespace: object.metadata.namespace.unwrap_or_default(),
        name: object.metadata.name.unwrap_or_default(),
        deleting,
        spec,
    })
}

/// Reads the JSON of an object of a kind of `apps/v1`.
fn object<S: DeserializeOwned, T: DeserializeOwned>(
    bytes: &[u8],
    kind: &str,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Object<S, T>> {
    let (found, most) = (bytes.len(), Limits::OBJECT_BYTES);
    if found > most {
        problems.add(at, format!("has {found} bytes; at most {most} are taken"));
        return None;
    }
    let object: Object<S, T> = json::read(bytes, at, problems)?;
    let (version, found) = (object.api_version.as_deref(), object.kind.as_deref());
    json::type_meta(version, found, ("apps/v1", kind), at, problems);
    Some(object)
}

fn head(mut meta: Meta, at: &Path<'_>, problems: &mut Problems) -> Head {
    let labels = meta.labels.take().unwrap_or_default();
    Head {
        identity: json::identity(&meta, at, problems),
        controller: meta.controller(),
        created: meta.created(),
        deleting: meta.is_deleting(),
        labels: json::labels_of(&labels),
        namespace: meta.namespace.unwrap_or_default(),
        resource_version: meta.resource_version.unwrap_or_default(),
        generation: meta.generation.unwrap_or_default(),
        annotations: meta.annotations.unwrap_or_default().into_iter().collect(),
    }
}

/// Reads spec.selector. An invalid one is an error, but for a workload that is being deleted: its selector is not used (D-71.5).
pub(super) fn selector(
    selector: Option<LabelSelector>,
    deleting: bool,
    at: &Path<'_>,
    problems: &mut Problems,
) -> Option<Selector> {
    match selector.map(selector::parse).transpose() {
        Ok(selector) => selector,
        Err(_) if deleting => None,
        Err(error) => {
            problems.add(at, format!("spec.selector.{error}"));
            None
        }
    }
}

/// Adds an error if spec.template is not an object.
pub(super) fn require_template(is_object: bool, at: &Path<'_>, problems: &mut Problems) {
    if !is_object {
        problems.add(at, "spec.template: is required and must be an object");
    }
}

/// A number or a string.
pub(super) fn int_or_string(value: intstr::IntOrString) -> IntOrString {
    match value {
        intstr::IntOrString::Int(number) => IntOrString::Int(number),
        intstr::IntOrString::String(text) => IntOrString::String(text),
    }
}
