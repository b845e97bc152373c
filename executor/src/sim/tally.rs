//! What the cluster itself counts, from the pods as they are and not from anyone's plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::State;
use crate::{
    actuator::ObjectKey,
    event::{Key, Resource},
};

/// What is true of a DaemonSet at one moment, and what was seen of it since the counts were reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Pods of the DaemonSet, those being deleted included.
    pub pods: usize,
    /// Of these, being deleted.
    pub deleting: usize,
    /// Nodes with a ready pod that is not being deleted.
    pub available: usize,
    /// Of these, nodes whose ready pod has the containers of the present template.
    pub updated: usize,
    /// Most nodes that were without a ready pod at once.
    pub max_unavailable: usize,
    /// Most nodes that had a second pod at once, those being deleted and finished ones not counted.
    pub max_surging: usize,
    /// Pods created.
    pub created: u64,
    /// Pods whose deletion was asked for.
    pub deleted: u64,
    /// Pods that were created on a node that had all the pods that the strategy allows. Never reset.
    pub duplicates: u64,
}

/// Counts kept up to date with every change of a pod.
#[derive(Debug, Default)]
pub(super) struct Tally {
    nodes: BTreeSet<String>,
    /// By the uid of the DaemonSet.
    daemon_sets: HashMap<String, Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// By node and pod name: whether the pod is ready and not being deleted.
    pods: BTreeMap<String, BTreeMap<String, Standing>>,
    /// Nodes of the cluster with at least one available pod.
    available: usize,
    max_unavailable: usize,
    /// Nodes with more than one live pod.
    surging: usize,
    max_surging: usize,
    created: u64,
    deleted: u64,
    duplicates: u64,
    /// Whether a node may have two pods during a rollout.
    surges: bool,
}

/// How a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Available,
    Starting,
    Deleting,
    /// Succeeded or failed.
    Finished,
}

impl Standing {
    fn of(pod: &Value) -> Self {
        let ready = super::kubelet::is_ready(pod);
        match (
            pod["metadata"]["deletionTimestamp"].is_string(),
            pod["status"]["phase"].as_str(),
        ) {
            (_, Some("Failed" | "Succeeded")) => Self::Finished,
            (true, _) => Self::Deleting,
            (false, _) if ready => Self::Available,
            (false, _) => Self::Starting,
        }
    }
}

impl Tally {
    pub(super) fn add_node(&mut self, name: &str) {
        self.nodes.insert(name.to_owned());
        self.recount();
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.recount();
    }

    pub(super) fn reset(&mut self) {
        let nodes = self.nodes.len();
        for counts in self.daemon_sets.values_mut() {
            (counts.created, counts.deleted) = (0, 0);
            counts.max_unavailable = nodes - counts.available;
            counts.max_surging = counts.surging;
        }
    }

    fn recount(&mut self) {
        for counts in self.daemon_sets.values_mut() {
            counts.available = self
                .nodes
                .iter()
                .filter(|node| is_available(counts.pods.get(*node)))
                .count();
            counts.max_unavailable = counts.max_unavailable.max(self.nodes.len() - counts.available);
        }
    }

    /// A pod's new state; `None` when it is gone.
    pub(super) fn pod_changed(&mut self, owner: &str, node: &str, name: &str, pod: Option<&Value>) {
        let counts = self.daemon_sets.entry(owner.to_owned()).or_default();
        let before = is_available(counts.pods.get(node));
        let surged = is_surging(counts.pods.get(node));
        let pods = counts.pods.entry(node.to_owned()).or_default();
        match pod {
            Some(pod) => _ = pods.insert(name.to_owned(), Standing::of(pod)),
            None => _ = pods.remove(name),
        }
        let after = is_available(Some(pods));
        counts.surging = counts.surging + usize::from(is_surging(Some(pods))) - usize::from(surged);
        counts.max_surging = counts.max_surging.max(counts.surging);
        if pods.is_empty() {
            counts.pods.remove(node);
        }
        if self.nodes.contains(node) {
            counts.available = counts.available + usize::from(after) - usize::from(before);
        }
        counts.max_unavailable = counts.max_unavailable.max(self.nodes.len() - counts.available);
    }

