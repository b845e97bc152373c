//! The cluster of a case during generation: a scenario, the versions of the template, and all objects.

use super::clock::Clock;
use super::daemon_set::Set;
use super::node::{self, Health, Node};
use super::pod::Pod;
use super::revision::{self, Revision, Version};
use super::rng::CaseRng;
use super::{anomaly, rollout, template};

/// What recently happened in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scenario {
    /// The DaemonSet was just created.
    Fresh,
    /// Every node has its pod.
    Settled,
    /// The template was just changed.
    Changed,
    /// Some pods have the new template.
    Rollout,
    /// The template was changed back.
    RolledBack,
    /// Pods fail.
    Failing,
    /// Any mixture.
    Chaos,
}

/// A cluster during generation.
pub(super) struct Cluster {
    pub(super) clock: Clock,
    pub(super) scenario: Scenario,
    pub(super) set: Set,
    /// Which taints the nodes may have.
    pub(super) health: Health,
    /// Whether patched pods appear in the cache at once.
    pub(super) echo: bool,
    /// Whether neither the template nor a taint keeps pods away from any node.
    pub(super) plain: bool,
    /// The versions of the template. The present one is the last.
    pub(super) versions: Vec<Version>,
    pub(super) nodes: Vec<Node>,
    /// Names of deleted nodes.
    pub(super) lost: Vec<String>,
    pub(super) pods: Vec<Pod>,
    pub(super) revisions: Vec<Revision>,
    /// Revisions that only the API has, not the cache.
    pub(super) hidden: Vec<Revision>,
    /// Whether the name of the next revision is taken.
    pub(super) collides: bool,
}

impl Cluster {
    pub(super) fn draw(rng: &mut CaseRng) -> Self {
        let clock = Clock::draw(rng);
        let scenario = rng.weighted(&[
            (8, Scenario::Fresh),
            (20, Scenario::Settled),
            (15, Scenario::Changed),
            (32, Scenario::Rollout),
            (7, Scenario::RolledBack),
            (10, Scenario::Failing),
            (8, Scenario::Chaos),
        ]);
        let unobserved = matches!(scenario, Scenario::Fresh | Scenario::Changed) && rng.in_hundred(60);
        let set = Set::draw(rng, &clock, unobserved);
        let names = node::names(rng);
        let numeric = rng.in_hundred(6);
        let present = template::draw(rng, &set.selector.labels, &names, numeric);
        let health = match rng.below(10) {
            _ if numeric => Health::Numeric,
            0..=5 => Health::Fine,
            _ => Health::Mixed,
        };
        let nodes = node::draw(rng, &names, health, &clock);
        let spec = &present["spec"];
        let plain = nodes.iter().all(|node| node.plain)
            && ["nodeName", "nodeSelector", "affinity"]
                .iter()
                .all(|field| spec[*field].is_null());
        let lost = ["gone-0", "gone-1"].map(str::to_owned);
        let lost = if nodes.len() < 7 {
            lost.to_vec()
        } else {
            lost[..1].to_vec()
        };
        let echo = rng.in_hundred(85);
        let mut cluster = Self {
            clock,
            scenario,
            health,
            echo,
            plain,
            versions: revision::versions(rng, &set, scenario, echo, present),
            set,
            nodes,
            lost,
            pods: Vec::new(),
            revisions: Vec::new(),
            hidden: Vec::new(),
            collides: false,
        };
        revision::draw(rng, &mut cluster);
        rollout::populate(rng, &mut cluster);
        anomaly::add_anomalies(rng, &mut cluster);
        rng.shuffle(&mut cluster.pods);
        rng.shuffle(&mut cluster.revisions);
        cluster
    }

    /// The index of the present version.
    pub(super) fn present(&self) -> usize {
        self.versions.len() - 1
    }

    /// The index of a former version, or of the present one if there is no former version.
    pub(super) fn former(&self, rng: &mut CaseRng) -> usize {
        match self.present() {
            0 => 0,
            // Recent versions are more frequent.
            present if rng.in_hundred(80) => present - 1,
            present => rng.below(present),
        }
    }

    /// The name of a node, if there is one.
    pub(super) fn node(&self, rng: &mut CaseRng) -> Option<String> {
        rng.maybe(&self.nodes).map(|node| node.name.clone())
    }

    /// The name of an existing or deleted node.
    pub(super) fn any_node(&self, rng: &mut CaseRng) -> String {
        match self.node(rng) {
            Some(name) if rng.in_hundred(75) => name,
            _ => rng.pick(&self.lost),
        }
    }

    /// The name for one more pod.
    pub(super) fn pod_name(&self, rng: &mut CaseRng) -> String {
        let number = self.pods.len();
        let prefix: String = self.set.names.name.chars().take(57).collect();
        format!("{prefix}-{}{number}", rng.letters(4))
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
