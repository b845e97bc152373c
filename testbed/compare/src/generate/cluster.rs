//! The cluster of a case while it is drawn: a story, the versions of the template, and drafts of every object.

use super::clock::Clock;
use super::daemon_set::Set;
use super::node::{self, Health, Node};
use super::odds::Odds;
use super::pod::Pod;
use super::revision::{self, Revision, Version};
use super::{oddity, rollout, template};

/// What happened to the cluster of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Story {
    /// The DaemonSet is new.
    Fresh,
    /// Every node has its pod.
    Settled,
    /// The template was changed a moment ago.
    Changed,
    /// Some pods are of the new template.
    Rollout,
    /// The template was changed back.
    RolledBack,
    /// Pods end.
    Failing,
    /// Everything at once.
    Chaos,
}

/// A cluster while it is drawn.
pub(super) struct Cluster {
    pub(super) clock: Clock,
    pub(super) story: Story,
    pub(super) set: Set,
    /// What is the matter with its nodes.
    pub(super) health: Health,
    /// Patches of pods show at once.
    pub(super) echo: bool,
    /// No template restriction and no taint keeps pods off some node.
    pub(super) plain: bool,
    /// The templates, the present one last.
    pub(super) versions: Vec<Version>,
    pub(super) nodes: Vec<Node>,
    /// Names of nodes that are gone.
    pub(super) lost: Vec<String>,
    pub(super) pods: Vec<Pod>,
    pub(super) revisions: Vec<Revision>,
    /// Revisions that only the API has.
    pub(super) hidden: Vec<Revision>,
    /// The name of the next revision is taken.
    pub(super) collides: bool,
}

impl Cluster {
    pub(super) fn draw(odds: &mut Odds) -> Self {
        let clock = Clock::draw(odds);
        let story = odds.weighted(&[
            (8, Story::Fresh),
            (20, Story::Settled),
            (15, Story::Changed),
            (32, Story::Rollout),
            (7, Story::RolledBack),
            (10, Story::Failing),
            (8, Story::Chaos),
        ]);
        let unobserved = matches!(story, Story::Fresh | Story::Changed) && odds.in_hundred(60);
        let set = Set::draw(odds, &clock, unobserved);
        let names = node::names(odds);
        let numeric = odds.in_hundred(6);
        let present = template::draw(odds, &set.selector.labels, &names, numeric);
        let health = match odds.below(10) {
            _ if numeric => Health::Numeric,
            0..=5 => Health::Fine,
            _ => Health::Mixed,
        };
        let nodes = node::draw(odds, &names, health, &clock);
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
        let echo = odds.in_hundred(85);
        let mut cluster = Self {
            clock,
            story,
            health,
            echo,
            plain,
            versions: revision::versions(odds, &set, story, echo, present),
            set,
            nodes,
            lost,
            pods: Vec::new(),
            revisions: Vec::new(),
            hidden: Vec::new(),
            collides: false,
        };
        revision::draw(odds, &mut cluster);
        rollout::populate(odds, &mut cluster);
        oddity::sprinkle(odds, &mut cluster);
        odds.shuffle(&mut cluster.pods);
        odds.shuffle(&mut cluster.revisions);
        cluster
    }

    /// The number of the present version.
    pub(super) fn present(&self) -> usize {
        self.versions.len() - 1
    }

    /// The number of a former version; of the present one when there is no former.
    pub(super) fn former(&self, odds: &mut Odds) -> usize {
        match self.present() {
            0 => 0,
            // The latest ones are met most.
            present if odds.in_hundred(80) => present - 1,
            present => odds.below(present),
        }
    }

    /// A node, if there is one.
    pub(super) fn node(&self, odds: &mut Odds) -> Option<String> {
        odds.maybe(&self.nodes).map(|node| node.name.clone())
    }

    /// A node that exists or existed.
    pub(super) fn place(&self, odds: &mut Odds) -> String {
        match self.node(odds) {
            Some(name) if odds.in_hundred(75) => name,
            _ => odds.pick(&self.lost),
        }
    }

    /// The name for one more pod.
    pub(super) fn pod_name(&self, odds: &mut Odds) -> String {
        let number = self.pods.len();
        let prefix: String = self.set.names.name.chars().take(57).collect();
        format!("{prefix}-{}{number}", odds.letters(4))
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
