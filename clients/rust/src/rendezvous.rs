//! Rendezvous hashing: assigns each workload to one replica. The assignment does not depend on the order of the addresses.

use sha2::{Digest as _, Sha256};

/// The weight of a replica for a workload. The replica with the lowest weight is asked first. So a removed replica moves only its
/// own workloads, and an added one takes an equal share from all others.
pub(super) fn weight(uid: &str, replica: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(uid)
        .chain_update([0])
        .chain_update(replica)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    const WORKLOADS: usize = 400;

    fn homes(replicas: &[String]) -> BTreeMap<String, String> {
        let home = |uid: String| {
            let home = replicas.iter().min_by_key(|replica| weight(&uid, replica));
            (uid, home.expect("a replica").clone())
        };
        (0..WORKLOADS).map(|index| home(format!("uid-{index}"))).collect()
    }

    fn moved(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> BTreeSet<String> {
        let differs = |uid: &&String| before[*uid] != after[*uid];
        before.keys().filter(differs).cloned().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn only_the_workloads_of_an_added_or_removed_replica_move(
            addresses in prop::collection::btree_set((any::<[u8; 4]>(), 1_u16..), 2..9),
            chosen in any::<prop::sample::Index>(),
            shift in any::<prop::sample::Index>(),
        ) {
            let all: Vec<String> = addresses
                .into_iter()
                .map(|(ip, port)| std::net::SocketAddr::from((ip, port)).to_string())
                .collect();
            let with = homes(&all);

            let mut turned = all.clone();
            turned.rotate_left(shift.index(all.len()));
            prop_assert_eq!(&homes(&turned), &with, "the order of the addresses means nothing");

            let mut fewer = all.clone();
            let gone = fewer.remove(chosen.index(all.len()));
            let without = homes(&fewer);
            let of_the_gone: BTreeSet<_> =
                with.iter().filter(|(_, home)| **home == gone).map(|(uid, _)| uid.clone()).collect();
            prop_assert_eq!(&moved(&with, &without), &of_the_gone);

            // With n replicas each has 400/n workloads on average (binomial distribution). Allow six standard deviations.
            #[allow(clippy::cast_precision_loss)]
            let (count, p) = (of_the_gone.len() as f64, 1.0 / all.len() as f64);
            let mean = 400.0 * p;
            let spread = 6.0 * (mean * (1.0 - p)).sqrt();
            prop_assert!((count - mean).abs() <= spread, "{count} of 400 among {}", all.len());
        }
    }
}
