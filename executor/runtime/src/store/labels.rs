//! Interns the labels of nodes. Each label is stored once as long as a node has it, and so is each list of labels: most nodes have
//! the same labels as others.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nodewise_projection::buckets::{EncodedNode, NodeLabels};
use nodewise_proto::v1;

#[derive(Debug, Default)]
pub(super) struct Labels {
    each: HashTable<Arc<v1::SharedLabel>>,
    /// Lists of these labels.
    lists: HashTable<Arc<NodeLabels>>,
    hasher: RandomState,
}

impl Labels {
    /// Interns the labels of the node of this name.
    pub(super) fn intern(&mut self, labels: Vec<v1::Label>, node: &str) -> Arc<NodeLabels> {
        let labels = labels.into_iter().map(|label| v1::SharedLabel::of(label, node));
        let list = NodeLabels::new(labels.map(|label| self.label(label)).collect());
        let hash = |list: &NodeLabels| hash(&self.hasher, list);
        let entry = self
            .lists
            .entry(hash(&list), |kept| is_same(kept, &list), |kept| hash(kept));
        match entry {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => Arc::clone(entry.insert(Arc::new(list)).get()),
        }
    }

    fn label(&mut self, label: v1::SharedLabel) -> Arc<v1::SharedLabel> {
        let hash = |label: &v1::SharedLabel| self.hasher.hash_one(label);
        let entry = self
            .each
            .entry(hash(&label), |kept| **kept == label, |kept| hash(kept));
        match entry {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => Arc::clone(entry.insert(Arc::new(label)).get()),
        }
    }

    /// Releases the labels of a removed node. A list that no other node has is dropped, and so are labels that no other list has.
    pub(super) fn release(&mut self, node: &EncodedNode) {
        let list = node.shared();
        // One reference is the node's, the other one is in the table.
        if Arc::strong_count(list) > 2 {
            return;
        }
        if let Ok(entry) = self
            .lists
            .find_entry(hash(&self.hasher, list), |kept| Arc::ptr_eq(kept, list))
        {
            entry.remove();
        }
        for label in list.list() {
            // One reference is that of the list, the other one is in the table.
            if Arc::strong_count(label) > 2 {
                continue;
            }
            let hash = self.hasher.hash_one(&**label);
            if let Ok(entry) = self.each.find_entry(hash, |kept| Arc::ptr_eq(kept, label)) {
                entry.remove();
            }
        }
    }

    /// The number of labels.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.each.len()
    }
}

/// Each label is stored once, so its address identifies it.
fn hash(hasher: &RandomState, list: &NodeLabels) -> u64 {
    let addresses: Vec<_> = list.list().iter().map(Arc::as_ptr).collect();
    hasher.hash_one(addresses)
}

fn is_same(one: &NodeLabels, other: &NodeLabels) -> bool {
    one.list()
        .iter()
        .map(Arc::as_ptr)
        .eq(other.list().iter().map(Arc::as_ptr))
}
