//! Starts the watches of the DaemonSet controller, and parses the objects of each watch.

use kube::Client;
use nodewise_projection::{DaemonSet, Node, Pod, ProjectError, Revision};
use nodewise_proto::{v1, workload::DAEMON_SET};
use nodewise_runtime::{
    self as runtime, Delta, Resource,
    watch::{Builder, Watched, Watches},
};
use nodewise_telemetry::http::Checks;

use crate::event::{ClusterEvent, DAEMON_SETS};

/// Starts the watches, in one namespace or in all. The readiness of each watch is added to `checks`.
#[must_use]
pub fn start(
    client: &Client,
    namespace: Option<&str>,
    checks: &Checks,
    metrics: &runtime::Metrics,
) -> Watches<ClusterEvent> {
    let mut watches = Builder::new(client, namespace, checks, metrics);
    let are_known = watches.watch::<DaemonSet>();
    watches.watch::<Pod>();
    watches.watch::<Node>();
    // Whether the data of a revision is cached depends on the DaemonSets.
    watches.watch_after::<Revision>(are_known);
    watches.finish()
}

/// Whether an object with this controller is a DaemonSet's, or nobody's: a DaemonSet may adopt it then.
fn may_be_of_a_daemon_set(controller: Option<&v1::ControllerReference>) -> bool {
    controller.is_none_or(|controller| controller.kind == DAEMON_SET)
}

impl Watched<ClusterEvent> for DaemonSet {
    const RESOURCE: Resource = DAEMON_SETS;
    const SKIPS_UNREADABLE: bool = true;

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(&Self::RESOURCE.completed(json))
    }
    fn bookmark(version: String) -> ClusterEvent {
        ClusterEvent::Bookmark(Self::RESOURCE, version)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::DaemonSets(delta)
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
    fn is_kept_from_lists(&self) -> bool {
        may_be_of_a_daemon_set(self.controller.as_ref())
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
    fn is_kept_from_lists(&self) -> bool {
        may_be_of_a_daemon_set(self.projection.controller.as_ref())
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
