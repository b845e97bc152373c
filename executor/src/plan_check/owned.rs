//! The objects that a workload controls or that a plan adopts for it, as the caches show them.

use std::collections::HashMap;

use nodewise_proto::v1;
use serde_json::Value;

use super::{Caches, Known, RequestContext, named};

/// Their JSON.
pub(super) fn objects(plan: &v1::Plan, request: &RequestContext<'_>, caches: &impl Caches) -> Vec<Value> {
    read(plan, request, caches, |json, _| serde_json::from_slice(json).ok())
}

/// Their sizes, by uid.
pub(super) fn sizes(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
) -> HashMap<String, i64> {
    let sizes = read(plan, request, caches, |_, known| {
        Some((known.uid, known.replicas.unwrap_or_default()))
    });
    sizes.into_iter().collect()
}

/// The number of the last cache change of any of them, or of the last one that removed an object of the resource.
pub(super) fn changed(plan: &v1::Plan, request: &RequestContext<'_>, caches: &impl Caches) -> u64 {
    let objects = objects(plan, request, caches);
    let names = objects
        .iter()
        .filter_map(|object| object["metadata"]["name"].as_str());
    let changes = names
        .chain([""])
        .map(|name| caches.changed(request.controls, name));
    changes.max().unwrap_or_default()
}

/// Reads each of them. An object that cannot be read is left out.
fn read<T>(
    plan: &v1::Plan,
    request: &RequestContext<'_>,
    caches: &impl Caches,
    read: impl Fn(&[u8], Known) -> Option<T>,
) -> Vec<T> {
    let adopted = named::adopted(plan, request);
    let objects = caches.controlled(request.controls).into_iter();
    let objects = objects.filter_map(|json| {
        let known = Known::read(request.controls, &json).ok()?;
        let is_owned = match &known.controller {
            Some(controller) => *controller.uid == *request.workload.uid,
            None => adopted.contains(&*known.uid),
        };
        if is_owned { read(&json, known) } else { None }
    });
    objects.collect()
}
