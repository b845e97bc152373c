//! The kinds of objects that are watched, and how each is read off the wire.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::event::{ClusterEvent, DaemonSet, Delta, Node, Pod, Resource, Revision};
use crate::project::{NodeObject, PodObject, ProjectError};
use crate::store::KIND;

/// A kind of object as it is watched.
pub(super) trait Watched: Sized + Send + 'static {
    const RESOURCE: Resource;
    /// The path of its API group.
    const API: &'static str;
    /// What is read off the wire.
    type Wire: Clone + fmt::Debug + DeserializeOwned + Send + 'static;

    fn read(wire: Self::Wire) -> Result<Self, ProjectError>;
    fn version(&self) -> &str;
    fn event(delta: Delta<Self>) -> ClusterEvent;
    /// Whether it is worth keeping in a list.
    fn matters(&self) -> bool {
        true
    }
}

/// Lists leave out what every item of theirs is; the object is completed so that it looks the same from everywhere.
fn complete(mut object: Value, kind: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| "apps/v1".into());
        fields.entry("kind").or_insert_with(|| kind.into());
    }
    object
}

impl Watched for DaemonSet {
    const RESOURCE: Resource = Resource::DaemonSets;
    const API: &'static str = "/apis/apps/v1";
    type Wire = Value;

    fn read(wire: Value) -> Result<Self, ProjectError> {
        Self::from_json(&complete(wire, KIND))
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::DaemonSets(delta)
    }
}

impl Watched for Revision {
    const RESOURCE: Resource = Resource::Revisions;
    const API: &'static str = "/apis/apps/v1";
    type Wire = Value;

    fn read(wire: Value) -> Result<Self, ProjectError> {
        Self::from_json(&complete(wire, "ControllerRevision"))
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Revisions(delta)
    }
}

impl Watched for Pod {
    const RESOURCE: Resource = Resource::Pods;
    const API: &'static str = "/api/v1";
    type Wire = PodObject;

    fn read(wire: PodObject) -> Result<Self, ProjectError> {
        wire.try_into()
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Pods(delta)
    }
    fn matters(&self) -> bool {
        self.projection
            .controller
            .as_ref()
            .is_none_or(|controller| controller.kind == KIND)
    }
}

impl Watched for Node {
    const RESOURCE: Resource = Resource::Nodes;
    const API: &'static str = "/api/v1";
    type Wire = NodeObject;

    fn read(wire: NodeObject) -> Result<Self, ProjectError> {
        wire.try_into()
    }
    fn version(&self) -> &str {
        &self.resource_version
    }
    fn event(delta: Delta<Self>) -> ClusterEvent {
        ClusterEvent::Nodes(delta)
    }
}
