//! The cluster of a case during generation: its setup, pods and revisions.

use super::pod::{self, Pod};
use super::revision::{Revision, Revisions};
use super::rng::CaseRng;
use super::setup::Setup;

/// A cluster during generation.
pub(super) struct Cluster {
    pub(super) setup: Setup,
    pub(super) pods: Vec<Pod>,
    pub(super) revisions: Vec<Revision>,
    /// Revisions that only the API has, not the cache.
    pub(super) hidden: Vec<Revision>,
    /// Whether the name of the next revision is taken.
    pub(super) collides: bool,
}

impl Cluster {
    /// A cluster that has no pods yet.
    pub(super) fn new(setup: Setup, revisions: Revisions) -> Self {
        Self {
            setup,
            pods: Vec::new(),
            revisions: revisions.cached,
            hidden: revisions.hidden,
            collides: revisions.collides,
        }
    }

    /// One more pod of this version, running on this node.
    pub(super) fn pod(&self, rng: &mut CaseRng, version: usize, node: &str) -> Pod {
        Pod::draw(rng, &self.setup, version, node, self.pods.len())
    }

    /// The name for one more pod.
    pub(super) fn pod_name(&self, rng: &mut CaseRng) -> String {
        pod::name(rng, &self.setup, self.pods.len())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::case::Case;
    use crate::generate::census::{Situation, current, is_owned};

    fn pods_per_revision(case: &Case) -> usize {
        let hash =
            |pod: &serde_json::Value| pod["metadata"]["labels"]["controller-revision-hash"].to_string();
        let hashes: std::collections::BTreeSet<_> = case.pods.iter().map(hash).collect();
        hashes.len()
    }

    pub(in crate::generate) const SITUATIONS: &[Situation] = &[
        ("a fresh cluster", |case| {
            case.pods.is_empty() && case.revisions.is_empty() && !case.nodes.is_empty()
        }),
        ("a settled cluster", |case| {
            current(case).count() == 1
                && case.pods.len() == case.nodes.len()
                && case.nodes.len() > 2
                && pods_per_revision(case) == 1
                && case.pods.iter().all(|pod| is_owned(case, pod))
        }),
        ("a rollout", |case| {
            current(case).count() == 1 && pods_per_revision(case) == 2
        }),
        ("pods of many revisions", |case| pods_per_revision(case) > 3),
        ("a change that no revision holds", |case| {
            current(case).count() == 0 && case.pods.len() > 2
        }),
        ("a rollback", |case| {
            let number = |revision: &crate::case::Revision| revision.object["revision"].as_i64();
            let highest = case.revisions.iter().filter_map(number).max();
            current(case).any(|revision| number(revision) < highest)
        }),
        ("no echo", |case| !case.echo),
    ];

    #[test]
    fn without_echo_at_most_one_revision_is_current() {
        for seed in 0..800 {
            let case = crate::generate::case(seed);
            assert!(case.echo || current(&case).count() <= 1, "seed {seed}");
        }
    }
}
