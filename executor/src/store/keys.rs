//! Which labels are sent: of nodes those that any DaemonSet names, since all of them are sent the same buckets; of pods those that
//! one of their namespace names.

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::DaemonSet;
use crate::project::{KeySet, Named};

#[derive(Debug)]
pub(super) struct Keys {
    nodes: Named,
    /// By namespace, and how many DaemonSets are there.
    pods: HashMap<Arc<str>, (Named, usize)>,
    /// Of pods where there is no DaemonSet.
    unnamed: Arc<KeySet>,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            nodes: Named::of_nodes(),
            pods: HashMap::new(),
            unnamed: Arc::new(KeySet::of_pods([])),
        }
    }
}

impl Keys {
    /// A DaemonSet came, changed or went.
    pub(super) fn replace(&mut self, old: Option<&DaemonSet>, new: Option<&DaemonSet>) {
        // First what is new, so that what it still names is never without a name.
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

    fn in_namespace(&mut self, name: &Arc<str>) -> &mut (Named, usize) {
        let fresh = || (Named::of_pods(), 0);
        self.pods.entry(Arc::clone(name)).or_insert_with(fresh)
    }

    /// How many DaemonSets are in a namespace.
    pub(super) fn daemon_sets_in(&self, namespace: &str) -> usize {
        self.pods.get(namespace).map_or(0, |(_, count)| *count)
    }

    /// What a DaemonSet names is sent until what is sent grows for another reason.
    pub(super) fn name_besides(&mut self, workload: &DaemonSet) {
        self.nodes.name_besides(&workload.reads);
        let (named, _) = self.in_namespace(&workload.key.namespace);
        named.name_besides(&workload.reads);
    }

    /// Of nodes.
    pub(super) fn of_nodes(&mut self) -> &Arc<KeySet> {
        self.nodes.keys()
    }

    /// Of the pods of a namespace.
    pub(super) fn of_pods(&mut self, namespace: &str) -> Arc<KeySet> {
        let named = self.pods.get_mut(namespace);
        Arc::clone(named.map_or(&self.unnamed, |(named, _)| named.keys()))
    }

    /// There are keys by now that were not sent.
    pub(super) fn nodes_have_grown(&self) -> bool {
        self.nodes.has_grown()
    }

    /// The same, of the pods of a namespace.
    pub(super) fn pods_have_grown(&self, namespace: &str) -> bool {
        let named = self.pods.get(namespace);
        named.is_some_and(|(named, _)| named.has_grown())
    }
}
