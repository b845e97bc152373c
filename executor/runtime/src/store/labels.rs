//! Interns the labels of nodes. Nodes have most labels in common, so each label is stored once as long as a node has
//! it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nodewise_projection::buckets::EncodedObject;
use nodewise_proto::v1;

#[derive(Debug, Default)]
pub(super) struct Labels {
    kept: HashTable<Arc<v1::Label>>,
    hasher: RandomState,
}

impl Labels {
    /// Interns the labels of a node.
    pub(super) fn intern(&mut self, labels: Vec<v1::Label>) -> Box<[Arc<v1::Label>]> {
        labels.into_iter().map(|label| self.one(label)).collect()
    }

    fn one(&mut self, label: v1::Label) -> Arc<v1::Label> {
        let hash = |label: &v1::Label| self.hasher.hash_one((&label.key, &label.value));
        let entry = self
            .kept
            .entry(hash(&label), |kept| **kept == label, |kept| hash(kept));
        match entry {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => Arc::clone(entry.insert(Arc::new(label)).get()),
        }
    }

    /// Releases the labels of a removed node. Labels that no other node has are dropped.
    pub(super) fn release(&mut self, node: &EncodedObject) {
        for label in node.labels() {
            // One reference is the node's, the other one is in the table.
            if Arc::strong_count(label) > 2 {
                continue;
            }
            let hash = self.hasher.hash_one((&label.key, &label.value));
            if let Ok(entry) = self.kept.find_entry(hash, |kept| Arc::ptr_eq(kept, label)) {
                entry.remove();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}
