//! What earlier plans found out, to be used again as far as it still holds.
//!
//! Nothing here is trusted by age or by name: each finding lies beside the digests of everything that it was derived from, and
//! is used only where these are equal. So a plan with a memory, whatever it remembers, is the plan without one; it only costs
//! what has changed. Of the workload itself digests are all that is kept: a template may have megabytes.

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
    },
};

/// What plans for one workload found out.
#[derive(Debug, Default)]
pub struct Memory {
    /// The pods of the last snapshot, by name and by uid.
    pub(crate) identities: Option<Identities>,
    constraints: Option<Digest>,
    view: Option<Digest>,
    buckets: Vec<Known>,
    tally: Tally,
}

/// How much of plans was remembered, in buckets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Buckets whose nodes were not evaluated.
    pub fits_recalled: u64,
    /// Buckets whose nodes were evaluated.
    pub fits_made: u64,
    /// Buckets that were not walked.
    pub summaries_recalled: u64,
    /// Buckets that were walked.
    pub summaries_made: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.fits_recalled += other.fits_recalled;
        self.fits_made += other.fits_made;
        self.summaries_recalled += other.summaries_recalled;
        self.summaries_made += other.summaries_made;
    }
}

/// What decides which nodes a workload may run on.
fn constraints(snapshot: &Snapshot) -> Digest {
    digest((
        &snapshot.daemon_set.scheduling,
        snapshot.options.toleration_comparison_operators,
    ))
}

/// What else a summary depends on.
fn view(snapshot: &Snapshot, resolution: &Resolution<'_>) -> Digest {
    let ds = &snapshot.daemon_set;
    digest((
        (&ds.name, &ds.uid, ds.deleting, &ds.selector),
        &resolution.current_hash,
        manifest::template_generation(ds),
        ds.min_ready_seconds,
    ))
}

/// A digest that only what is equal has: what values write into a hasher tells them apart, and nobody finds two texts of one
/// SHA-256.
fn digest(value: impl Hash) -> Digest {
    let mut written = Written(Sha256::new());
    value.hash(&mut written);
    written.0.finalize().into()
}

/// Takes in what is written into a hasher.
struct Written(Sha256);

impl Hasher for Written {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Nobody asks: 64 bits are not enough to trust.
    fn finish(&self) -> u64 {
        0
    }
}

/// What is known of one bucket.
#[derive(Debug, Default)]
struct Known {
    fits: Option<Remembered<Digest, Box<[Fit]>>>,
    summary: Option<Remembered<[Digest; 2], BucketSummary>>,
}

/// A finding, and the digests of what it was found in; without these it is found anew each time.
#[derive(Debug)]
struct Remembered<K, T> {
    of: Option<K>,
    finding: T,
}

impl Memory {
    /// The names and uids of the pods of a snapshot, brought up to date. An error names pods that share one.
    pub fn identify(&mut self, buckets: &[Bucket]) -> Result<(), Vec<crate::core::identities::Twice>> {
        let identities = self.identities.get_or_insert_default();
        if identities.take_up(buckets).is_ok() {
            return Ok(());
        }
        // Which of two is the second depends on what was known before; told is what anybody would find.
        let mut fresh = Identities::default();
        let result = fresh.take_up(buckets);
        self.identities = Some(fresh);
        result
    }

    /// Digests of the buckets with pods that the snapshot before had and the last one that was identified has not.
    #[must_use]
    pub fn superseded_pods(&self) -> &[Digest] {
        self.identities.as_ref().map_or(&[], Identities::superseded)
    }

    /// How much the plans since this was asked last could use.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fits = self.buckets.iter().flat_map(|known| &known.fits);
        let summaries = self.buckets.iter().flat_map(|known| &known.summary);
        let identities = self.identities.iter().map(Identities::bytes);
        [size_of_val(self), size_of_val(&*self.buckets)]
            .into_iter()
            .chain(fits.map(|fits| size_of_val(&*fits.finding)))
            .chain(summaries.map(|summary| summary.finding.bytes()))
            .chain(identities)
            .sum()
    }

    /// Forgets what does not hold for this workload as it is now.
    fn prepare(&mut self, snapshot: &Snapshot, resolution: &Resolution<'_>, detail: Detail) {
        let constraints = constraints(snapshot);
        self.buckets.resize_with(snapshot.buckets.len(), Known::default);
        let same_fits = self.constraints == Some(constraints);
        // Relabels and what is noted beyond need are of one plan.
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

    /// Hands each bucket with its summary to `use_it`.
    pub(crate) fn summaries<'a>(
        &mut self,
        snapshot: &'a Snapshot,
        (resolution, eligibility, classifier): (&Resolution<'_>, &Eligibility, &PodClassifier<'_>),
        detail: Detail,
        cancellation: Cancellation<'_>,
        mut use_it: impl FnMut(&'a Bucket, &BucketSummary),
    ) -> Option<()> {
        self.prepare(snapshot, resolution, detail);
        for (bucket, known) in snapshot.buckets.iter().zip(&mut self.buckets) {
            let Known { fits, summary } = known;
            let of = bucket
                .nodes
                .digest()
                .zip(bucket.pods.digest())
                .map(|(nodes, pods)| [*nodes, *pods]);
            if !is_of(summary.as_ref(), of.as_ref())
                || summary
                    .as_ref()
                    .is_some_and(|known| !known.finding.holds(classifier))
            {
                let fits = known_fits(fits, bucket, eligibility, cancellation, &mut self.tally)?;
                let ds = &snapshot.daemon_set;
                let finding = BucketSummary::of(bucket, fits, ds, classifier, detail, cancellation)?;
                *summary = Some(Remembered { of, finding });
                self.tally.summaries_made += 1;
            } else {
                self.tally.summaries_recalled += 1;
            }
            if let Some(summary) = summary {
                use_it(bucket, &summary.finding);
            }
        }
        Some(())
    }
}

fn is_of<K: PartialEq, T>(known: Option<&Remembered<K, T>>, of: Option<&K>) -> bool {
    of.is_some() && known.is_some_and(|known| known.of.as_ref() == of)
}

fn known_fits<'k>(
    known: &'k mut Option<Remembered<Digest, Box<[Fit]>>>,
    bucket: &Bucket,
    eligibility: &Eligibility,
    cancellation: Cancellation<'_>,
    tally: &mut Tally,
) -> Option<&'k [Fit]> {
    let of = bucket.nodes.digest().copied();
    if is_of(known.as_ref(), of.as_ref()) {
        tally.fits_recalled += 1;
    } else {
        let nodes = bucket.nodes.iter().enumerate();
        let finding = nodes
            .map(|(index, node)| {
                cancellation.tick(index)?;
                Some(eligibility.evaluate(node))
            })
            .collect::<Option<_>>()?;
        *known = Some(Remembered { of, finding });
        tally.fits_made += 1;
    }
    known.as_ref().map(|known| &*known.finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let tally = |[fits_recalled, fits_made, summaries_recalled, summaries_made]: [u64; 4]| Tally {
            fits_recalled,
            fits_made,
            summaries_recalled,
            summaries_made,
        };
        let mut sum = tally([1, 2, 3, 4]);
        sum += tally([10, 20, 30, 40]);
        assert_eq!(sum, tally([11, 22, 33, 44]));
    }
}
