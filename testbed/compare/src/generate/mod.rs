//! Generates random cases: a scenario (a rollout, a settled cluster, a new DaemonSet …) with consistent objects, and a
//! few independent anomalies. Without scenarios, random clusters hardly ever reach the later steps of a rollout.
//!
//! Each module generates one kind of object. Its tests list the situations that must occur.

use crate::case::{Case, Kind};

mod anomaly;
#[cfg(test)]
mod census;
mod clock;
mod cluster;
#[cfg(test)]
mod covered;
mod daemon_set;
mod deployment;
mod fault;
mod node;
mod owner;
mod placement;
mod pod;
mod replicaset;
mod revision;
mod rng;
mod rollout;
mod scenario;
mod selector;
mod serialization;
mod setup;
mod state;
mod status;
mod strategy;
mod template;
mod version;
mod workload;

/// The case for a kind and a seed. The same kind and seed always give the same case.
#[must_use]
pub fn case_of(kind: Kind, seed: u64) -> Case {
    match kind {
        Kind::DaemonSet => case(seed),
        Kind::ReplicaSet => replicaset::case(seed),
        Kind::Deployment => deployment::case(seed),
    }
}

/// The case with a DaemonSet for a seed. The same seed always gives the same case, different seeds give different cases.
#[must_use]
pub fn case(seed: u64) -> Case {
    let mut rng = rng::CaseRng::new(seed);
    let setup = setup::Setup::draw(&mut rng);
    let revisions = revision::draw(&mut rng, &setup);
    let mut cluster = cluster::Cluster::new(setup, revisions);
    rollout::populate(&mut rng, &mut cluster);
    anomaly::add_anomalies(&mut rng, &mut cluster);
    rng.shuffle(&mut cluster.pods);
    rng.shuffle(&mut cluster.revisions);
    state::case(&mut rng, cluster, seed)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn seed_determines_everything() {
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
