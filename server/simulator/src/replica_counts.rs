//! Counts the pods of Deployments, independently of any plan.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::{
    objects::Objects,
    pod::{self, PodState},
    resource::{ObjectKey, Resource},
    workload_counts::WorkloadCounts,
};

/// Counts that are updated with every change of a pod that a ReplicaSet controls.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplicaCounter {
    /// By the uid of a ReplicaSet: the uid of its Deployment.
    deployment_of: HashMap<String, String>,
    /// By the uid of a Deployment.
    deployments: HashMap<String, Counts>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    /// By pod name. The names of the ReplicaSets' pods differ.
    pods: BTreeMap<String, PodState>,
    /// spec.replicas.
    wanted: usize,
    /// spec.replicas of each of its ReplicaSets, by their uid.
    sizes: BTreeMap<String, usize>,
    max_unavailable: usize,
    max_surging: usize,
    created: u64,
    deleted: u64,
}

impl Counts {
    fn count(&self, is_counted: impl Fn(PodState) -> bool) -> usize {
        self.pods.values().filter(|state| is_counted(**state)).count()
    }

    fn available(&self) -> usize {
        self.count(|state| state == PodState::Available)
    }

    fn unavailable(&self) -> usize {
        self.wanted.saturating_sub(self.available())
    }

    /// How many replicas the ReplicaSets have together beyond spec.replicas. This is what maxSurge limits (P-31): the controller of
    /// ReplicaSets may create a pod of the new one before it has deleted the pod of another one that already has a smaller size.
    fn surging(&self) -> usize {
        self.sizes.values().sum::<usize>().saturating_sub(self.wanted)
    }

    fn note_maxima(&mut self) {
        self.max_unavailable = self.max_unavailable.max(self.unavailable());
        self.max_surging = self.max_surging.max(self.surging());
    }
}

impl ReplicaCounter {
    /// Learns which Deployment a ReplicaSet belongs to, and its size.
    pub(crate) fn read_set(&mut self, set: &Value) {
        let (Some(uid), Some(owner)) = (set["metadata"]["uid"].as_str(), pod::owner_uid(set)) else {
            return;
        };
        self.deployment_of.insert(uid.to_owned(), owner.to_owned());
        let counts = self.deployments.entry(owner.to_owned()).or_default();
        counts.sizes.insert(uid.to_owned(), replicas(set));
        counts.note_maxima();
    }

    /// Forgets the size of a ReplicaSet that is gone.
    pub(crate) fn set_removed(&mut self, set: &Value) {
        let uid = set["metadata"]["uid"].as_str().unwrap_or_default();
        if let Some(counts) = self.counts_of(uid) {
            counts.sizes.remove(uid);
        }
    }

    /// Reads spec.replicas of a Deployment again.
    pub(crate) fn read_replicas(&mut self, deployment: &Value) {
        let Some(uid) = deployment["metadata"]["uid"].as_str() else {
            return;
        };
        let counts = self.deployments.entry(uid.to_owned()).or_default();
        counts.wanted = replicas(deployment);
        counts.note_maxima();
    }

    fn counts_of(&mut self, set_uid: &str) -> Option<&mut Counts> {
        let deployment = self.deployment_of.get(set_uid)?;
        Some(self.deployments.entry(deployment.clone()).or_default())
    }

    /// Updates the counts for a pod. Returns false if no ReplicaSet of a Deployment controls it.
    pub(crate) fn pod_changed(&mut self, name: &str, pod: &Value, present: bool) -> bool {
        let Some(counts) = pod::owner_uid(pod).and_then(|owner| self.counts_of(owner)) else {
            return false;
        };
        if present {
            counts.pods.insert(name.to_owned(), PodState::of(pod));
        } else {
            counts.pods.remove(name);
        }
        counts.note_maxima();
        true
    }

    /// Counts a pod that is about to be created. Returns false if no ReplicaSet of a Deployment controls it.
    pub(crate) fn creating(&mut self, owner: &str) -> bool {
        let counts = self.counts_of(owner);
        counts.map(|counts| counts.created += 1).is_some()
    }

    /// Counts a pod that is about to be deleted. Returns false if no ReplicaSet of a Deployment controls it.
    pub(crate) fn deleting(&mut self, owner: &str) -> bool {
        let counts = self.counts_of(owner);
        counts.map(|counts| counts.deleted += 1).is_some()
    }

    pub(crate) fn reset(&mut self) {
        for counts in self.deployments.values_mut() {
            (counts.created, counts.deleted) = (0, 0);
            (counts.max_unavailable, counts.max_surging) = (counts.unavailable(), counts.surging());
        }
    }

    /// The counts of a Deployment; `None` if nothing was counted for it.
    pub(crate) fn of(&self, deployment: &Value, objects: &Objects) -> Option<WorkloadCounts> {
        let metadata = &deployment["metadata"];
        let counts = self.deployments.get(metadata["uid"].as_str()?)?;
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        let containers = &deployment["spec"]["template"]["spec"]["containers"];
        let is_updated = |(name, state): &(&String, &PodState)| {
            let pod = objects.get(&ObjectKey::new(Resource::Pods, namespace, *name));
            **state == PodState::Available && pod.is_some_and(|pod| pod["spec"]["containers"] == *containers)
        };
        Some(WorkloadCounts {
            nodes: counts.wanted,
            pods: counts.pods.len(),
            deleting: counts.count(|state| state == PodState::Deleting),
            available: counts.available(),
            updated: counts.pods.iter().filter(is_updated).count(),
            max_unavailable: counts.max_unavailable,
            max_surging: counts.max_surging,
            created: counts.created,
            deleted: counts.deleted,
            duplicates: 0,
        })
    }
}

fn replicas(object: &Value) -> usize {
    let replicas = object["spec"]["replicas"].as_u64().unwrap_or_default();
    usize::try_from(replicas).unwrap_or(usize::MAX)
}
