//! The parts of the caches that are sent for one workload.

use std::sync::Arc;

use nodewise_proto::bucket::Receiver;

use super::{Store, revisions::concerns};
use crate::Resource;
use nodewise_projection::{
    Revision, Workload,
    buckets::{RenderedBuckets, render},
};

impl Store {
    /// The revisions that a workload controls, and those without a controller that its selector matches (D-4), ordered
    /// by name.
    pub fn revisions<'a>(&'a self, workload: &'a Workload) -> impl Iterator<Item = &'a Arc<Revision>> {
        self.namespaces
            .get(&workload.key.namespace)
            .into_iter()
            .flat_map(|namespace| namespace.revisions.iter())
            .filter(|revision| concerns(revision, workload))
    }

    /// The node buckets for a workload's snapshot.
    pub fn node_buckets(&mut self, workload: &Workload, receiver: &Receiver<'_>) -> RenderedBuckets {
        self.know(workload);
        let count = self.bucket_count();
        let keys = self.keys.of_nodes();
        render(Some(&mut self.nodes), None, keys, count, receiver)
    }

    /// The pod buckets for a workload's snapshot: its pods, and the orphans of its namespace that it selects (D-3, R-1).
    pub fn pod_buckets(&mut self, workload: &Workload, receiver: &Receiver<'_>) -> RenderedBuckets {
        self.know(workload);
        let namespace = &workload.key.namespace;
        let keys = self.keys.of_pods(namespace);
        let (count, owned, orphans) = match self.namespaces.get_mut(namespace) {
            Some(namespace) => namespace.pods.sets(workload, &self.layout),
            None => (self.layout.fewest_buckets(workload.key.kind), None, None),
        };
        render(owned, orphans, &keys, count, receiver)
    }

    /// Makes sure that every label which this version of a workload names is sent, even if the caches have another
    /// version.
    pub(super) fn know(&mut self, workload: &Workload) {
        let kept = self.workloads.get(&workload.key);
        if kept.is_none_or(|kept| kept.reads != workload.reads) {
            self.keys.include_until_grown(workload);
        }
    }

    /// The number of nodes and pods that came or changed and of which not everything is sent that a decision could
    /// read, since the last call.
    pub fn take_cuts(&mut self) -> [(Resource, u64); 2] {
        self.cuts.take()
    }

    /// Checks all cached objects again if a workload names new labels.
    pub(super) fn check_cuts(&mut self, namespace: &str) {
        if self.keys.nodes_have_grown() {
            let keys = self.keys.of_nodes();
            for node in self.nodes.iter() {
                self.cuts.check(Resource::NODES, "", node, keys);
            }
        }
        if self.keys.pods_have_grown(namespace)
            && let Some(kept) = self.namespaces.get(namespace)
        {
            let keys = self.keys.of_pods(namespace);
            for pod in kept.pods.iter() {
                self.cuts.check(Resource::PODS, namespace, pod, &keys);
            }
        }
    }
}
