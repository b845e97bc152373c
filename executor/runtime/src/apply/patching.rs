//! Actions that patch an object, and what each refusal of a patch means.

use crate::{
    Resource,
    actuator::{ActuatorError, ObjectKey, Patch, Refusal},
};
use bytes::Bytes;
use nodewise_proto::v1::{self, Claim, ObjectReference, PatchType, action::Kind};
use nodewise_proto::workload::HASH_LABEL;
use serde_json::Value;

/// One patch.
pub(super) struct Patching<'a> {
    pub(super) resource: Resource,
    pub(super) object: Option<&'a ObjectReference>,
    pub(super) part: Part,
    pub(super) patch: Patch,
    /// Refusals that mean that the object is not the planned one any more. It is not the workload's then, and this is
    /// no error (D-23).
    pub(super) gone: &'static [Refusal],
    /// Whether the caches have to show the write before the next plan (D-109).
    pub(super) is_recorded: bool,
}

/// The part of an object that a patch changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The object without its status.
    Object,
    /// The status subresource.
    Status,
}

const NEVER: &[Refusal] = &[];
const ADOPT: &[Refusal] = &[Refusal::NotFound];
/// The apiserver answers a wrong uid with 422.
const RELEASE: &[Refusal] = &[Refusal::NotFound, Refusal::Invalid];

impl<'a> Patching<'a> {
    /// The patch of an action on a pod or a revision, if the action is such a patch.
    pub(super) fn of(kind: &'a Kind) -> Option<Self> {
        use Patch::{Merge, Strategic};
        let (resource, object, patch, gone) = match kind {
            Kind::UpdateRevision(a) => (Resource::REVISIONS, &a.revision, Merge(a.patch.clone()), NEVER),
            Kind::AdoptRevision(a) => (
                Resource::REVISIONS,
                &a.revision,
                Strategic(a.patch.clone()),
                ADOPT,
            ),
            Kind::ReleaseRevision(a) => (
                Resource::REVISIONS,
                &a.revision,
                Strategic(a.patch.clone()),
                RELEASE,
            ),
            Kind::AdoptPod(a) => (Resource::PODS, &a.pod, Strategic(a.patch.clone()), ADOPT),
            Kind::ReleasePod(a) => (Resource::PODS, &a.pod, Strategic(a.patch.clone()), RELEASE),
            Kind::RelabelPod(a) => (Resource::PODS, &a.pod, Merge(a.patch.clone()), NEVER),
            _ => return None,
        };
        Some(Self {
            resource,
            object: object.as_ref(),
            part: Part::Object,
            patch,
            gone,
            is_recorded: matches!(kind, Kind::AdoptPod(_)),
        })
    }

    /// The patch of an action on any object. `failure` is the first error of the plan so far.
    pub(super) fn of_object(
        resource: Resource,
        patch: &'a v1::PatchObject,
        failure: Option<&str>,
    ) -> Result<Self, ActuatorError> {
        let body = with_failure(&patch.patch, &patch.failure_pointer, failure)?;
        let unknown = |what| {
            Err(ActuatorError::unclear(format!(
                "this executor does not know {what}"
            )))
        };
        Ok(Self {
            resource,
            object: patch.object.as_ref(),
            part: match patch.subresource.as_str() {
                "" => Part::Object,
                "status" => Part::Status,
                other => return unknown(format!("the subresource {other:?}")),
            },
            patch: match patch.patch_type() {
                PatchType::Merge => Patch::Merge(body),
                PatchType::StrategicMerge => Patch::Strategic(body),
                PatchType::Unspecified => return unknown(format!("the patch_type {}", patch.patch_type)),
            },
            gone: match patch.claim() {
                Claim::Unspecified => NEVER,
                Claim::Adopt => ADOPT,
                Claim::Release => RELEASE,
            },
            is_recorded: true,
        })
    }
}

/// The patch with `failure` appended to the string at `pointer`. An empty pointer leaves the patch as it is.
fn with_failure(patch: &Bytes, pointer: &str, failure: Option<&str>) -> Result<Bytes, ActuatorError> {
    if pointer.is_empty() {
        return Ok(patch.clone());
    }
    let wrong = |what: String| ActuatorError::unclear(format!("the action's patch {what}"));
    let mut patch: Value =
        serde_json::from_slice(patch).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let Some(Value::String(text)) = patch.pointer_mut(pointer) else {
        return Err(wrong(format!("has no string at failure_pointer {pointer:?}")));
    };
    text.push_str(failure.unwrap_or_default());
    Ok(patch.to_string().into())
}

/// Why the apiserver refuses every change of an object.
pub(super) enum Seal {
    /// A client stored the data of a revision in another JSON form than the apiserver's own.
    Form,
    /// The object is too large to add anything.
    Size,
    /// A pod of the workload is too large to get another hash label.
    Label,
}

impl Seal {
    /// Interprets a refusal. Only for revisions, for objects to adopt, and for pods to relabel: for these a plan without the
    /// change is possible.
    pub(super) fn of(resource: Resource, kind: Option<&Kind>, error: &ActuatorError) -> Option<Self> {
        if resource == Resource::REVISIONS && is_of_another_form(error) {
            return Some(Self::Form);
        }
        let seal = match kind {
            Some(Kind::RelabelPod(_)) => Self::Label,
            Some(Kind::AdoptPod(_)) => Self::Size,
            Some(Kind::PatchObject(patch)) if patch.claim() == v1::Claim::Adopt => Self::Size,
            _ if resource == Resource::REVISIONS => Self::Size,
            _ => return None,
        };
        is_too_large(error).then_some(seal)
    }

    /// Whether the rest of the plan depends on the change. It does not depend on a relabel: the next plan uses the
    /// label that the pod has.
    pub(super) fn ends_plan(&self) -> bool {
        !matches!(self, Self::Label)
    }

    /// The reason of the Event about the refusal.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Form => "SealedRevision",
            Self::Size | Self::Label => "ObjectTooLarge",
        }
    }

    /// The message of the Event about the refusal.
    pub(super) fn message(&self, key: &ObjectKey, error: &ActuatorError) -> String {
        match self {
            Self::Form => format!(
                "The API server refuses every change of {key}, whose data was written in another form than its own; \
                 it is left out and can be deleted"
            ),
            Self::Size => {
                format!("{key} is too large to be changed, and is left out until it is smaller: {error}")
            }
            Self::Label => {
                format!("{key} is too large to be changed, and keeps its label {HASH_LABEL}: {error}")
            }
        }
    }
}

/// Whether a request was refused because the object would be too large: by the apiserver, by etcd, or by the
/// apiserver's etcd client, which have no HTTP status of their own for that.
fn is_too_large(error: &ActuatorError) -> bool {
    let says = |part: &str| error.message.contains(part);
    match error.http_status {
        413 => true,
        422 => says(": Too long: "),
        500 => says("request is too large") || says("trying to send message larger than max"),
        _ => false,
    }
}

/// Whether a revision was refused for its data, which none of our patches contains. When the apiserver writes an object
/// again, it escapes `<`, `>` and `&` and removes white space; for a strategic merge patch it also rewrites numbers and
/// strings. If a client stored the data in another form, the apiserver then sees changed data, whatever the patch asks
/// for.
fn is_of_another_form(error: &ActuatorError) -> bool {
    let field = |error: &str| {
        error.starts_with("data: ") || error.starts_with("[data: ") || error.contains(", data: ")
    };
    error.refusal == Refusal::Invalid
        && error
            .message
            .split_once(" is invalid: ")
            .is_some_and(|(_, errors)| field(errors))
}
