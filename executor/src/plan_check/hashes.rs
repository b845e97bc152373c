//! The hash of created pods says which revision they are of. A plan must not pass them off as pods of one that the workload does not have.

use nodewise_proto::v1::{self, action::Kind};
use serde_json::Value;

use super::{Asked, Caches, Checked, Violation, bounds};
use crate::actuator::HASH_LABEL;

/// Checks the hash of the pods that the plan creates: that of a revision which the snapshot shows, or which the plan creates or labels.
pub(super) fn check(
    plan: &v1::Plan,
    asked: &Asked<'_>,
    caches: &impl Caches,
    checked: &mut Checked<'_>,
) -> Result<(), Violation> {
    let mut created = bounds::created(plan).map(|(action, _)| action).peekable();
    if created.peek().is_none() {
        return Ok(());
    }
    let hash = hash_of(&plan.pod_manifest);
    // Pods of a revision without the label have the template's own, if it has one.
    let may_be_empty = hash.is_empty() || hash == own_hash(&asked.workload.object);
    let is_right = |other: &str| other == hash || other.is_empty() && may_be_empty;
    let mut in_plan = plan
        .actions()
        .filter(|action| !checked.left_out.contains_key(&action.id))
        .filter_map(|action| match &action.kind {
            Some(Kind::CreateRevision(create)) => Some(hash_of(&create.manifest)),
            Some(Kind::UpdateRevision(update)) => Some(hash_of(&update.patch)),
            _ => None,
        })
        // A patch may leave the label as it is.
        .filter(|other| !other.is_empty());
    if in_plan.any(|other| is_right(&other))
        || asked.live.iter().any(|revision| is_right(revision.hash()))
        || caches.hashes().iter().any(|other| is_right(other))
    {
        return Ok(());
    }
    // The revision may have lost its label or its owner, or may be gone.
    let changed = caches.revisions_changed();
    for action in created {
        let what = format!("it creates pods with the hash {hash:?}, which no revision of the workload has");
        checked.leave_out(action, asked, changed, what)?;
    }
    Ok(())
}

/// The hash label in the JSON of an object or a patch; empty where there is none.
fn hash_of(object: &[u8]) -> String {
    let object: Value = serde_json::from_slice(object).unwrap_or_default();
    let hash = object["metadata"]["labels"][HASH_LABEL].as_str();
    hash.unwrap_or_default().to_owned()
}

/// The same label in the template of a workload.
fn own_hash(workload: &[u8]) -> String {
    let object: Value = serde_json::from_slice(workload).unwrap_or_default();
    let hash = object["spec"]["template"]["metadata"]["labels"][HASH_LABEL].as_str();
    hash.unwrap_or_default().to_owned()
}
