//! Into which buckets the pods of each kind of workload are divided.

use nodewise_projection::buckets::{Placement, PodBuckets};

/// `Limits.max_bucket_count` of a service with default settings.
const MOST_BUCKETS: u32 = 1_024;

/// The buckets of nodes and pods.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The number of buckets of nodes, and of the pods that belong to the buckets of their nodes.
    pub(super) bucket_count: u32,
    /// The kinds of workload whose pods belong to the buckets of their own names.
    pub(super) by_name: Vec<&'static str>,
}

impl Layout {
    pub(super) fn placement(&self, kind: &str) -> Placement {
        if self.by_name.contains(&kind) {
            Placement::Name
        } else {
            Placement::Node
        }
    }

    /// The number of buckets for a workload of this kind without pods.
    pub(super) fn fewest_buckets(&self, kind: &str) -> u32 {
        match self.placement(kind) {
            Placement::Node => self.bucket_count,
            Placement::Name => 1,
        }
    }

    /// The most buckets for the pods of one workload by their own names. They are more than for nodes, because no bucket of
    /// nodes is sent with them, and one workload may have many more pods than there are nodes. No service has to accept more than
    /// [`MOST_BUCKETS`].
    fn most_by_name(&self) -> u32 {
        let wanted = self.bucket_count.saturating_mul(4);
        wanted.min(MOST_BUCKETS.max(self.bucket_count))
    }

    /// Empty buckets for the pods that one workload controls.
    pub(super) fn empty(&self, placement: Placement) -> PodBuckets {
        match placement {
            Placement::Node => PodBuckets::of_pods(Placement::Node, self.bucket_count),
            Placement::Name => PodBuckets::growing_to(self.most_by_name()),
        }
    }
}
