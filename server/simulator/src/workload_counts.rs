//! What is known of the pods of a workload.

/// The current state of a DaemonSet or a Deployment, and the counts since the last reset. A Deployment has no duplicates, and its
/// replicas count instead of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadCounts {
    /// Nodes of the cluster. Of a Deployment: spec.replicas.
    pub nodes: usize,
    /// Pods of the workload, including those that are being deleted.
    pub pods: usize,
    /// Pods of the workload that are being deleted.
    pub deleting: usize,
    /// Nodes with a ready pod that is not being deleted. Of a Deployment: such pods.
    pub available: usize,
    /// Available nodes whose ready pod has the containers of the current template.
    pub updated: usize,
    /// Maximum number of nodes that were without a ready pod at once. Of a Deployment: of replicas that were not ready.
    pub max_unavailable: usize,
    /// Maximum number of nodes that had a second pod at once; finished pods and pods that are being deleted do not
    /// count. Of a Deployment: by how much the sizes of its ReplicaSets exceeded spec.replicas together.
    pub max_surging: usize,
    /// Pods created.
    pub created: u64,
    /// Pods that were deleted, including graceful deletions under way.
    pub deleted: u64,
    /// Pods that were created on a node that already had as many pods as the strategy allows. Never reset.
    pub duplicates: u64,
}
