//! Starts the watches of a kind of workload.

use std::marker::PhantomData;

use kube::Client;
use nodewise_projection::{Node, Pod, ProjectError, Revision, Workload};
use nodewise_runtime::{
    self as runtime, Delta, Resource,
    watch::{Builder, Watched, Watches},
};
use nodewise_telemetry::http::Checks;

use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::kind::Kind;

/// Starts the watches for workloads of one kind, in one namespace or in all. The readiness of each watch is added to
/// `checks`.
#[must_use]
pub fn start<K: Kind>(
    client: &Client,
    namespace: Option<&str>,
    checks: &Checks,
    metrics: &runtime::Metrics,
) -> Watches {
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

impl<K: Kind> Watched for Served<K> {
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

#[cfg(test)]
mod tests;
