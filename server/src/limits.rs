//! Limits of one request.

use std::time::Duration;

/// Upper bounds on one request. They bound memory and time, so they are checked before either is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nodes in a snapshot.
    pub nodes: u32,
    /// Pods in a snapshot.
    pub pods: u32,
    /// `Snapshot.bucket_count`.
    pub buckets: u32,
    /// Revisions that are read in a snapshot. If there are more, the oldest are left out.
    pub revisions: u32,
}

impl Limits {
    /// Bytes of a request for health, capabilities or reflection.
    pub const SMALL_MESSAGE_BYTES: usize = 4 << 10;
    /// Bytes of the JSON of a workload, or of a ReplicaSet of a Deployment. etcd stores 1.5 MiB of an object, and the apiserver
    /// writes a byte such as `<` with six characters. This limit is above the size of every object that a user can create.
    pub const OBJECT_BYTES: usize = 16 << 20;
    /// Entries of a list of the workload that the planner walks for every node or pod: tolerations, requirements of a selector or
    /// an affinity. Real clusters have less than a tenth. A node or pod may have more labels or taints than this; the plan then has
    /// a warning.
    pub const LIST_ENTRIES: usize = 1_024;
    /// Bytes of a name, a namespace or a uid, which the response repeats for every object. The apiserver accepts names of 253 bytes
    /// and generates uids of 36 bytes.
    pub const NAME_BYTES: usize = 253;
    /// Bytes of a label value that the response repeats. The apiserver accepts no more.
    pub const LABEL_VALUE_BYTES: usize = 63;
    /// Entries of `PlanRequest.undelivered_reports`. An executor keeps a few.
    pub const UNDELIVERED_REPORTS: usize = 64;
    /// The longest requeue delay in a plan, and in the report that repeats it. Much longer than any executor runs.
    pub const LONGEST_REQUEUE: Duration = Duration::from_hours(10 * 365 * 24);
    /// Values in all expressions of a selector or an affinity together. An affinity may list nodes by name.
    pub const SELECTOR_VALUES: usize = 16_384;
    /// DaemonSets of a request about nodes.
    pub const DAEMON_SETS: usize = 10_000;
    /// Decisions of a request about nodes: its nodes times its DaemonSets. A response of that many takes some tens of megabytes.
    pub const DECISIONS: usize = 4_000_000;
    /// ReplicaSets of a Deployment. Executors send no more.
    pub const REPLICA_SETS: usize = 10_000;
}

impl Limits {
    /// Actions of a plan, and so outcomes of one report: about one for every node and every pod.
    #[must_use]
    pub fn actions(&self) -> usize {
        (self.nodes as usize).saturating_add(self.pods as usize)
    }
}

impl Default for Limits {
    /// Twice the nodes of the largest clusters known, with room for a surge and for orphans among the pods.
    fn default() -> Self {
        Self {
            nodes: 200_000,
            pods: 400_000,
            buckets: 1_024,
            revisions: 10_000,
        }
    }
}
