//! Into which buckets the pods of each kind of workload are divided.

use nodewise_projection::buckets::{Buckets, Placement};

/// The buckets of nodes and pods.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The number of buckets of nodes, and of the pods that belong to the buckets of their nodes. The buckets by the pods' names
    /// are at most as many.
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

    /// Empty buckets for the pods that one workload controls.
    pub(super) fn empty(&self, placement: Placement) -> Buckets {
        match placement {
            Placement::Node => Buckets::new(self.bucket_count),
            Placement::Name => Buckets::growing_to(self.bucket_count),
        }
    }
}
