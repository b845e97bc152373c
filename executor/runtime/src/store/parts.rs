//! Interns the metadata that pods share. Each part is stored once as long as a pod has it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use nodewise_projection::{
    KeySet,
    buckets::{EncodedPod, Placement, SharedFields},
};

#[derive(Debug, Default)]
pub(super) struct Parts {
    kept: HashTable<Arc<SharedFields>>,
    hasher: RandomState,
}

impl Parts {
    /// Interns a part with these bytes and this owner, whose pods belong to such buckets. Only labels of the `known` keys are in
    /// it, or all labels.
    pub(super) fn intern(
        &mut self,
        encoded: &[u8],
        owner: Option<&str>,
        known: Option<&Arc<KeySet>>,
        placement: Placement,
    ) -> Arc<SharedFields> {
        let hash = |encoded: &[u8]| self.hasher.hash_one(encoded);
        let entry = self.kept.entry(
            hash(encoded),
            |part| part.encoded() == encoded && part.known().map(Arc::as_ptr) == known.map(Arc::as_ptr),
            |part| hash(part.encoded()),
        );
        match entry {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => {
                let part = SharedFields::new(encoded, owner)
                    .with_known_keys(known.cloned())
                    .with_placement(placement);
                Arc::clone(entry.insert(part.into()).get())
            }
        }
    }

    /// Releases the part of a removed pod. The part is dropped if no other pod has it.
    pub(super) fn release(&mut self, pod: &EncodedPod) {
        let part = pod.shared();
        // One reference is the pod's, the other one is in the table.
        if Arc::strong_count(part) > 2 {
            return;
        }
        let hash = self.hasher.hash_one(part.encoded());
        if let Ok(entry) = self.kept.find_entry(hash, |kept| Arc::ptr_eq(kept, part)) {
            entry.remove();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}
