//! Finds out that a replica does not read shared labels, although it was said to.
//!
//! During an upgrade two versions may answer behind one address. The newer one says that it reads `Bucket.data_with_shared_labels`. To
//! the earlier one such a bucket has no bytes, so it answers that it lacks the bucket. A replica that reads the field never lacks a
//! bucket whose bytes are in the request.

use nodewise_proto::v1;

/// The node buckets of a request whose bytes have shared labels, by index.
pub(super) struct Sharing(Vec<u32>);

impl Sharing {
    pub(super) fn of(snapshot: Option<&v1::Snapshot>) -> Self {
        let buckets = snapshot.map_or(&[][..], |snapshot| &snapshot.node_buckets);
        let sharing = (0..).zip(buckets).filter_map(|(index, bucket)| {
            let shares = bucket.data_with_shared_labels.is_some();
            shares.then_some(index)
        });
        Self(sharing.collect())
    }

    /// Whether the replica lacks one of these buckets. If it does not say which buckets it lacks, it may be one of these.
    pub(super) fn is_unread(&self, missing: Option<&v1::MissingBuckets>) -> bool {
        let lacks = |missing: &v1::MissingBuckets| {
            let mut indices = missing.node_bucket_indices.iter();
            indices.any(|index| self.0.contains(index))
        };
        missing.map_or(!self.0.is_empty(), lacks)
    }
}
