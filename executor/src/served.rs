//! Reads the workloads of a watch.

use std::marker::PhantomData;

use nodewise_projection::{ProjectError, Workload};
use nodewise_runtime::{Delta, Resource, event::ClusterEvent, kind::Kind, watch::Watched};

/// A workload of a kind, as the apiserver serves it.
#[derive(Debug)]
pub(crate) struct Served<K> {
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
