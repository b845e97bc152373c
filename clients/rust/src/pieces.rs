//! Sends buckets in several calls ("pieces") if one message with all missing buckets would be too large.
//!
//! A replica caches the inline buckets of a request even if it lacks others. So a piece has some of the missing buckets inline, and
//! the others by digest only. The replica answers which buckets it still lacks, and the next piece has more of them.

use crate::fault::{Failed, Fault};
use crate::service::Digest;
use crate::snapshot_request::SnapshotRequest;

/// The state of the pieces of one attempt.
pub(super) struct Pieces {
    /// The largest size of a piece, in bytes.
    max_bytes: usize,
    /// The number of buckets that the replica lacked after the last piece.
    missing_before: Option<usize>,
}

impl Pieces {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            missing_before: None,
        }
    }

    /// Removes the data of buckets that do not fit into a piece; at least one bucket stays inline. Returns the digests of the
    /// buckets that stay, or `None` if the request fits as it is. Buckets without a digest are never removed.
    pub(super) fn cut(&self, request: &mut impl SnapshotRequest) -> Option<Vec<Digest>> {
        let size = request.encoded_len();
        if size <= self.max_bytes {
            return None;
        }
        let snapshot = request.snapshot_mut()?;
        let mut inline: Vec<_> = (snapshot.node_buckets.iter_mut())
            .chain(&mut snapshot.pod_buckets)
            .filter_map(|bucket| {
                let digest = Digest::try_from(&*bucket.digest).ok()?;
                let data = match &mut bucket.data {
                    None => &mut bucket.data_with_shared_labels,
                    data => data,
                };
                let length = data.as_ref()?.len();
                Some((digest, length, data))
            })
            .collect();
        let other_bytes = size - inline.iter().map(|(_, length, _)| length).sum::<usize>();
        let mut free = self.max_bytes.saturating_sub(other_bytes);
        let mut kept = Vec::new();
        for (digest, length, data) in &mut inline {
            if *length <= free || kept.is_empty() {
                free = free.saturating_sub(*length);
                kept.push(*digest);
            } else {
                **data = None;
            }
        }
        (kept.len() < inline.len()).then_some(kept)
    }

    /// Whether the replica caches at least half of the buckets it is sent. `sent` is the number of buckets in the last piece, and
    /// `missing` the number of buckets that the replica lacks after it. If false, pieces do not help: the cache is too small or
    /// disabled.
    pub(super) fn are_cached(&mut self, sent: usize, missing: usize) -> bool {
        // The first piece has no earlier number to compare with.
        let before = self.missing_before.replace(missing);
        before.is_none_or(|before| missing + sent.div_ceil(2) <= before)
    }

    /// Adds advice to the error if the complete request (`size` bytes) was too large and pieces did not help.
    pub(super) fn with_advice(&self, mut failed: Failed, size: usize) -> Failed {
        if self.missing_before.is_some() && failed.fault == Fault::Size {
            failed.reason = format!(
                "{} (all buckets take {size} bytes in one message; the replica was sent them in pieces of {} bytes, and did not keep \
                 them: raise --bucket-cache-size of the service, or its --max-message-size to more than {size} bytes)",
                failed.reason, self.max_bytes
            );
        }
        failed
    }
}
