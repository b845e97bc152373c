//! A cache of intermediate results, from plan to plan of one workload.
//!
//! Each result is stored with the digests of all its inputs, and is used only if the digests are equal. So a plan with a cache
//! equals the plan without one; only the changed buckets are computed. Of the workload itself only digests are stored, since a
//! template may have megabytes.

use std::{
    hash::{Hash, Hasher},
    mem::size_of_val,
    ops::AddAssign,
};

use sha2::{Digest as _, Sha256};

use crate::{
    core::{
        cancellation::Cancellation,
        identities::Identities,
        snapshot::{Bucket, Digest, Snapshot},
    },
    daemonset::{
        bucket_summary::{BucketSummary, Detail},
        eligibility::{Eligibility, Fit},
        manifest,
        pod_classifier::PodClassifier,
        revisions::Resolution,
        workload::DaemonSet,
    },
};

/// The cache for one workload.
#[derive(Debug, Default)]
pub struct PlanCache {
    /// The index of the last snapshot's pods.
    pub(crate) identities: Option<Identities>,
    constraints: Option<Digest>,
    view: Option<Digest>,
    buckets: Vec<CachedBucket>,
    counts: CacheCounts,
}

/// How often the cache was used, in buckets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Buckets whose eligibility results came from the cache.
    pub fits_cached: u64,
    /// Buckets whose eligibility results were computed.
    pub fits_computed: u64,
    /// Buckets whose summary came from the cache.
    pub summaries_cached: u64,
    /// Buckets whose summary was computed.
    pub summaries_computed: u64,
}

impl AddAssign for CacheCounts {
    fn add_assign(&mut self, other: Self) {
        self.fits_cached += other.fits_cached;
        self.fits_computed += other.fits_computed;
        self.summaries_cached += other.summaries_cached;
        self.summaries_computed += other.summaries_computed;
    }
}

/// The digest of the inputs of eligibility, apart from the nodes.
fn constraints(snapshot: &Snapshot<DaemonSet>) -> Digest {
    digest((
        &snapshot.workload.scheduling,
        snapshot.options.toleration_comparison_operators,
    ))
}

/// The digest of the other inputs of a summary, apart from nodes, pods and time.
fn view(snapshot: &Snapshot<DaemonSet>, resolution: &Resolution<'_>) -> Digest {
    let ds = &snapshot.workload;
    digest((
        (&ds.name, &ds.uid, ds.deleting, &ds.selector),
        &resolution.current_hash,
        manifest::template_generation(ds),
        ds.min_ready_seconds,
    ))
}

/// The SHA-256 of what the value writes into a hasher. Different values write different bytes.
fn digest(value: impl Hash) -> Digest {
    let mut written = Sha256Hasher(Sha256::new());
    value.hash(&mut written);
    written.0.finalize().into()
}

/// A [`Hasher`] that feeds SHA-256.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Unused: the whole SHA-256 is taken, since 64 bits are too few.
    fn finish(&self) -> u64 {
        0
    }
}

/// The cached results of one bucket.
#[derive(Debug, Default)]
struct CachedBucket {
    fits: Option<Cached<Digest, Box<[Fit]>>>,
    summary: Option<Cached<[Digest; 2], BucketSummary>>,
}

/// A result with the digests of its input. Without digests it is computed for each plan.
#[derive(Debug)]
struct Cached<K, T> {
    of: Option<K>,
    result: T,
}

impl PlanCache {
    /// Updates the index of pods for the buckets of a snapshot.
    ///
    /// # Errors
    /// The pods that have the name or the uid of another pod.
    pub fn identify(
        &mut self,
        buckets: &[Bucket],
    ) -> Result<(), Vec<crate::core::identities::DuplicateIdentity>> {
        let identities = self.identities.get_or_insert_default();
        if identities.update(buckets).is_ok() {
            return Ok(());
        }
        // Which pod of a pair is reported depends on the cached index. Build the index anew, so that the error does not depend on
        // it.
        let mut fresh = Identities::default();
        let result = fresh.update(buckets);
        self.identities = Some(fresh);
        result
    }

    /// Digests of the non-empty pod lists that the last [`Self::identify`] replaced.
    #[must_use]
    pub fn superseded_pods(&self) -> &[Digest] {
        self.identities.as_ref().map_or(&[], Identities::superseded)
    }

    /// The counts since the last call.
    pub fn take_counts(&mut self) -> CacheCounts {
        std::mem::take(&mut self.counts)
    }

