//! The objects that a workload controls or that a plan adopts for it, as the caches show them.

use bytes::Bytes;
use nodewise_proto::v1;
use serde_json::Value;

use super::{Caches, Known, RequestContext, named};

/// One of these objects.
pub(super) struct Owned {
    pub(super) known: Known,
    json: Bytes,
}

impl Owned {
    /// The whole object. Null if it cannot be read, so that it has no template to compare with.
    pub(super) fn object(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

/// Reads them. An object of which the check cannot read the owner is left out.
pub(super) fn objects(plan: &v1::Plan, request: &RequestContext<'_>, caches: &impl Caches) -> Vec<Owned> {
    let adopted = named::adopted(plan, request);
    let is_owned = |known: &Known| match &known.controller {
        Some(controller) => *controller.uid == *request.workload.uid,
        None => adopted.contains(&known.identity()),
    };
    let objects = caches.controlled(request.controls).into_iter();
    let objects = objects.filter_map(|json| {
        let known = Known::read(request.controls, &json).ok()?;
        is_owned(&known).then_some(Owned { known, json })
    });
    objects.collect()
}

/// The number of the last cache change of any of these objects, or of the last one that removed an object of the resource.
pub(super) fn last_change(objects: &[Owned], request: &RequestContext<'_>, caches: &impl Caches) -> u64 {
    let names = objects.iter().map(|owned| &*owned.known.name).chain([""]);
    let changes = names.map(|name| caches.changed(request.controls, name));
    changes.max().unwrap_or_default()
}
