//! A cache of intermediate results, from plan to plan of one workload.
//!
//! Each result is stored with the digests of all its inputs, and is used only if the digests are equal. So a plan with a cache
//! equals the plan without one; only the changed buckets are computed. Of the workload itself only digests are stored, since a
//! template may have megabytes.

use std::{cell::LazyCell, mem::size_of_val};

use crate::{
    core::{
        cancellation::Cancellation,
        identities::DuplicateIdentity,
        plan_cache::{Cached, PodIndex, digest, has_key},
        snapshot::{Bucket, Digest, NodeView, Snapshot},
    },
    daemonset::{
        bucket_summary::{BucketSummary, Detail},
        eligibility::{Eligibility, Fit, Fits},
        manifest,
        pod_classifier::PodClassifier,
        revisions::Resolution,
        workload::DaemonSet,
    },
    rollout::selection::{StageSet, Stages},
};

pub use crate::core::plan_cache::CacheCounts;

/// The cache for one workload.
#[derive(Debug, Default)]
pub struct PlanCache {
    /// The index of the last snapshot's pods.
    pub(crate) identities: PodIndex,
    constraints: Option<Digest>,
    view: Option<Digest>,
    stages: Option<Digest>,
    buckets: Vec<CachedBucket>,
    superseded_nodes: Vec<Digest>,
    counts: CacheCounts,
}

/// The digest of the inputs of eligibility, apart from the nodes.
fn constraints(snapshot: &Snapshot<DaemonSet>) -> Digest {
    digest((
        &snapshot.workload.scheduling,
        snapshot.options.toleration_comparison_operators,
    ))
}

/// The digest of the other inputs of a summary, apart from nodes, pods and time.
fn view(
    snapshot: &Snapshot<DaemonSet>,
    resolution: &Resolution<'_>,
    classifier: &PodClassifier<'_>,
    detail: Detail,
) -> Digest {
    let ds = &snapshot.workload;
    digest((
        detail,
        (&ds.name, &ds.uid, ds.deleting, &ds.selector),
        (&resolution.current_hash, classifier.back_to()),
        manifest::template_generation(ds),
        ds.min_ready_seconds,
    ))
}

/// The cached results of one bucket.
#[derive(Debug, Default)]
struct CachedBucket {
    fits: Option<Cached<Digest, Box<[Fit]>>>,
    stages: Option<Cached<Digest, Box<[StageSet]>>>,
    summary: Option<Cached<[Digest; 2], BucketSummary>>,
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

    /// Digests of the non-empty node lists that the last plan replaced. Empty after a call, also if the next plan ends early.
    #[must_use]
    pub fn take_superseded_nodes(&mut self) -> Vec<Digest> {
        std::mem::take(&mut self.superseded_nodes)
    }

    /// The counts since the last call.
    pub fn take_counts(&mut self) -> CacheCounts {
        std::mem::take(&mut self.counts)
    }

