//! The random numbers of a case. All randomness comes from the seed.

use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

/// The characters of hashes and generated name suffixes in Kubernetes.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The random number generator of one case.
pub(super) struct CaseRng(StdRng);

impl CaseRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// True with this percentage.
    pub(super) fn in_hundred(&mut self, times: u32) -> bool {
        self.0.random_ratio(times, 100)
    }

    /// True with this probability in thousandths.
    pub(super) fn in_thousand(&mut self, times: u32) -> bool {
        self.0.random_ratio(times, 1000)
    }

    pub(super) fn between(&mut self, range: RangeInclusive<i64>) -> i64 {
        self.0.random_range(range)
    }

    /// A random number less than `end`, which must not be 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    /// A random item of `all`, which must not be empty.
    pub(super) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        self.maybe(all).expect("there is something to pick from").clone()
    }

    /// A random item of `all`, if there is any.
    pub(super) fn maybe<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.choose(&mut self.0)
    }

    /// A random item of `all`, by weight.
    pub(super) fn weighted<T: Copy>(&mut self, all: &[(u32, T)]) -> T {
        let drawn = all.choose_weighted(&mut self.0, |(weight, _)| *weight);
        drawn.expect("the weights are a table of this folder").1
    }

    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        all.shuffle(&mut self.0);
    }

    /// A random uid in the form of an apiserver.
    pub(super) fn uid(&mut self) -> String {
        let bits: u128 = self.0.random();
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-4{}-a{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..]
        )
    }

    /// A random resource version.
    pub(super) fn version(&mut self) -> String {
        self.between(1..=4_000_000_000).to_string()
    }

    /// A random string of the characters that Kubernetes uses for generated names.
    pub(super) fn letters(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(self.pick(LETTERS))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_everything() {
        let draw = |seed| {
            let mut rng = CaseRng::new(seed);
            (rng.uid(), rng.letters(10), rng.between(0..=1_000_000))
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn a_uid_has_the_form_of_a_uid() {
        let uid = CaseRng::new(1).uid();
        let lengths: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uid}");
    }
}