    /// Counts a pod that is about to be created. With surge a node may have two pods besides those on their way out;
    /// without it one, and the former must be gone.
    pub(super) fn creating(&mut self, owner: &str, node: &str) {
        let counts = self.daemon_sets.entry(owner.to_owned()).or_default();
        counts.created += 1;
        let present = counts
            .pods
            .get(node)
            .into_iter()
            .flatten()
            .filter(|(_, standing)| match standing {
                Standing::Available | Standing::Starting => true,
                Standing::Deleting => !counts.surges,
                Standing::Finished => false,
            });
        if present.count() > usize::from(counts.surges) {
            counts.duplicates += 1;
        }
    }

    pub(super) fn deleting(&mut self, owner: &str) {
        self.daemon_sets.entry(owner.to_owned()).or_default().deleted += 1;
    }
}

fn is_available(pods: Option<&BTreeMap<String, Standing>>) -> bool {
    pods.is_some_and(|pods| pods.values().any(|standing| *standing == Standing::Available))
}

fn is_surging(pods: Option<&BTreeMap<String, Standing>>) -> bool {
    let is_live = |standing: &&Standing| matches!(standing, Standing::Available | Standing::Starting);
    pods.is_some_and(|pods| pods.values().filter(is_live).count() > 1)
}

impl State {
    /// Takes note of a DaemonSet's strategy.
    pub(super) fn retally(&mut self, key: &Key) {
        let key = ObjectKey::new(Resource::DaemonSets, &*key.namespace, &*key.name);
        let Some(object) = self.objects.get(&key) else {
            return;
        };
        let Some(uid) = object["metadata"]["uid"].as_str() else {
            return;
        };
        let strategy = &object["spec"]["updateStrategy"];
        let surge = &strategy["rollingUpdate"]["maxSurge"];
        let surges = strategy["type"] == "RollingUpdate"
            && (surge.as_u64().is_some_and(|surge| surge > 0)
                || surge
                    .as_str()
                    .is_some_and(|surge| surge.trim_end_matches('%').parse().is_ok_and(|n: u32| n > 0)));
        self.tally.daemon_sets.entry(uid.to_owned()).or_default().surges = surges;
        self.tally.recount();
    }

    pub(super) fn picture(&self, key: &Key) -> Picture {
        let key = ObjectKey::new(Resource::DaemonSets, &*key.namespace, &*key.name);
        let Some(object) = self.objects.get(&key) else {
            return Picture::default();
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let Some(counts) = self.tally.daemon_sets.get(uid) else {
            return Picture::default();
        };
        let standings = || counts.pods.values().flat_map(BTreeMap::values);
        Picture {
            nodes: self.tally.nodes.len(),
            pods: standings().count(),
            deleting: standings()
                .filter(|standing| **standing == Standing::Deleting)
                .count(),
            available: counts.available,
            updated: self.updated_nodes(
                &key.namespace,
                counts,
                &object["spec"]["template"]["spec"]["containers"],
            ),
            max_unavailable: counts.max_unavailable,
            max_surging: counts.max_surging,
            created: counts.created,
            deleted: counts.deleted,
            duplicates: counts.duplicates,
        }
    }

    fn updated_nodes(&self, namespace: &str, counts: &Counts, containers: &Value) -> usize {
        let is_updated = |name: &str| {
            let pod = self.objects.get(&ObjectKey::new(Resource::Pods, namespace, name));
            pod.is_some_and(|pod| pod["spec"]["containers"] == *containers)
        };
        self.tally
            .nodes
            .iter()
            .filter_map(|node| counts.pods.get(node))
            .filter(|pods| {
                pods.iter()
                    .any(|(name, standing)| *standing == Standing::Available && is_updated(name))
            })
            .count()
    }
}
