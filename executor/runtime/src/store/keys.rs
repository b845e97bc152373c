//! Which labels are sent. Nodes: the labels that any workload or RolloutPolicy names, because all workloads share the node buckets.
//! Pods: the labels that a workload of their namespace names.

use std::collections::HashMap;
use std::sync::Arc;

use nodewise_projection::{KeySet, LabelKeyCounts, LabelKeysRead, Workload};

#[derive(Debug)]
pub(super) struct Keys {
    nodes: LabelKeyCounts,
    /// By namespace: the keys, and the number of workloads.
    pods: HashMap<Arc<str>, (LabelKeyCounts, usize)>,
    /// The keys for pods of a namespace without workloads.
    unnamed: Arc<KeySet>,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            nodes: LabelKeyCounts::of_nodes(),
            pods: HashMap::new(),
            unnamed: Arc::new(KeySet::of_pods([])),
        }
    }
}

impl Keys {
    /// Updates the keys when a workload came, changed or went.
    pub(super) fn replace(&mut self, old: Option<&Workload>, new: Option<&Workload>) {
        // The new object is added first, so that keys which both name are never without a reference.
        if let Some(new) = new {
            self.nodes.add(&new.reads);
            let (named, count) = self.in_namespace(&new.key.namespace);
            named.add(&new.reads);
            *count += 1;
        }
        if let Some(old) = old {
            self.nodes.remove(&old.reads);
            let (named, count) = self.in_namespace(&old.key.namespace);
            named.remove(&old.reads);
            *count -= 1;
            if *count == 0 {
                self.pods.remove(&old.key.namespace);
            }
        }
    }

    /// Updates the keys of nodes when a RolloutPolicy came, changed or went. Each side is what it reads.
    pub(super) fn replace_policy(&mut self, old: Option<&LabelKeysRead>, new: Option<&LabelKeysRead>) {
        // The new keys are added first, as in `replace`.
        if let Some(reads) = new {
            self.nodes.add(reads);
        }
        if let Some(reads) = old {
            self.nodes.remove(reads);
        }
    }

    fn in_namespace(&mut self, name: &Arc<str>) -> &mut (LabelKeyCounts, usize) {
        let fresh = || (LabelKeyCounts::of_pods(), 0);
        self.pods.entry(Arc::clone(name)).or_insert_with(fresh)
    }

    /// Also sends the labels that this version of a workload names, until the keys grow for another reason.
    pub(super) fn include_until_grown(&mut self, workload: &Workload) {
        self.nodes.include_until_grown(&workload.reads);
        let (named, _) = self.in_namespace(&workload.key.namespace);
        named.include_until_grown(&workload.reads);
    }

    /// The keys of nodes.
    pub(super) fn of_nodes(&mut self) -> &Arc<KeySet> {
        self.nodes.keys()
    }

    /// The keys of the pods of a namespace.
    pub(super) fn of_pods(&mut self, namespace: &str) -> Arc<KeySet> {
        let named = self.pods.get_mut(namespace);
        Arc::clone(named.map_or(&self.unnamed, |(named, _)| named.keys()))
    }

    /// Whether there are new keys of nodes since the keys were last used.
    pub(super) fn nodes_have_grown(&self) -> bool {
        self.nodes.has_grown()
    }

    /// Whether there are new keys of the pods of a namespace since the keys were last used.
    pub(super) fn pods_have_grown(&self, namespace: &str) -> bool {
        let named = self.pods.get(namespace);
        named.is_some_and(|(named, _)| named.has_grown())
    }
}
