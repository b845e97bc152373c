//! Objects with more labels than are sent: said once for each change of such an object.

use std::collections::HashMap;

use crate::buckets::Stored;
use crate::event::Resource;
use crate::project::{KeySet, MAX_LABELS};

/// How many were said and not yet counted.
#[derive(Debug, Default)]
pub(super) struct Cuts(HashMap<Resource, u64>);

impl Cuts {
    /// An object came or changed, or more of its labels are named.
    pub(super) fn look(&mut self, resource: Resource, namespace: &str, object: &Stored, keys: &KeySet) {
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
            "not all labels of this object that DaemonSets may read are sent: at most {MAX_LABELS} are"
        );
    }

    pub(super) fn take(&mut self) -> [(Resource, u64); 2] {
        [Resource::Nodes, Resource::Pods].map(|resource| (resource, self.0.remove(&resource).unwrap_or(0)))
    }
}
