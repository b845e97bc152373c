//! Counts the pods on nodes, independently of any plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::{
    objects::Objects,
    pod::{self, PodState},
    replica_counts::ReplicaCounter,
    resource::{ObjectKey, Resource},
    workload_counts::WorkloadCounts,
};

/// Counts that are updated with every change of a pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter {
    nodes: BTreeSet<String>,
    /// By the uid of the DaemonSet.
    daemon_sets: HashMap<String, Counts>,
    pub(crate) replicas: ReplicaCounter,
}

#[derive(Clone, Debug, Default)]
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

impl Counter {
    pub(crate) fn add_node(&mut self, name: &str) {
        self.nodes.insert(name.to_owned());
        self.recount();
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.recount();
    }

    pub(crate) fn reset(&mut self) {
        self.replicas.reset();
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

    /// Updates the counts for a pod that was stored or, if it is not `present`, removed. Pods without a controller do not count.
    pub(crate) fn pod_changed(&mut self, name: &str, pod: &Value, present: bool) {
        if self.replicas.pod_changed(name, pod, present) {
            return;
        }
        let Some(owner) = pod::owner_uid(pod) else {
            return;
        };
        let node = pod::node(pod).unwrap_or_default();
        let counts = self.daemon_sets.entry(owner.to_owned()).or_default();
        let before = is_available(counts.pods.get(node));
        let surged = is_surging(counts.pods.get(node));
        let pods = counts.pods.entry(node.to_owned()).or_default();
        if present {
            pods.insert(name.to_owned(), PodState::of(pod));
        } else {
            pods.remove(name);
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
    pub(crate) fn creating(&mut self, pod: &Value) {
        let Some(owner) = pod::owner_uid(pod) else {
            return;
        };
        if self.replicas.creating(owner) {
            return;
        }
        let node = pod::node(pod).unwrap_or_default();
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

    pub(crate) fn deleting(&mut self, owner: &str) {
        if self.replicas.deleting(owner) {
            return;
        }
        self.daemon_sets.entry(owner.to_owned()).or_default().deleted += 1;
    }

    /// Reads a DaemonSet's strategy again.
    pub(crate) fn read_strategy(&mut self, daemon_set: &Value) {
        let Some(uid) = daemon_set["metadata"]["uid"].as_str() else {
            return;
        };
        let strategy = &daemon_set["spec"]["updateStrategy"];
        let surge = &strategy["rollingUpdate"]["maxSurge"];
        let surges = strategy["type"] == "RollingUpdate"
            && (surge.as_u64().is_some_and(|surge| surge > 0)
                || surge
                    .as_str()
                    .is_some_and(|surge| surge.trim_end_matches('%').parse().is_ok_and(|n: u32| n > 0)));
        self.daemon_sets.entry(uid.to_owned()).or_default().surges = surges;
        self.recount();
    }

    /// The counts of a DaemonSet or a Deployment; `None` if nothing was counted for it.
    pub(crate) fn of(&self, workload: &Value, objects: &Objects) -> Option<WorkloadCounts> {
        let of_daemon_set = self.of_daemon_set(workload, objects);
        of_daemon_set.or_else(|| self.replicas.of(workload, objects))
    }

    fn of_daemon_set(&self, daemon_set: &Value, objects: &Objects) -> Option<WorkloadCounts> {
        let metadata = &daemon_set["metadata"];
        let counts = self.daemon_sets.get(metadata["uid"].as_str()?)?;
        let states = || counts.pods.values().flat_map(BTreeMap::values);
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let containers = &daemon_set["spec"]["template"]["spec"]["containers"];
        let is_updated = |name: &str| {
            let pod = objects.get(&ObjectKey::new(Resource::Pods, namespace, name));
            pod.is_some_and(|pod| pod["spec"]["containers"] == *containers)
        };
        let has_updated = |pods: &&BTreeMap<String, PodState>| {
            pods.iter()
                .any(|(name, state)| *state == PodState::Available && is_updated(name))
        };
        let on_nodes = self.nodes.iter().filter_map(|node| counts.pods.get(node));
        Some(WorkloadCounts {
            nodes: self.nodes.len(),
            pods: states().count(),
            deleting: states().filter(|state| **state == PodState::Deleting).count(),
            available: counts.available,
            updated: on_nodes.filter(has_updated).count(),
            max_unavailable: counts.max_unavailable,
            max_surging: counts.max_surging,
            created: counts.created,
            deleted: counts.deleted,
            duplicates: counts.duplicates,
        })
    }
}

fn is_available(pods: Option<&BTreeMap<String, PodState>>) -> bool {
    pods.is_some_and(|pods| pods.values().any(|state| *state == PodState::Available))
}

fn is_surging(pods: Option<&BTreeMap<String, PodState>>) -> bool {
    let is_live = |state: &&PodState| matches!(state, PodState::Available | PodState::Starting);
    pods.is_some_and(|pods| pods.values().filter(is_live).count() > 1)
}
