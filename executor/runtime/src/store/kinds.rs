//! The kinds of workload that are cached, and what is cached for them.

use std::sync::Arc;

use super::Store;
use crate::Resource;
use nodewise_projection::buckets::Placement;
use nodewise_proto::v1;

/// A kind of workload that is cached.
#[derive(Clone, Copy, Debug)]
pub struct CachedKind {
    /// The resource of the workloads.
    pub resource: Resource,
    /// The resources from which their plans are made, besides workloads.
    pub reads: &'static [Resource],
    /// Into which buckets the pods are divided that a workload controls; `None` if it controls no pods.
    pub pods: Option<Placement>,
}

impl Store {
    /// Adds a kind of workload. A kind that was added before is added to. Call this before the first event.
    pub fn add_kind(&mut self, kind: CachedKind) {
        let name = kind.resource.kind;
        let is_read = |input: &Resource| self.inputs.contains(input) || kind.reads.contains(input);
        self.inputs = Resource::INPUTS.into_iter().filter(is_read).collect();
        if kind.reads.contains(&Resource::REVISIONS) && !self.with_revisions.contains(&name) {
            self.with_revisions.push(name);
        }
        if self.kinds.contains(&kind.resource) {
            return;
        }
        self.kinds.push(kind.resource);
        if kind.pods == Some(Placement::Name) {
            Arc::make_mut(&mut self.layout).by_name.push(name);
        }
    }

    /// The kinds of workload that are cached.
    #[must_use]
    pub fn kinds(&self) -> &[Resource] {
        &self.kinds
    }

    /// The other resources that are cached.
    #[must_use]
    pub fn inputs(&self) -> &[Resource] {
        &self.inputs
    }
}

/// Whether objects with this controller are cached, if these kinds of workload are: those of these kinds, and orphans.
#[must_use]
pub fn is_cached(kinds: &[Resource], controller: Option<&v1::ControllerReference>) -> bool {
    controller.is_none_or(|controller| kinds.iter().any(|resource| resource.kind == controller.kind))
}
