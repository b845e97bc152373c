//! The resources that the apiserver knows, and the keys of objects.

use std::fmt;

/// A resource of the Kubernetes API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// apps/v1 daemonsets.
    DaemonSets,
    /// v1 nodes.
    Nodes,
    /// v1 pods.
    Pods,
    /// apps/v1 controllerrevisions.
    Revisions,
    /// apps/v1 replicasets.
    ReplicaSets,
    /// apps/v1 deployments.
    Deployments,
}

impl Resource {
    /// All resources.
    pub const ALL: [Self; 6] = [
        Self::DaemonSets,
        Self::Nodes,
        Self::Pods,
        Self::Revisions,
        Self::ReplicaSets,
        Self::Deployments,
    ];

    /// The name in paths, in lower case.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::DaemonSets => "daemonsets",
            Self::Nodes => "nodes",
            Self::Pods => "pods",
            Self::Revisions => "controllerrevisions",
            Self::ReplicaSets => "replicasets",
            Self::Deployments => "deployments",
        }
    }
}

/// The identity of an object. The namespace of nodes is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The resource of the object.
    pub resource: Resource,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.name.
    pub name: String,
}

impl ObjectKey {
    /// Creates a key.
    pub fn new(resource: Resource, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            resource,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.resource.plural(), self.namespace, self.name)
    }
}
