//! A ReplicaSet, as a snapshot holds it.

use crate::core::{
    json::Json,
    owner::Owner,
    snapshot::{Labels, Selector},
    status::ReplicaSetStatus,
};

/// A ReplicaSet. The values are as served: the planner does not rely on the apiserver's validation.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaSet {
    /// metadata.name.
    pub name: String,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.generation.
    pub generation: i64,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// spec.selector; `None` when absent.
    pub selector: Option<Selector>,
    /// spec.replicas; 1 when absent.
    pub replicas: i32,
    /// spec.minReadySeconds.
    pub min_ready_seconds: i32,
    /// spec.template as served.
    pub template: Json,
    /// The labels of `template`.
    pub template_labels: Labels,
    /// status.
    pub status: ReplicaSetStatus,
    /// The number of related pods on each node, sorted by the node's name.
    pub related_pods: Vec<(String, u32)>,
}

impl ReplicaSet {
    /// The workload as the owner of its pods.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner {
            kind: "ReplicaSet",
            name: &self.name,
            uid: &self.uid,
            selector: self.selector.as_ref(),
            deleting: self.deleting,
        }
    }
}
