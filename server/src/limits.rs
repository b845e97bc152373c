//! What one request may hold.

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
    /// Revisions that are read in a snapshot; of more the oldest are left out.
    pub revisions: u32,
}

impl Limits {
    /// Bytes of a message in which next to nothing is asked: about health, capabilities, the contract.
    pub const SMALL_MESSAGE_BYTES: usize = 4 << 10;
    /// Bytes of the workload, which travels as JSON: more than the apiserver takes in a request.
    pub const OBJECT_BYTES: usize = 4 << 20;
    /// Entries of a list of the workload that is walked for every node or pod: tolerations, what a selector or an affinity asks
    /// for. No cluster has a tenth of it. A node or pod may have as many labels and taints as it likes; beyond this number that
    /// is odd, and told in a warning.
    pub const LIST_ENTRIES: usize = 1_024;
    /// Bytes of a name, a namespace or a uid. The apiserver takes names of 253 bytes and makes uids of 36; the answer repeats
    /// them for every object.
    pub const NAME_BYTES: usize = 253;
    /// Bytes of the value of a label that the answer repeats; the apiserver takes no more.
    pub const LABEL_VALUE_BYTES: usize = 63;
    /// `PlanRequest.undelivered_reports`: an executor keeps a few.
    pub const UNDELIVERED_REPORTS: usize = 64;
    /// The longest time after which a plan asks to be made again, and that a report may repeat: much longer than any executor lives.
    pub const LONGEST_REQUEUE: Duration = Duration::from_hours(10 * 365 * 24);
    /// Values that a selector or an affinity names, all of its expressions together: affinities may list nodes by name.
    pub const SELECTOR_VALUES: usize = 16_384;
}

impl Limits {
    /// Actions of a plan, and so outcomes of one request: about every node and every pod one.
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
