//! Logs and counts objects with more labels than are sent, once for each change of such an object.

use std::collections::HashMap;

use crate::Resource;
use nodewise_projection::{
    KeySet, MAX_LABELS,
    buckets::{EncodedObject, Shared},
};

/// The number of log lines that are not counted in the metric yet.
#[derive(Debug, Default)]
pub(super) struct Cuts(HashMap<Resource, u64>);

impl Cuts {
    /// Checks an object that came or changed, or of which more labels are named now.
    pub(super) fn check(
        &mut self,
        resource: Resource,
        namespace: &str,
        object: &EncodedObject<impl Shared>,
        keys: &KeySet,
    ) {
        let cut = object.cut(keys);
        if cut == 0 {
            return;
        }
        *self.0.entry(resource).or_default() += 1;
        tracing::warn!(
            %resource,
            namespace,
            name = object.name(),
            labels = cut,
            "not all labels of this object that workloads may read are sent: at most {MAX_LABELS} are"
        );
    }

    pub(super) fn take(&mut self) -> [(Resource, u64); 2] {
        [Resource::NODES, Resource::PODS].map(|resource| (resource, self.0.remove(&resource).unwrap_or(0)))
    }
}
