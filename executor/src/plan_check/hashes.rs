//! Checks the hash label of created pods, which says which revision they belong to. A plan must not create pods with
//! the hash of a revision that the workload does not have.

use nodewise_proto::v1::{self, action::Kind};
use nodewise_proto::workload::HASH_LABEL;
use serde_json::Value;

use super::{Caches, Checked, RequestContext, Violation, bounds};

/// Checks that the hash of created pods is that of a revision in the snapshot, or of a revision that the plan creates
/// or updates.
pub(super) fn check(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    let mut created = bounds::created(plan).map(|(action, _)| action).peekable();
    if created.peek().is_none() {
        return Ok(());
    }
    let hash = hash_of(&plan.pod_manifest);
    // A revision without the label gives its pods the label of the template, if the template has one.
    let may_be_empty = hash.is_empty() || hash == own_hash(&request.workload.object);
    let is_right = |other: &str| other == hash || other.is_empty() && may_be_empty;
    let mut in_plan = plan
        .actions()
        .filter(|action| !checked.left_out.contains_key(&action.id))
        .filter_map(|action| match &action.kind {
            Some(Kind::CreateRevision(create)) => Some(hash_of(&create.manifest)),
            Some(Kind::UpdateRevision(update)) => Some(hash_of(&update.patch)),
            _ => None,
        })
        // A patch without the label leaves it unchanged.
        .filter(|other| !other.is_empty());
    if in_plan.any(|other| is_right(&other))
        || request.live.iter().any(|revision| is_right(revision.hash()))
        || caches.hashes().iter().any(|other| is_right(other))
    {
        return Ok(());
    }
    // The revision may have lost its label or its owner since the snapshot, or may be gone.
    let changed = caches.revisions_changed();
    for action in created {
        let what = format!("it creates pods with the hash {hash:?}, which no revision of the workload has");
        checked.leave_out(action, request, changed, what)?;
    }
    Ok(())
}

/// The hash label in the JSON of an object or a patch; empty if absent.
fn hash_of(object: &[u8]) -> String {
    let object: Value = serde_json::from_slice(object).unwrap_or_default();
    let hash = object["metadata"]["labels"][HASH_LABEL].as_str();
    hash.unwrap_or_default().to_owned()
}

/// The hash label in the template of a workload; empty if absent.
fn own_hash(workload: &[u8]) -> String {
    let object: Value = serde_json::from_slice(workload).unwrap_or_default();
    let hash = object["spec"]["template"]["metadata"]["labels"][HASH_LABEL].as_str();
    hash.unwrap_or_default().to_owned()
}
