//! Random cases: a story that clusters live through (a rollout, a settled cluster, a fresh one …), told coherently, with a
//! few independent oddities in it. Clusters drawn without a story hardly ever reach the deeper rules of a rollout.
//!
//! Each module draws one kind of object and lists, in its test, the situations that must occur.

use crate::case::Case;

#[cfg(test)]
mod census;
mod clock;
mod cluster;
#[cfg(test)]
mod covered;
mod daemon_set;
mod fault;
mod node;
mod oddity;
mod odds;
mod owner;
mod placement;
mod pod;
mod revision;
mod rollout;
mod selector;
mod serialization;
mod state;
mod status;
mod strategy;
mod template;

/// The case of a seed: always the same for the same seed, and another one for every other.
#[must_use]
pub fn case(seed: u64) -> Case {
    let mut odds = odds::Odds::new(seed);
    let cluster = cluster::Cluster::draw(&mut odds);
    state::case(&mut odds, cluster, seed)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_seed_says_it_all() {
        for seed in 0..100 {
            assert_eq!(case(seed), case(seed));
            assert_eq!(case(seed).seed, seed);
        }
    }

    #[test]
    fn seeds_differ() {
        let texts: HashSet<_> = (0..500)
            .map(|seed| {
                let nameless = Case {
                    seed: 0,
                    ..case(seed)
                };
                serde_json::to_string(&nameless).expect("a case is JSON")
            })
            .collect();
        assert_eq!(texts.len(), 500);
    }

    #[test]
    fn names_and_uids_are_unique() {
        for seed in 0..800 {
            let case = case(seed);
            let revisions = case.revisions.iter().chain(&case.live.revisions);
            let revisions: Vec<_> = revisions.map(|revision| revision.object.clone()).collect();
            let mut uids = HashSet::new();
            for objects in [&case.daemon_sets, &case.nodes, &case.pods, &revisions] {
                let mut names = HashSet::new();
                for object in objects {
                    let metadata = &object["metadata"];
                    let name = metadata["name"].as_str().expect("a name");
                    assert!(!name.is_empty() && name.len() <= 253, "seed {seed}: {name}");
                    assert!(names.insert(name), "seed {seed}: {name} twice");
                    let uid = metadata["uid"].as_str().expect("a uid");
                    assert!(uids.insert(uid.to_owned()), "seed {seed}: {uid} twice");
                }
            }
        }
    }
}
