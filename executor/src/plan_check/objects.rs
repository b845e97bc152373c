//! Checks the actions on objects of any resource, as far as that needs no caches.

use nodewise_proto::v1::{self, action::Kind};

use super::{RequestContext, Violation, json::Lazy, kinds, object_patches, policies, replica_sets};

/// Checks everything that the plan creates, patches and deletes by such actions.
pub(super) fn check(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    // Most plans are checked without it.
    let object = Lazy::new(&request.workload.object, "the workload");
    for (action, kind, write) in kinds::writes(plan, request) {
        let checked = match kind {
            Kind::CreateObject(create) => object
                .read()
                .and_then(|object| replica_sets::check(create, object, request.workload)),
            Kind::PatchObject(patch) if write == kinds::Write::PolicyStatus => {
                policies::check_patch(patch, request)
            }
            Kind::PatchObject(patch) => object_patches::check(write, patch, &object, request),
            _ => Ok(()),
        };
        checked.map_err(|what| Violation::of(action, what))?;
    }
    Ok(())
}
