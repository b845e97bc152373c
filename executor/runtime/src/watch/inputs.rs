//! How the objects are read from which plans are made, besides the workloads.

use nodewise_projection::{Node, Pod, ProjectError, Revision, RolloutPolicy};

use super::{ReadProtobuf, Watched};
use crate::delta::Delta;
use crate::event::ClusterEvent;
use crate::resource::Resource;
use crate::store::{self, is_cached};

impl Watched for Revision {
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

impl Watched for Pod {
    const RESOURCE: Resource = Resource::PODS;
    const SKIPS_UNREADABLE: bool = false;
    const READ_PROTOBUF: Option<ReadProtobuf<Self>> = Some(Self::from_protobuf);

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

impl Watched for Node {
    const RESOURCE: Resource = Resource::NODES;
    const SKIPS_UNREADABLE: bool = false;
    const READ_PROTOBUF: Option<ReadProtobuf<Self>> = Some(Self::from_protobuf);

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(json)
    }
    fn bookmark(version: String) -> ClusterEvent {
        ClusterEvent::Bookmark(Self::RESOURCE, version)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Nodes(delta)
    }
    fn page(nodes: Vec<Self>, is_first: bool) -> Result<ClusterEvent, Vec<Self>> {
        Ok(ClusterEvent::NodePage { nodes, is_first })
    }
}

impl Watched for RolloutPolicy {
    const RESOURCE: Resource = Resource::ROLLOUT_POLICIES;
    // No rollout may go on without its policy.
    const SKIPS_UNREADABLE: bool = false;
    const IS_OPTIONAL: bool = true;

    fn read(json: &str) -> Result<Self, ProjectError> {
        Self::from_text(&Self::RESOURCE.completed(json))
    }
    fn bookmark(version: String) -> ClusterEvent {
        ClusterEvent::Bookmark(Self::RESOURCE, version)
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Policies(delta)
    }
    fn bound(policies: &mut [Self]) {
        store::bound(policies);
    }
}