    /// Memory that the cache takes, in bytes (approximate).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fits = self.buckets.iter().flat_map(|known| &known.fits);
        let stages = self.buckets.iter().flat_map(|known| &known.stages);
        let summaries = self.buckets.iter().flat_map(|known| &known.summary);
        let lists = [size_of_val(&*self.buckets), size_of_val(&*self.superseded_nodes)];
        [size_of_val(self)]
            .into_iter()
            .chain(lists)
            .chain(fits.map(|fits| size_of_val(&*fits.result)))
            .chain(stages.map(|stages| size_of_val(&*stages.result)))
            .chain(summaries.map(|summary| summary.result.bytes()))
            .chain([self.identities.bytes()])
            .sum()
    }

    /// Drops the results that are not valid for the workload as it is now.
    fn drop_invalid(
        &mut self,
        snapshot: &Snapshot<DaemonSet>,
        (resolution, classifier): (&Resolution<'_>, &PodClassifier<'_>),
        detail: Detail,
        stages: Stages<'_>,
    ) {
        let constraints = constraints(snapshot);
        let stages = stages.has_selectors().then(|| digest(stages.selectors()));
        self.buckets
            .resize_with(snapshot.buckets.len(), CachedBucket::default);
        let same_fits = self.constraints == Some(constraints);
        // Summaries with relabels are not valid for other plans.
        let repeatable = resolution.relabelled.is_empty();
        let view = repeatable.then(|| view(snapshot, resolution, classifier, detail));
        let same_view = view.is_some() && self.view == view;
        for known in &mut self.buckets {
            if !same_fits {
                known.fits = None;
            }
            if self.stages != stages {
                known.stages = None;
            }
            if !(same_fits && same_view) {
                known.summary = None;
            }
        }
        (self.constraints, self.view, self.stages) = (Some(constraints), view, stages);
    }

    /// Calls `each` for each bucket with its summary, and with which of the stages select its nodes: nothing if no stage has a
    /// selector. `None` if cancelled.
    pub(crate) fn summaries<'a>(
        &mut self,
        snapshot: &'a Snapshot<DaemonSet>,
        (resolution, eligibility, classifier): (&Resolution<'_>, &Eligibility, &PodClassifier<'_>),
        (detail, policy): (Detail, Stages<'_>),
        cancellation: Cancellation<'_>,
        mut each: impl FnMut(&'a Bucket, &BucketSummary, &[StageSet]),
    ) -> Option<()> {
        self.drop_invalid(snapshot, (resolution, classifier), detail, policy);
        self.superseded_nodes.clear();
        // Neither is needed while the nodes stay the same.
        let mut evaluation = None;
        let keys = LazyCell::new(|| policy.keys());
        for (bucket, known) in snapshot.buckets.iter().zip(&mut self.buckets) {
            let CachedBucket {
                fits,
                stages,
                summary,
            } = known;
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
                let evaluation = (&mut evaluation, eligibility);
                let former = fits.as_ref().filter(|fits| !fits.result.is_empty());
                let former = former.and_then(|fits| fits.of);
                self.superseded_nodes
                    .extend(former.filter(|former| bucket.nodes.digest() != Some(former)));
                let fits = cached_fits(fits, bucket, evaluation, cancellation, &mut self.counts)?;
                let ds = &snapshot.workload;
                let result = BucketSummary::of(bucket, fits, ds, classifier, detail, cancellation)?;
                *summary = Some(Cached { of, result });
                self.counts.summaries_computed += 1;
            } else {
                self.counts.summaries_cached += 1;
            }
            let selected = if policy.has_selectors() {
                cached_stages(stages, bucket, policy, |key| keys.contains(key), cancellation)?
            } else {
                &[]
            };
            if let Some(summary) = summary {
                each(bucket, &summary.result, selected);
            }
        }
        Some(())
    }
}

fn cached_stages<'k>(
    known: &'k mut Option<Cached<Digest, Box<[StageSet]>>>,
    bucket: &Bucket,
    policy: Stages<'_>,
    reads: impl Fn(&str) -> bool,
    cancellation: Cancellation<'_>,
) -> Option<&'k [StageSet]> {
    let of = bucket.nodes.digest().copied();
    if !has_key(known.as_ref(), of.as_ref()) {
        let select = |node: NodeView<'_>| {
            cancellation.check()?;
            Some(policy.select(node.labels()))
        };
        let result = bucket.nodes.by_labels(reads, select)?;
        *known = Some(Cached { of, result });
    }
    known.as_ref().map(|known| &*known.result)
}

fn cached_fits<'k, 'e, 'n>(
    known: &'k mut Option<Cached<Digest, Box<[Fit]>>>,
    bucket: &'n Bucket,
    (evaluation, eligibility): (&mut Option<Fits<'e, 'n>>, &'e Eligibility),
    cancellation: Cancellation<'_>,
    counts: &mut CacheCounts,
) -> Option<&'k [Fit]> {
    let of = bucket.nodes.digest().copied();
    if has_key(known.as_ref(), of.as_ref()) {
        counts.fits_cached += 1;
    } else {
        let evaluation = evaluation.get_or_insert_with(|| Fits::new(eligibility));
        let result = evaluation.of(&bucket.nodes, cancellation)?;
        *known = Some(Cached { of, result });
        counts.fits_computed += 1;
    }
    known.as_ref().map(|known| &*known.result)
}
