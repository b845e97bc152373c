//! The dice: everything that is left to chance is drawn through here, so that a seed says it all.

use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};

/// The letters of which Kubernetes makes hashes and the ends of generated names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The dice of one case.
pub(super) struct Odds(StdRng);

impl Odds {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// True in so many of a hundred cases.
    pub(super) fn in_hundred(&mut self, times: u32) -> bool {
        self.0.random_ratio(times, 100)
    }

    /// True in so many of a thousand cases.
    pub(super) fn in_thousand(&mut self, times: u32) -> bool {
        self.0.random_ratio(times, 1000)
    }

    pub(super) fn between(&mut self, range: RangeInclusive<i64>) -> i64 {
        self.0.random_range(range)
    }

    /// A length or an index: less than `end`, which is not 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    /// One of `all`, which is not empty.
    pub(super) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        self.maybe(all).expect("there is something to pick from").clone()
    }

    /// One of `all`, if there is any.
    pub(super) fn maybe<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.choose(&mut self.0)
    }

    /// One of `all`, each as often as its weight says.
    pub(super) fn weighted<T: Copy>(&mut self, all: &[(u32, T)]) -> T {
        let drawn = all.choose_weighted(&mut self.0, |(weight, _)| *weight);
        drawn.expect("the weights are a table of this folder").1
    }

    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        all.shuffle(&mut self.0);
    }

    /// A uid, as an apiserver makes them.
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

    /// A resource version.
    pub(super) fn version(&mut self) -> String {
        self.between(1..=4_000_000_000).to_string()
    }

    /// So many letters of those that Kubernetes generates names of.
    pub(super) fn letters(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(self.pick(LETTERS))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_it_all() {
        let draw = |seed| {
            let mut odds = Odds::new(seed);
            (odds.uid(), odds.letters(10), odds.between(0..=1_000_000))
        };
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn a_uid_has_the_form_of_a_uid() {
        let uid = Odds::new(1).uid();
        let lengths: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uid}");
    }
}
