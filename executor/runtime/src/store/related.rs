//! Counts of pods that the plans of some kinds depend on, besides the pods of the workload.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use nodewise_projection::{
    Workload,
    buckets::{EncodedPod, PodBuckets, SharedFields},
};
use nodewise_proto::v1;

use super::Store;

/// Of more workloads with one controller the selectors are not compared with each pod: the caches are locked meanwhile.
const MOST_SELECTORS: usize = 100;

/// The fields of a Pod message that say where the pod runs, and whether it runs.
#[derive(Clone, PartialEq, prost::Message)]
struct Place {
    #[prost(string, tag = "5")]
    node_name: String,
    #[prost(enumeration = "v1::PodPhase", tag = "7")]
    phase: i32,
    #[prost(message, optional, tag = "11")]
    deletion_time: Option<nodewise_proto::Timestamp>,
}

impl Place {
    fn of(pod: &EncodedPod) -> Self {
        pod.decode_own()
    }

    fn is_live(&self) -> bool {
        self.deletion_time.is_none()
            && !matches!(self.phase(), v1::PodPhase::Succeeded | v1::PodPhase::Failed)
    }
}

impl Store {
    /// The number of related pods on each node, ordered by the node's name: live pods of the namespace that the
    /// selector of any workload matches which has the same controller as this one, and is of its kind. Empty if the workload has
    /// no controller, or if it does not have more live pods than it should have: only a plan that deletes pods reads them.
    ///
    /// Upstream also counts pods that are controlled by kinds that are not cached here. Such a pod would have to match the
    /// selector of a workload that does not control it. Of more than [`MOST_SELECTORS`] workloads only the pods that they control
    /// are counted.
    pub fn related_pods(&mut self, workload: &Workload) -> Vec<v1::NodePodCount> {
        if workload.controller.is_none() || !self.has_too_many_pods(workload) {
            return Vec::new();
        }
        let Some(namespace) = self.namespaces.get(&workload.key.namespace) else {
            return Vec::new();
        };
        let siblings: Vec<_> = self.siblings(workload).collect();
        let uids: HashSet<&str> = siblings.iter().map(|other| &*other.uid).collect();
        let selectors: Vec<_> = siblings.iter().map(|other| &other.selector).collect();
        let is_selected = |pod: &EncodedPod, part: &SharedFields| {
            if selectors.len() > MOST_SELECTORS {
                return pod.owner().is_some_and(|owner| uids.contains(owner));
            }
            let labels = part.labels();
            let mut selectors = selectors.iter();
            selectors.any(|selector| pod.has_labels_of(selector) && selector.selects(&labels))
        };
        // Most pods share their labels with others.
        let mut known: HashMap<*const SharedFields, bool> = HashMap::new();
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for pod in namespace.pods.iter() {
            let part = pod.shared();
            let is_related = *known
                .entry(Arc::as_ptr(part))
                .or_insert_with(|| is_selected(pod, part));
            let place = is_related.then(|| Place::of(pod)).filter(Place::is_live);
            if let Some(place) = place {
                *counts.entry(place.node_name).or_default() += 1;
            }
        }
        let counts = counts.into_iter();
        counts
            .map(|(node_name, pods)| v1::NodePodCount { node_name, pods })
            .collect()
    }

    /// Whether there are more live pods than the workload should have, including the orphans that it may adopt.
    fn has_too_many_pods(&mut self, workload: &Workload) -> bool {
        let Some(wanted) = workload.replicas else {
            return false;
        };
        let wanted = usize::try_from(wanted).unwrap_or(0);
        let Some(namespace) = self.namespaces.get_mut(&workload.key.namespace) else {
            return false;
        };
        let (_, owned, orphans) = namespace.pods.sets(workload, &self.layout);
        let sets = || [owned.as_deref(), orphans.as_deref()].into_iter().flatten();
        let all: usize = sets().map(PodBuckets::len).sum();
        // Usually there are none too many, and no pod has to be decoded.
        all > wanted
            && sets()
                .flat_map(PodBuckets::iter)
                .filter(|pod| Place::of(pod).is_live())
                .count()
                > wanted
    }
}
