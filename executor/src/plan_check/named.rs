//! The objects that a plan changes or deletes, and which of them it may touch.

use std::collections::HashSet;

use nodewise_proto::v1::{self, action::Kind};
use nodewise_runtime::{Resource, apply};

use super::{Known, RequestContext, Violation, kinds, names};

/// An object that an action names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(super) action: &'a v1::Action,
    /// The object's resource.
    pub(crate) resource: Resource,
    /// The object's name and uid.
    pub(crate) reference: &'a v1::ObjectReference,
    /// What the action may do if the object is an orphan.
    orphan: Orphan,
}

/// What an action may do to an object without a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Orphan {
    /// Nothing.
    Refused,
    /// Adopt it if the selector matches, or act on it after its adoption by the same plan.
    IfSelected,
    /// Release it again: an earlier plan has released it since the snapshot.
    Released,
}

/// The name and the uid of an object. A service could send the uid of one object with the name of another, or of none. Such an
/// action does nothing to the first one.
pub(super) type Identity<'a> = (&'a str, &'a str);

/// The objects that a plan adopts.
pub(super) fn adopted<'a>(plan: &'a v1::Plan, request: &RequestContext<'_>) -> HashSet<Identity<'a>> {
    identities(plan, request, v1::Action::is_adoption)
}

/// The objects that a plan releases.
pub(super) fn released<'a>(plan: &'a v1::Plan, request: &RequestContext<'_>) -> HashSet<Identity<'a>> {
    identities(plan, request, is_release)
}

/// The objects of these actions.
fn identities<'a>(
    plan: &'a v1::Plan,
    request: &RequestContext<'_>,
    is_meant: fn(&v1::Action) -> bool,
) -> HashSet<Identity<'a>> {
    let actions = plan.actions().filter(|action| is_meant(action));
    let objects = actions.filter_map(|action| object(action, request)?.1);
    objects.map(identity).collect()
}

fn identity(reference: &v1::ObjectReference) -> Identity<'_> {
    (&reference.name, &reference.uid)
}

/// The resource and the reference of an object, other than the workload and its RolloutPolicies, that an action changes or deletes.
fn object<'a>(
    action: &'a v1::Action,
    request: &RequestContext<'_>,
) -> Option<(Resource, Option<&'a v1::ObjectReference>)> {
    match &action.kind {
        Some(Kind::PatchObject(patch)) if kinds::is_of_policy(patch) => None,
        Some(Kind::PatchObject(patch)) => {
            let is_own = request.is_workload(patch.object.as_ref());
            (!is_own).then_some((request.controls, patch.object.as_ref()))
        }
        Some(Kind::DeleteObject(delete)) => Some((request.controls, delete.object.as_ref())),
        _ => apply::object(action),
    }
}

/// The existing object that an action names; `None` if it names none.
pub(super) fn named<'a>(
    action: &'a v1::Action,
    request: &RequestContext<'_>,
    adopted: &HashSet<Identity<'_>>,
) -> Result<Option<Named<'a>>, Violation> {
    // An action of an unknown kind is not carried out, so it needs no check.
    let Some((resource, reference)) = object(action, request) else {
        return Ok(None);
    };
    let Some(reference) = reference.filter(|reference| !reference.name.is_empty()) else {
        return Err(Violation::of(action, "it names no object"));
    };
    if !names::is_of_object(&reference.name) {
        let what = format!("it names {:?}, and no object can be called so", reference.name);
        return Err(Violation::of(action, what));
    }
    if reference.uid.is_empty() {
        return Err(Violation::of(
            action,
            format!("it names {} without a uid", reference.name),
        ));
    }
    let orphan = match &action.kind {
        _ if is_release(action) => Orphan::Released,
        _ if adopted.contains(&identity(reference)) => Orphan::IfSelected,
        _ => Orphan::Refused,
    };
    Ok(Some(Named {
        action,
        resource,
        reference,
        orphan,
    }))
}

fn is_release(action: &v1::Action) -> bool {
    match &action.kind {
        Some(Kind::ReleasePod(_) | Kind::ReleaseRevision(_)) => true,
        Some(Kind::PatchObject(patch)) => patch.claim() == v1::Claim::Release,
        _ => false,
    }
}

/// A delete by name alone deletes whatever object has the name at that time. It is accepted only if the request allows
/// it.
pub(super) fn check_precondition(named: &Named<'_>, request: &RequestContext<'_>) -> Result<(), Violation> {
    match &named.action.kind {
        Some(Kind::DeletePod(delete)) if !delete.uid_precondition && request.delete_with_uid => {
            let name = &named.reference.name;
            let what = format!("it deletes {name} without its uid as a precondition");
            Err(Violation::of(named.action, what))
        }
        _ => Ok(()),
    }
}

/// Why an action may not touch this object: the workload does not control it, and it is not an orphan that the action
/// may touch; or it is deleted and should still have pods.
pub(super) fn wrong(named: &Named<'_>, request: &RequestContext<'_>, known: &Known) -> Option<String> {
    let replicas = known.replicas.unwrap_or_default();
    wrong_controller(named, request, known).or_else(|| {
        let is_delete = matches!(named.action.kind, Some(Kind::DeleteObject(_)));
        (is_delete && replicas != 0).then(|| format!("{} has spec.replicas {replicas}", describe(named)))
    })
}

fn wrong_controller(named: &Named<'_>, request: &RequestContext<'_>, known: &Known) -> Option<String> {
    let selects = || request.workload.selector.selects(&known.labels);
    let what = match (&known.controller, named.orphan) {
        (Some(controller), _) if *controller.uid == *request.workload.uid => {
            if !is_release(named.action) || !selects() {
                return None;
            }
            format!(
                "{} is selected by the workload, and the plan releases it",
                describe(named)
            )
        }
        (Some(controller), _) => format!(
            "{} is controlled by {} {} with uid {:?}, not by the workload",
            describe(named),
            controller.kind,
            controller.name,
            controller.uid
        ),
        (None, Orphan::Released) => return None,
        (None, Orphan::IfSelected) if selects() => return None,
        (None, Orphan::IfSelected) => format!("{} is not selected by the workload", describe(named)),
        (None, Orphan::Refused) => {
            format!(
                "{} has no controller, and the plan does not adopt it",
                describe(named)
            )
        }
    };
    Some(what)
}

/// The object's kind and name, for messages.
pub(super) fn describe(named: &Named<'_>) -> String {
    let kind = match named.resource {
        Resource::PODS => "pod",
        other => other.kind,
    };
    format!("{kind} {}", named.reference.name)
}
