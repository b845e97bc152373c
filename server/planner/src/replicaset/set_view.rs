//! The pods of a ReplicaSet in numbers: the sum of the summaries of all buckets.

use jiff::Timestamp;

use crate::{
    core::{
        cancellation::Cancellation,
        claims::Claim,
        pod_claims::{self, Claims},
        pod_findings::PodFindings,
        snapshot::{Bucket, PodView, Snapshot},
    },
    replicaset::{
        bucket_summary::{self, BucketSummary, Counts, Role},
        plan_cache::PlanCache,
        workload::ReplicaSet,
    },
};

/// The pods of a ReplicaSet in numbers, before the plan's creates and deletes.
#[derive(Debug, Default)]
pub(crate) struct SetView<'a> {
    /// The counts.
    pub(crate) counts: Counts,
    /// The pods that the plan adopts or releases.
    pub(crate) claims: Claims<'a>,
    /// The pod that becomes available next, and the time since which it is ready.
    pub(crate) next_available: Option<(Timestamp, PodView<'a>)>,
}

impl<'a> SetView<'a> {
    /// Reads a snapshot, and reuses the valid results of `cache`. `None` if cancelled.
    pub(crate) fn of(
        snapshot: &'a Snapshot<ReplicaSet>,
        cache: &mut PlanCache,
        cancellation: Cancellation<'_>,
    ) -> Option<Self> {
        let mut view = Self::default();
        cache.summaries(snapshot, cancellation, |bucket, summary| {
            view.add(bucket, summary);
        })?;
        view.claims.sort();
        Some(view)
    }

    fn add(&mut self, bucket: &'a Bucket, summary: &BucketSummary) {
        let pods = &bucket.pods;
        self.counts += summary.counts;
        let all = |indices: &[usize]| indices.iter().map(|index| pods.at(*index)).collect::<Vec<_>>();
        self.claims.adopted.extend(all(&summary.adopted));
        self.claims.released.extend(all(&summary.released));
        let next = summary
            .next_available
            .map(|(since, index)| (since, pods.at(index)));
        self.next_available = self
            .next_available
            .into_iter()
            .chain(next)
            .min_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.name().cmp(other.name())));
    }
}

/// The pods that the ReplicaSet owns after its claims, with their roles, in the order of the buckets. `None` if cancelled.
pub(crate) fn own_pods<'a>(
    snapshot: &'a Snapshot<ReplicaSet>,
    cancellation: Cancellation<'_>,
) -> Option<Vec<(PodView<'a>, Role)>> {
    let mut own = Vec::new();
    for bucket in &snapshot.buckets {
        cancellation.check()?;
        let mut findings = PodFindings::default();
        for (index, pod) in bucket.pods.iter().enumerate() {
            cancellation.tick(index)?;
            let claim = findings.find(pod, || pod_claims::claim(snapshot.workload.owner(), pod));
            if matches!(claim, Claim::Owned | Claim::Adopt) {
                own.push((pod, bucket_summary::role(pod, claim)));
            }
        }
    }
    Some(own)
}
