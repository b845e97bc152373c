//! What a case has before its pods and revisions: the DaemonSet, the versions of its template, and the nodes.

use super::clock::Clock;
use super::daemon_set::Set;
use super::node::{self, Health, Node};
use super::rng::CaseRng;
use super::scenario::Scenario;
use super::template;
use super::version::{self, Version};

/// A cluster without pods and revisions.
pub(super) struct Setup {
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
}

impl Setup {
    pub(super) fn draw(rng: &mut CaseRng) -> Self {
        let clock = Clock::draw(rng);
        let scenario = Scenario::draw(rng);
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
        Self {
            clock,
            scenario,
            health,
            echo,
            plain,
            versions: version::draw(rng, &set, scenario, echo, present),
            set,
            nodes,
            lost,
        }
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
}
