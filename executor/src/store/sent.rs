//! What of the caches is sent about one workload.

use std::sync::Arc;

use nodewise_client::Digest;

use super::{Store, revisions::concerns};
use crate::buckets::{Rendered, render};
use crate::event::{DaemonSet, Resource, Revision};

impl Store {
    /// Revisions that a workload controls, and those without a controller that its selector matches (D-4), ordered by name.
    pub fn revisions<'a>(&'a self, workload: &'a DaemonSet) -> impl Iterator<Item = &'a Arc<Revision>> {
        self.namespaces
            .get(&workload.key.namespace)
            .into_iter()
            .flat_map(|namespace| namespace.revisions.iter())
            .filter(|revision| concerns(revision, workload))
    }

    /// The nodes as they are sent about a workload.
    pub(crate) fn node_buckets(&mut self, workload: &DaemonSet, known: &dyn Fn(&Digest) -> bool) -> Rendered {
        self.know(workload);
        let keys = self.keys.of_nodes();
        render(Some(&mut self.nodes), None, keys, self.bucket_count, known)
    }

    /// The pods of a workload, and the orphans of its namespace that it selects, as they are sent (D-3).
    pub(crate) fn pod_buckets(&mut self, workload: &DaemonSet, known: &dyn Fn(&Digest) -> bool) -> Rendered {
        self.know(workload);
        let (namespace, count) = (&workload.key.namespace, self.bucket_count);
        let keys = self.keys.of_pods(namespace);
        let sets = self.namespaces.get_mut(namespace);
        let (owned, orphans) = sets.map_or((None, None), |namespace| namespace.pods.sets(workload, count));
        render(owned, orphans, &keys, count, known)
    }

    /// A workload is asked about. Nothing that is sent about it may lack a label that it names, even when the caches do not
    /// show it as it is.
    pub(super) fn know(&mut self, workload: &DaemonSet) {
        let kept = self.daemon_sets.get(&workload.key);
        if kept.is_none_or(|kept| kept.reads != workload.reads) {
            self.keys.name_besides(workload);
        }
    }

    /// How many nodes and pods came or changed of which not everything is sent that a decision could read, since this was asked
    /// last.
    pub fn take_cuts(&mut self) -> [(Resource, u64); 2] {
        self.cuts.take()
    }

    /// Looks for what cannot be sent, of what a DaemonSet may have named just now: objects that were there before.
    pub(super) fn tell_cuts(&mut self, namespace: &str) {
        if self.keys.nodes_have_grown() {
            let keys = self.keys.of_nodes();
            for node in self.nodes.iter() {
                self.cuts.look(Resource::Nodes, "", node, keys);
            }
        }
        if self.keys.pods_have_grown(namespace)
            && let Some(kept) = self.namespaces.get(namespace)
        {
            let keys = self.keys.of_pods(namespace);
            for pod in kept.pods.iter() {
                self.cuts.look(Resource::Pods, namespace, pod, &keys);
            }
        }
    }
}
