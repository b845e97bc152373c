//! A cache of intermediate results, from plan to plan of one ReplicaSet.
//!
//! The summary of each bucket is stored with the digests of all its inputs, and is used only if the digests are equal. So a plan
//! with a cache equals the plan without one; only the changed buckets are computed.

use std::mem::size_of_val;

use crate::{
    core::{
        availability::Availability,
        cancellation::Cancellation,
        identities::DuplicateIdentity,
        plan_cache::{CacheCounts, Cached, PodIndex, digest, has_key},
        snapshot::{Bucket, Digest, Snapshot},
    },
    replicaset::{bucket_summary::BucketSummary, pod_names::PodNames, workload::ReplicaSet},
};

/// The cache for one ReplicaSet.
#[derive(Debug, Default)]
pub struct PlanCache {
    /// The index of the last snapshot's pods.
    pub(crate) identities: PodIndex,
    /// The digest of the inputs that all summaries have in common.
    inputs: Option<Digest>,
    buckets: Vec<Option<Cached<Digest, BucketSummary>>>,
    counts: CacheCounts,
}

/// The digest of the inputs of a summary, apart from pods and time.
fn inputs(rs: &ReplicaSet) -> Digest {
    digest((
        (&rs.name, &rs.uid, rs.deleting, &rs.selector),
        &rs.template_labels,
        rs.min_ready_seconds,
    ))
}

impl PlanCache {
    /// Updates the index of pods for the buckets of a snapshot.
    ///
    /// # Errors
    /// The pods that have the name or the uid of another pod.
    pub fn identify(&mut self, buckets: &[Bucket]) -> Result<(), Vec<DuplicateIdentity>> {
        self.identities.update(buckets)
    }

    /// Digests of the non-empty pod lists that the last [`Self::identify`] replaced.
    #[must_use]
    pub fn superseded_pods(&self) -> &[Digest] {
        self.identities.superseded()
    }

    /// The counts since the last call.
    pub fn take_counts(&mut self) -> CacheCounts {
        std::mem::take(&mut self.counts)
    }

    /// Memory that the cache takes, in bytes (approximate).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let summaries = self.buckets.iter().flatten();
        [
            size_of_val(self),
            size_of_val(&*self.buckets),
            self.identities.bytes(),
        ]
        .into_iter()
        .chain(summaries.map(|known| known.result.bytes()))
        .sum()
    }

    /// Calls `each` for each bucket with its summary. `None` if cancelled.
    pub(crate) fn summaries<'a>(
        &mut self,
        snapshot: &'a Snapshot<ReplicaSet>,
        cancellation: Cancellation<'_>,
        mut each: impl FnMut(&'a Bucket, &BucketSummary),
    ) -> Option<()> {
        let rs = &snapshot.workload;
        let inputs = Some(inputs(rs));
        if self.inputs != inputs {
            self.buckets.clear();
            self.inputs = inputs;
        }
        self.buckets.resize_with(snapshot.buckets.len(), || None);
        let availability = Availability::new(snapshot.now, rs.min_ready_seconds);
        for (bucket, known) in snapshot.buckets.iter().zip(&mut self.buckets) {
            let of = bucket.pods.digest().copied();
            let is_valid = has_key(known.as_ref(), of.as_ref())
                && known
                    .as_ref()
                    .is_some_and(|known| known.result.is_valid(availability));
            if is_valid {
                self.counts.summaries_cached += 1;
            } else {
                let result = BucketSummary::of(&bucket.pods, rs, availability, cancellation)?;
                *known = Some(Cached { of, result });
                self.counts.summaries_computed += 1;
            }
            if let Some(known) = known {
                each(bucket, &known.result);
            }
        }
        Some(())
    }

    /// The numbers in the names of all pods. [`Self::summaries`] must have been called for the same snapshot. `None` if cancelled.
    pub(crate) fn numbers(
        &mut self,
        snapshot: &Snapshot<ReplicaSet>,
        names: &PodNames,
        cancellation: Cancellation<'_>,
    ) -> Option<Vec<u32>> {
        let mut numbers = Vec::new();
        for (bucket, known) in snapshot.buckets.iter().zip(&mut self.buckets) {
            cancellation.check()?;
            if let Some(known) = known {
                numbers.extend_from_slice(known.result.numbers(&bucket.pods, names));
            }
        }
        Some(numbers)
    }
}
