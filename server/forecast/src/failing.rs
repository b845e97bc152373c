//! Chooses the pods that never become ready.

use std::collections::BTreeSet;

/// `ceil(share * count)` of the names, chosen by the seed.
pub(crate) fn choose(mut names: Vec<String>, share: f64, seed: u64) -> BTreeSet<String> {
    let count = number(names.len(), share);
    names.sort_by_cached_key(|name| (hash(seed, name), name.clone()));
    names.truncate(count);
    names.into_iter().collect()
}

/// `ceil(share * count)` of the numbers below `count`, chosen by the seed.
pub(crate) fn choose_numbers(count: usize, share: f64, seed: u64) -> BTreeSet<usize> {
    if share <= 0.0 {
        return BTreeSet::new();
    }
    let names = (0..count).map(|number| number.to_string()).collect();
    let chosen = choose(names, share, seed);
    chosen.iter().filter_map(|name| name.parse().ok()).collect()
}

/// The share of a count, rounded up. A share that is not a number is 0.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of nodes are far below 2^52, and the result is from 0 to the count"
)]
fn number(count: usize, share: f64) -> usize {
    // 7 % of 100 is a little more than 7 as a float.
    let exact = count as f64 * share.clamp(0.0, 1.0) - 1e-9;
    (exact.ceil().max(0.0) as usize).min(count)
}

/// FNV-1a over the seed and the name, then mixed as in `SplitMix64`.
fn hash(seed: u64, name: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes());
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_up() {
        for (count, share, expected) in [
            (0, 0.5, 0),
            (30, 0.0, 0),
            (30, 0.04, 2),
            (100, 0.07, 7),
            (1, 0.001, 1),
            (10, 1.0, 10),
            (10, 7.0, 10),
            (10, f64::NAN, 0),
        ] {
            assert_eq!(number(count, share), expected, "{share} of {count}");
        }
    }

    #[test]
    fn the_seed_chooses() {
        let names = || (0..100).map(|number| format!("node-{number}")).collect();
        let chosen = |seed| choose(names(), 0.1, seed);
        assert_eq!(chosen(1), chosen(1));
        assert_ne!(chosen(1), chosen(2));
        assert_eq!(chosen(1).len(), 10);
    }
}
