//! Counts the pods of the simulated cluster, independently of any plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nodewise_projection::Key;
use nodewise_runtime::{Resource, actuator::ObjectKey};
use serde_json::Value;

use super::State;
use crate::daemon_set::DAEMON_SETS;

/// The current state of a DaemonSet, and the counts since the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Pods of the DaemonSet, including those that are being deleted.
    pub pods: usize,
    /// Pods of the DaemonSet that are being deleted.
    pub deleting: usize,
    /// Nodes with a ready pod that is not being deleted.
    pub available: usize,
    /// Available nodes whose ready pod has the containers of the current template.
    pub updated: usize,
    /// Maximum number of nodes that were without a ready pod at once.
    pub max_unavailable: usize,
    /// Maximum number of nodes that had a second pod at once; finished pods and pods that are being deleted do not
    /// count.
    pub max_surging: usize,
    /// Pods created.
    pub created: u64,
    /// Pods that were deleted, including graceful deletions under way.
    pub deleted: u64,
    /// Pods that were created on a node that already had as many pods as the strategy allows. Never reset.
    pub duplicates: u64,
}

/// Counts that are updated with every change of a pod.
#[derive(Debug, Default)]
pub(super) struct Tally {
    nodes: BTreeSet<String>,
    /// By the uid of the DaemonSet.
    daemon_sets: HashMap<String, Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// By node and pod name: the state of the pod.
    pods: BTreeMap<String, BTreeMap<String, PodState>>,
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

/// The state of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PodState {
    Available,
    Starting,
    Deleting,
    /// Succeeded or failed.
    Finished,
}

impl PodState {
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

    /// Updates the counts for a pod's new state; `None` if the pod is gone.
    pub(super) fn pod_changed(&mut self, owner: &str, node: &str, name: &str, pod: Option<&Value>) {
        let counts = self.daemon_sets.entry(owner.to_owned()).or_default();
        let before = is_available(counts.pods.get(node));
        let surged = is_surging(counts.pods.get(node));
        let pods = counts.pods.entry(node.to_owned()).or_default();
        match pod {
            Some(pod) => _ = pods.insert(name.to_owned(), PodState::of(pod)),
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

    /// Counts a pod that is about to be created. With surge, a node may have two pods besides those that are being
    /// deleted; without surge one, and the former pod must be gone.
    pub(super) fn creating(&mut self, owner: &str, node: &str) {
        let counts = self.daemon_sets.entry(owner.to_owned()).or_default();
        counts.created += 1;
        let present = counts
            .pods
            .get(node)
            .into_iter()
            .flatten()
            .filter(|(_, state)| match state {
                PodState::Available | PodState::Starting => true,
                PodState::Deleting => !counts.surges,
                PodState::Finished => false,
            });
        if present.count() > usize::from(counts.surges) {
            counts.duplicates += 1;
        }
    }

    pub(super) fn deleting(&mut self, owner: &str) {
        self.daemon_sets.entry(owner.to_owned()).or_default().deleted += 1;
    }
}

fn is_available(pods: Option<&BTreeMap<String, PodState>>) -> bool {
    pods.is_some_and(|pods| pods.values().any(|state| *state == PodState::Available))
}

fn is_surging(pods: Option<&BTreeMap<String, PodState>>) -> bool {
    let is_live = |state: &&PodState| matches!(state, PodState::Available | PodState::Starting);
    pods.is_some_and(|pods| pods.values().filter(is_live).count() > 1)
}

impl State {
    /// Reads a DaemonSet's strategy again.
    pub(super) fn retally(&mut self, key: &Key) {
        let key = ObjectKey::new(DAEMON_SETS, &*key.namespace, &*key.name);
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

    pub(super) fn pod_counts(&self, key: &Key) -> PodCounts {
        let key = ObjectKey::new(DAEMON_SETS, &*key.namespace, &*key.name);
        let Some(object) = self.objects.get(&key) else {
            return PodCounts::default();
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let Some(counts) = self.tally.daemon_sets.get(uid) else {
            return PodCounts::default();
        };
        let states = || counts.pods.values().flat_map(BTreeMap::values);
        PodCounts {
            nodes: self.tally.nodes.len(),
            pods: states().count(),
            deleting: states().filter(|state| **state == PodState::Deleting).count(),
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
            let pod = self.objects.get(&ObjectKey::new(Resource::PODS, namespace, name));
            pod.is_some_and(|pod| pod["spec"]["containers"] == *containers)
        };
        self.tally
            .nodes
            .iter()
            .filter_map(|node| counts.pods.get(node))
            .filter(|pods| {
                pods.iter()
                    .any(|(name, state)| *state == PodState::Available && is_updated(name))
            })
            .count()
    }
}
