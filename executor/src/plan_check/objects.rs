//! Checks the actions on objects of any resource, as far as that needs no caches.

use nodewise_proto::v1::{self, action::Kind};

use super::{RequestContext, Violation, json::parse, kinds, object_patches, replica_sets};

/// Checks everything that the plan creates, patches and deletes by such actions.
pub(super) fn check(plan: &v1::Plan, request: &RequestContext<'_>) -> Result<(), Violation> {
    let mut workload = None;
    for (action, kind, write) in kinds::writes(plan, request) {
        let violation = |what| Violation::of(action, what);
        let object = match workload.take() {
            Some(object) => object,
            None => parse(&request.workload.object, "the workload").map_err(violation)?,
        };
        let checked = match kind {
            Kind::CreateObject(create) => replica_sets::check(create, &object, request.workload),
            Kind::PatchObject(patch) => object_patches::check(write, patch, &object, request),
            _ => Ok(()),
        };
        checked.map_err(violation)?;
        workload = Some(object);
    }
    Ok(())
}
