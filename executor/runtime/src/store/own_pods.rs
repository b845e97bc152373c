//! The pods that a workload controls.

use std::collections::{BTreeSet, HashMap, HashSet};

use nodewise_projection::{
    Workload,
    buckets::{EncodedPod, PodBuckets},
};
use nodewise_proto::{bucket, v1};

use super::{Namespace, Pods, Store};
use crate::expectations::CachedPods;

/// Whether a pod has finished.
#[must_use]
pub fn is_finished(pod: &v1::Pod) -> bool {
    matches!(pod.phase(), v1::PodPhase::Succeeded | v1::PodPhase::Failed)
}

/// Whether a pod is neither finished nor being deleted.
#[must_use]
pub fn is_live(pod: &v1::Pod) -> bool {
    pod.deletion_time.is_none() && !is_finished(pod)
}

/// Live pods of a workload: those of one node, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivePods {
    /// How many there are.
    pub count: usize,
    /// The number of the last cache change of any of them.
    pub changed: u64,
}

impl LivePods {
    fn add(&mut self, pod: &EncodedPod) {
        self.count += 1;
        self.changed = self.changed.max(pod.changed());
    }
}

impl Store {
    /// The encoded pods that name the workload's uid as that of their controller, of the workload's kind.
    fn owned(&self, workload: &Workload) -> Option<&PodBuckets> {
        let namespace = self.namespaces.get(&workload.key.namespace)?;
        let placement = self.layout.placement(workload.key.kind);
        namespace.pods.owned_in(placement, &workload.uid)
    }

    /// The pods that a workload controls, by kind, name and uid, in any state.
    pub fn controlled_pods<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = v1::Pod> + 'a {
        let pods = self.owned(workload).into_iter().flat_map(PodBuckets::iter);
        pods.map(EncodedPod::pod)
            .filter(|pod| is_controlled_by(pod, workload))
    }

    /// The live pods that a workload controls and selects, if its pods in any state are more than `most`.
    #[must_use]
    pub fn live_pods_beyond(&self, workload: &Workload, most: usize) -> Option<LivePods> {
        let owned = self.owned(workload)?;
        // Most workloads have room, and then no pod needs to be decoded.
        owned.iter().nth(most)?;
        let mut live = LivePods::default();
        for stored in owned.iter() {
            if is_live_of(&stored.pod(), workload) {
                live.add(stored);
            }
        }
        Some(live)
    }

    /// For each of these nodes that exists: the live pods of a workload that are on it or meant for it. These are pods
    /// that the workload controls and selects and that are neither finished nor being deleted.
    #[must_use]
    pub fn live_pods<'n>(&self, workload: &Workload, nodes: &HashSet<&'n str>) -> HashMap<&'n str, LivePods> {
        let there = nodes.iter().copied().filter(|node| self.has_node(node));
        let mut live: HashMap<&str, LivePods> = there.map(|node| (node, LivePods::default())).collect();
        let Some(owned) = self.owned(workload) else {
            return live;
        };
        let buckets: BTreeSet<_> = (live.keys())
            .map(|node| bucket::of(node, owned.count()))
            .collect();
        for stored in buckets.iter().flat_map(|bucket| owned.members(*bucket)) {
            let Some(on_node) = live.get_mut(stored.target_node()) else {
                continue;
            };
            if is_live_of(&stored.pod(), workload) {
                on_node.add(stored);
            }
        }
        live
    }

    /// The cached pods of a workload, as the expectations need them.
    #[must_use]
    pub fn own_pods<'a>(&'a self, namespace: &str, uid: &'a str) -> impl CachedPods + use<'a> {
        OwnPods {
            namespace: self.namespaces.get(namespace),
            uid,
        }
    }
}

fn is_controlled_by(pod: &v1::Pod, workload: &Workload) -> bool {
    let key = &workload.key;
    let is_it = |controller: &v1::ControllerReference| {
        controller.kind == key.kind && *controller.name == *key.name && *controller.uid == *workload.uid
    };
    pod.controller.as_ref().is_some_and(is_it)
}

fn is_live_of(pod: &v1::Pod, workload: &Workload) -> bool {
    is_controlled_by(pod, workload) && workload.selector.selects(&pod.labels) && is_live(pod)
}

/// See [`Store::own_pods`].
struct OwnPods<'a> {
    namespace: Option<&'a Namespace>,
    uid: &'a str,
}

impl CachedPods for OwnPods<'_> {
    fn exists(&self, pod_name: &str) -> bool {
        self.namespace
            .and_then(|namespace| namespace.pods.get(pod_name))
            .is_some_and(|pod| pod.owner() == Some(self.uid))
    }

    fn deleting(&self) -> HashMap<String, bool> {
        let pods = self.namespace.map(|namespace| &namespace.pods);
        let owned = pods.into_iter().flat_map(|pods| pods.owned(self.uid));
        let orphans = pods.and_then(Pods::orphans);
        owned
            .chain(orphans.into_iter().flat_map(PodBuckets::iter))
            .map(EncodedPod::decode_own::<v1::Pod>)
            .map(|pod| (pod.uid, pod.deletion_time.is_some()))
            .collect()
    }
}
