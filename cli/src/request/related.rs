//! The inputs that only plans for ReplicaSets and Deployments need. They are counted from other objects of the namespace.

use std::collections::BTreeMap;

use nodewise_projection::{Selector, Strategy, Workload};
use nodewise_proto::{
    v1::{NodePodCount, Pod},
    workload::REPLICA_SET,
};
use nodewise_runtime::store::{is_finished, is_live};

use crate::{
    input::{Cluster, Served},
    kind::Kind,
};

/// The number of related pods of a ReplicaSet on each node, in the order of the nodes' names: the live pods that the selector of a
/// ReplicaSet with the same controller matches. Empty if it has no controller.
pub(super) fn pods(cluster: &Cluster, set: &Served) -> Vec<NodePodCount> {
    if set.controller.is_none() {
        return Vec::new();
    }
    let siblings = cluster.workloads_in(Kind::ReplicaSet, &set.namespace);
    let selectors: Vec<Selector> = siblings
        .filter(|other| other.controller == set.controller)
        .filter_map(|other| Some(Workload::replica_set_from_text(other.json.get()).ok()?.selector))
        .collect();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for pod in cluster.pods_in(&set.namespace) {
        let pod = &pod.object;
        if is_live(pod) && selectors.iter().any(|selector| selector.matches(&pod.labels)) {
            *counts.entry(&pod.node_name).or_default() += 1;
        }
    }
    let counts = counts.into_iter();
    counts
        .map(|(node_name, pods)| NodePodCount {
            node_name: node_name.to_owned(),
            pods,
        })
        .collect()
}

/// Whether a Deployment has the strategy Recreate.
pub(super) fn recreates(deployment: &Served) -> bool {
    Workload::deployment_from_text(deployment.json.get())
        .is_ok_and(|deployment| deployment.strategy == Strategy::Recreate)
}

/// The number of pods that a ReplicaSet controls and that have not finished. Pods that are being deleted count.
pub(super) fn unfinished_pods(cluster: &Cluster, set: &Served) -> u32 {
    let is_owned = |pod: &&Pod| {
        let owner = pod.controller.as_ref();
        owner.is_some_and(|owner| owner.kind == REPLICA_SET && owner.name == set.name && owner.uid == set.uid)
    };
    let pods = cluster.pods_in(&set.namespace).iter().map(|pod| &pod.object);
    let unfinished = pods.filter(is_owned).filter(|pod| !is_finished(pod));
    unfinished.count().try_into().unwrap_or(u32::MAX)
}
