//! Nodes that a DaemonSet cannot tell apart: equal values of the labels that its template reads, equal taints, and an equal name if
//! the template reads names.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState},
};

use hashbrown::HashTable;

use crate::core::snapshot::Nodes;

/// The classes of the nodes for one DaemonSet, with their decisions.
pub(super) struct Classes<'a> {
    keys: Vec<&'a str>,
    by_name: bool,
    nodes: &'a Nodes,
    /// The number of each node's list of taints.
    taints: &'a [u32],
    /// Keyed with a random key, so that nobody can choose labels that collide in the table.
    hasher: &'a RandomState,
    known: HashTable<Class>,
}

/// A class: the hash and the index of its first node, and its decision.
struct Class {
    hash: u64,
    first: usize,
    decision: u32,
}

impl<'a> Classes<'a> {
    /// `reads` are the keys of the labels that the template reads, and whether it reads names.
    pub(super) fn new(
        (keys, by_name): (BTreeSet<&'a str>, bool),
        nodes: &'a Nodes,
        taints: &'a [u32],
        hasher: &'a RandomState,
    ) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            by_name,
            nodes,
            taints,
            hasher,
            known: HashTable::new(),
        }
    }

    /// The decision about the class of the node with this index; `decide` decides if it is the first of its class.
    pub(super) fn recall(&mut self, index: usize, decide: impl FnOnce() -> u32) -> u32 {
        let hash = self.hash(index);
        // Equal hashes do not imply equal values.
        let is_it = |class: &Class| class.hash == hash && self.are_equal(class.first, index);
        if let Some(class) = self.known.find(hash, is_it) {
            return class.decision;
        }
        let class = Class {
            hash,
            first: index,
            decision: decide(),
        };
        let decision = class.decision;
        self.known.insert_unique(hash, class, |class| class.hash);
        decision
    }

    fn hash(&self, index: usize) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        let node = self.nodes.at(index);
        self.taints[index].hash(&mut hasher);
        self.name(index).hash(&mut hasher);
        self.keys
            .iter()
            .for_each(|key| node.labels().get(key).hash(&mut hasher));
        hasher.finish()
    }

    fn are_equal(&self, a: usize, b: usize) -> bool {
        let (first, second) = (self.nodes.at(a).labels(), self.nodes.at(b).labels());
        self.taints[a] == self.taints[b]
            && self.name(a) == self.name(b)
            && self.keys.iter().all(|key| first.get(key) == second.get(key))
    }

    /// The name, if the template reads names.
    fn name(&self, index: usize) -> Option<&str> {
        self.by_name.then(|| self.nodes.at(index).name())
    }
}