    /// Memory that the cache takes, in bytes (approximate).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fits = self.buckets.iter().flat_map(|known| &known.fits);
        let summaries = self.buckets.iter().flat_map(|known| &known.summary);
        let identities = self.identities.iter().map(Identities::bytes);
        [size_of_val(self), size_of_val(&*self.buckets)]
            .into_iter()
            .chain(fits.map(|fits| size_of_val(&*fits.result)))
            .chain(summaries.map(|summary| summary.result.bytes()))
            .chain(identities)
            .sum()
    }

    /// Drops the results that are not valid for the workload as it is now.
    fn drop_invalid(&mut self, snapshot: &Snapshot<DaemonSet>, resolution: &Resolution<'_>, detail: Detail) {
        let constraints = constraints(snapshot);
        self.buckets
            .resize_with(snapshot.buckets.len(), CachedBucket::default);
        let same_fits = self.constraints == Some(constraints);
        // Summaries with relabels or with all nodes are not valid for other plans.
        let repeatable = resolution.relabelled.is_empty() && detail == Detail::Notable;
        let view = repeatable.then(|| view(snapshot, resolution));
        let same_view = view.is_some() && self.view == view;
        for known in &mut self.buckets {
            if !same_fits {
                known.fits = None;
            }
            if !(same_fits && same_view) {
                known.summary = None;
            }
        }
        (self.constraints, self.view) = (Some(constraints), view);
    }

    /// Calls `each` for each bucket with its summary. `None` if cancelled.
    pub(crate) fn summaries<'a>(
        &mut self,
        snapshot: &'a Snapshot<DaemonSet>,
        (resolution, eligibility, classifier): (&Resolution<'_>, &Eligibility, &PodClassifier<'_>),
        detail: Detail,
        cancellation: Cancellation<'_>,
        mut each: impl FnMut(&'a Bucket, &BucketSummary),
    ) -> Option<()> {
        self.drop_invalid(snapshot, resolution, detail);
        for (bucket, known) in snapshot.buckets.iter().zip(&mut self.buckets) {
            let CachedBucket { fits, summary } = known;
            let of = bucket
                .nodes
                .digest()
                .zip(bucket.pods.digest())
                .map(|(nodes, pods)| [*nodes, *pods]);
            if !has_key(summary.as_ref(), of.as_ref())
                || summary
                    .as_ref()
                    .is_some_and(|known| !known.result.is_valid(classifier))
            {
                let fits = cached_fits(fits, bucket, eligibility, cancellation, &mut self.counts)?;
                let ds = &snapshot.workload;
                let result = BucketSummary::of(bucket, fits, ds, classifier, detail, cancellation)?;
                *summary = Some(Cached { of, result });
                self.counts.summaries_computed += 1;
            } else {
                self.counts.summaries_cached += 1;
            }
            if let Some(summary) = summary {
                each(bucket, &summary.result);
            }
        }
        Some(())
    }
}

fn has_key<K: PartialEq, T>(known: Option<&Cached<K, T>>, of: Option<&K>) -> bool {
    of.is_some() && known.is_some_and(|known| known.of.as_ref() == of)
}

fn cached_fits<'k>(
    known: &'k mut Option<Cached<Digest, Box<[Fit]>>>,
    bucket: &Bucket,
    eligibility: &Eligibility,
    cancellation: Cancellation<'_>,
    counts: &mut CacheCounts,
) -> Option<&'k [Fit]> {
    let of = bucket.nodes.digest().copied();
    if has_key(known.as_ref(), of.as_ref()) {
        counts.fits_cached += 1;
    } else {
        let nodes = bucket.nodes.iter().enumerate();
        let result = nodes
            .map(|(index, node)| {
                cancellation.tick(index)?;
                Some(eligibility.evaluate(node))
            })
            .collect::<Option<_>>()?;
        *known = Some(Cached { of, result });
        counts.fits_computed += 1;
    }
    known.as_ref().map(|known| &*known.result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up() {
        let counts =
            |[fits_cached, fits_computed, summaries_cached, summaries_computed]: [u64; 4]| CacheCounts {
                fits_cached,
                fits_computed,
                summaries_cached,
                summaries_computed,
            };
        let mut sum = counts([1, 2, 3, 4]);
        sum += counts([10, 20, 30, 40]);
        assert_eq!(sum, counts([11, 22, 33, 44]));
    }
}
