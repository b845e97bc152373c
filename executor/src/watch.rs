//! Starts the watches, and parses the objects of each watch.

use std::marker::PhantomData;

use kube::Client;
use nodewise_projection::{Node, Pod, ProjectError, Revision, Workload};
use nodewise_runtime::{
    self as runtime, Delta, Resource,
    watch::{Builder, Watched, Watches},
};
use nodewise_telemetry::http::Checks;

use crate::event::ClusterEvent;
use crate::kind::Kind;
use crate::store::is_cached;

/// Starts the watches for workloads of one kind, in one namespace or in all. The readiness of each watch is added to
/// `checks`.
#[must_use]
pub fn start<K: Kind>(
    client: &Client,
    namespace: Option<&str>,
    checks: &Checks,
    metrics: &runtime::Metrics,
) -> Watches<ClusterEvent> {
    let mut watches = Builder::new(client, namespace, &[K::RESOURCE], checks, metrics);
    let are_known = watches.watch::<Served<K>>();
    watches.watch::<Pod>();
    watches.watch::<Node>();
    // Whether the data of a revision is cached depends on the workloads.
    watches.watch_after::<Revision>(are_known);
    watches.finish()
}

/// A workload of a kind, as the apiserver serves it.
#[derive(Debug)]
struct Served<K> {
    workload: Workload,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Watched<ClusterEvent> for Served<K> {
    const RESOURCE: Resource = K::RESOURCE;
    const SKIPS_UNREADABLE: bool = true;

    fn read(json: &str) -> Result<Self, ProjectError> {
        let workload = K::read(&Self::RESOURCE.completed(json))?;
        let kind = PhantomData;
        Ok(Self { workload, kind })
    }
    fn bookmark(version: String) -> ClusterEvent {
        ClusterEvent::Bookmark(Self::RESOURCE, version)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Workloads(Self::RESOURCE, delta.map(|served| served.workload))
    }
}

impl Watched<ClusterEvent> for Revision {
    const RESOURCE: Resource = Resource::REVISIONS;
    const SKIPS_UNREADABLE: bool = true;

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(&Self::RESOURCE.completed(json))
    }
    fn bookmark(version: String) -> ClusterEvent {
        ClusterEvent::Bookmark(Self::RESOURCE, version)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Revisions(delta)
    }
    fn page(revisions: Vec<Self>, is_first: bool) -> Result<ClusterEvent, Vec<Self>> {
        Ok(ClusterEvent::RevisionPage { revisions, is_first })
    }
    fn is_kept_from_lists(&self, kinds: &[Resource]) -> bool {
        is_cached(kinds, self.controller.as_ref())
    }
}

impl Watched<ClusterEvent> for Pod {
    const RESOURCE: Resource = Resource::PODS;
    const SKIPS_UNREADABLE: bool = false;

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(json)
    }
    fn bookmark(version: String) -> ClusterEvent {
        ClusterEvent::Bookmark(Self::RESOURCE, version)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Pods(delta)
    }
    fn page(pods: Vec<Self>, is_first: bool) -> Result<ClusterEvent, Vec<Self>> {
        Ok(ClusterEvent::PodPage { pods, is_first })
    }
    fn is_kept_from_lists(&self, kinds: &[Resource]) -> bool {
        is_cached(kinds, self.projection.controller.as_ref())
    }
}

impl Watched<ClusterEvent> for Node {
    const RESOURCE: Resource = Resource::NODES;
    const SKIPS_UNREADABLE: bool = false;

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(json)
    }
    fn bookmark(version: String) -> ClusterEvent {
        ClusterEvent::Bookmark(Self::RESOURCE, version)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Nodes(delta)
    }
}

#[cfg(test)]
mod tests;
