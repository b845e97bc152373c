//! Buckets that are sent in several calls, because one message with all that a replica lacks would be too large.
//!
//! A replica keeps the buckets that came inline also when it lacks others of the same request. So a piece has some of the missing
//! buckets inline, and the others by digest alone. The replica says what it still lacks, and the next piece brings more of it.

use crate::fault::{Failed, Fault};
use crate::question::Question;
use crate::service::Digest;

/// The pieces of one attempt.
pub(super) struct Pieces {
    /// Bytes of a piece.
    most: usize,
    /// How many buckets the replica lacked after the last piece.
    left: Option<usize>,
}

impl Pieces {
    pub(super) fn new(most: usize) -> Self {
        Self { most, left: None }
    }

    /// Leaves as many buckets inline as fit into a piece, and at least one. Answers with these, or with `None` when the request fits
    /// as it is. Only buckets that have a digest can wait.
    pub(super) fn cut(&self, request: &mut impl Question) -> Option<Vec<Digest>> {
        let size = request.encoded_len();
        if size <= self.most {
            return None;
        }
        let snapshot = request.snapshot_mut()?;
        let mut inline: Vec<_> = (snapshot.node_buckets.iter_mut())
            .chain(&mut snapshot.pod_buckets)
            .filter_map(|bucket| {
                let digest = Digest::try_from(&*bucket.digest).ok()?;
                let length = bucket.data.as_ref()?.len();
                Some((digest, length, &mut bucket.data))
            })
            .collect();
        let besides = size - inline.iter().map(|(_, length, _)| length).sum::<usize>();
        let mut room = self.most.saturating_sub(besides);
        let mut brought = Vec::new();
        for (digest, length, data) in &mut inline {
            if *length <= room || brought.is_empty() {
                room = room.saturating_sub(*length);
                brought.push(*digest);
            } else {
                **data = None;
            }
        }
        (brought.len() < inline.len()).then_some(brought)
    }

    /// After a piece with so many buckets the replica lacks so many. Whether it keeps at least half of what it is sent: else its
    /// cache is too small, or it keeps nothing of a request that lacks buckets.
    pub(super) fn are_kept(&mut self, brought: usize, missing: usize) -> bool {
        // The first piece says nothing: what it brought is not among what was missing then.
        let before = self.left.replace(missing);
        before.is_none_or(|before| missing + brought.div_ceil(2) <= before)
    }

    /// Says what to do when a request of so many bytes, with all buckets, is too large, and pieces did not help.
    pub(super) fn explain(&self, mut failed: Failed, size: usize) -> Failed {
        if self.left.is_some() && failed.fault == Fault::Size {
            failed.reason = format!(
                "{} (all buckets take {size} bytes in one message; the replica was sent them in pieces of {} bytes, and did not keep \
                 them: raise --bucket-cache-size of the service, or its --max-message-size to more than {size} bytes)",
                failed.reason, self.most
            );
        }
        failed
    }
}
