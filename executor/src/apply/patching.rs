//! Actions that patch an object, and what a refusal of each means.

use nodewise_proto::v1::{ObjectReference, action::Kind};

use crate::{
    actuator::{ActuatorError, HASH_LABEL, ObjectKey, Patch, Refusal},
    event::Resource,
};

/// One patch.
pub(super) struct Patching<'a> {
    pub(super) resource: Resource,
    pub(super) object: Option<&'a ObjectReference>,
    pub(super) patch: Patch,
    /// Refusals that mean: not the planned object any more, so not ours, and no error (D-23).
    pub(super) gone: &'static [Refusal],
}

const NEVER: &[Refusal] = &[];
const ADOPT: &[Refusal] = &[Refusal::NotFound];
/// A wrong uid is answered with 422.
const RELEASE: &[Refusal] = &[Refusal::NotFound, Refusal::Invalid];

impl<'a> Patching<'a> {
    /// The patch that an action is, if it is one.
    pub(super) fn of(kind: &'a Kind) -> Option<Self> {
        use Patch::{Merge, Strategic};
        use Resource::{Pods, Revisions};
        let (resource, object, patch, gone) = match kind {
            Kind::UpdateRevision(a) => (Revisions, &a.revision, Merge(a.patch.clone()), NEVER),
            Kind::AdoptRevision(a) => (Revisions, &a.revision, Strategic(a.patch.clone()), ADOPT),
            Kind::ReleaseRevision(a) => (Revisions, &a.revision, Strategic(a.patch.clone()), RELEASE),
            Kind::AdoptPod(a) => (Pods, &a.pod, Strategic(a.patch.clone()), ADOPT),
            Kind::ReleasePod(a) => (Pods, &a.pod, Strategic(a.patch.clone()), RELEASE),
            Kind::RelabelPod(a) => (Pods, &a.pod, Merge(a.patch.clone()), NEVER),
            _ => return None,
        };
        Some(Self {
            resource,
            object: object.as_ref(),
            patch,
            gone,
        })
    }
}

/// Why the apiserver refuses every change of an object as it is.
pub(super) enum Seal {
    /// The data of a revision was written in another form than the apiserver's own.
    Form,
    /// There is no room for what is to be added.
    Size,
    /// The same, in a pod of the workload that is to get another hash label.
    Label,
}

impl Seal {
    /// What a refusal says of the object. It is told of revisions, and of pods that are to be adopted or relabelled: without these there
    /// is a plan.
    pub(super) fn of(resource: Resource, kind: Option<&Kind>, error: &ActuatorError) -> Option<Self> {
        if resource == Resource::Revisions && is_of_another_form(error) {
            return Some(Self::Form);
        }
        let seal = match kind {
            Some(Kind::RelabelPod(_)) => Self::Label,
            Some(Kind::AdoptPod(_)) => Self::Size,
            _ if resource == Resource::Revisions => Self::Size,
            _ => return None,
        };
        is_too_large(error).then_some(seal)
    }

    /// Whether the rest of the plan rests on the change. The plan goes on without a relabelled pod: the next one decides about it by the
    /// label that it has.
    pub(super) fn ends_plan(&self) -> bool {
        !matches!(self, Self::Label)
    }

    /// The reason of the Event about it.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Form => "SealedRevision",
            Self::Size | Self::Label => "ObjectTooLarge",
        }
    }

    /// The message of the Event about it.
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

/// Whether an object is refused since it would be too large: by the apiserver, by etcd, or by the apiserver's client of etcd, which
/// has no status of their own for that.
fn is_too_large(error: &ActuatorError) -> bool {
    let says = |part: &str| error.message.contains(part);
    match error.http_status {
        413 => true,
        422 => says(": Too long: "),
        500 => says("request is too large") || says("trying to send message larger than max"),
        _ => false,
    }
}

/// Whether a revision is refused for its data, which is in none of our patches: the apiserver spells `<`, `>` and `&` as escapes
/// whenever it writes an object anew, and leaves out blanks; for a strategic merge patch it spells numbers and strings
/// its own way, too. Where a client stored them otherwise it then finds the data changed, whatever is asked.
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
