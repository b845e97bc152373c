//! What the caches of all kinds share: the index of pods, counts of their use, and digests of the inputs of a result.

use std::{
    hash::{Hash, Hasher},
    ops::AddAssign,
};

use sha2::{Digest as _, Sha256};

use crate::core::{
    identities::{DuplicateIdentity, Identities},
    snapshot::{Bucket, Digest},
};

/// How often a cache was used, in buckets.
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

/// The index of the last snapshot's pods.
#[derive(Debug, Default)]
pub(crate) struct PodIndex(Option<Identities>);

impl PodIndex {
    /// Updates the index for the buckets of a snapshot. The error names the pods that have the name or the uid of another pod.
    pub(crate) fn update(&mut self, buckets: &[Bucket]) -> Result<(), Vec<DuplicateIdentity>> {
        let identities = self.0.get_or_insert_default();
        if identities.update(buckets).is_ok() {
            return Ok(());
        }
        // Which pod of a pair is reported depends on the cached index. Build the index anew, so that the error does not depend on
        // it.
        let mut fresh = Identities::default();
        let result = fresh.update(buckets);
        self.0 = Some(fresh);
        result
    }

    /// The index; `None` before the first update.
    pub(crate) fn get(&self) -> Option<&Identities> {
        self.0.as_ref()
    }

    /// Digests of the non-empty pod lists that the last update replaced.
    pub(crate) fn superseded(&self) -> &[Digest] {
        self.0.as_ref().map_or(&[], Identities::superseded)
    }

    /// Memory that the index takes, in bytes (approximate).
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Identities::bytes)
    }
}

/// A result with the digests of its input. Without digests it is computed for each plan.
#[derive(Debug)]
pub(crate) struct Cached<K, T> {
    /// The digests.
    pub(crate) of: Option<K>,
    /// The result.
    pub(crate) result: T,
}

/// Whether a cached result is of this input.
pub(crate) fn has_key<K: PartialEq, T>(known: Option<&Cached<K, T>>, of: Option<&K>) -> bool {
    of.is_some() && known.is_some_and(|known| known.of.as_ref() == of)
}

/// The SHA-256 of what the value writes into a hasher. Different values write different bytes.
pub(crate) fn digest(value: impl Hash) -> Digest {
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
