//! Actions that patch an object, and what a refusal of each means.

use nodewise_proto::v1::{ObjectReference, action::Kind};

use crate::{
    actuator::{ActuatorError, Patch, Refusal},
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

/// Whether a revision is refused for its data, which is in none of our patches: the apiserver spells `<`, `>` and `&` as escapes
/// whenever it writes an object anew, and leaves out blanks; for a strategic merge patch it spells numbers and strings
/// its own way, too. Where a client stored them otherwise it then finds the data changed, whatever is asked.
pub(super) fn is_sealed(resource: Resource, error: &ActuatorError) -> bool {
    let field = |error: &str| {
        error.starts_with("data: ") || error.starts_with("[data: ") || error.contains(", data: ")
    };
    resource == Resource::Revisions
        && error.refusal == Refusal::Invalid
        && error
            .message
            .split_once(" is invalid: ")
            .is_some_and(|(_, errors)| field(errors))
}
