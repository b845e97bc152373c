//! The parts that pods share, each kept once for as long as a pod has it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::buckets::{Part, Stored};
use crate::project::KeySet;

#[derive(Debug, Default)]
pub(super) struct Parts {
    kept: HashTable<Arc<Part>>,
    hasher: RandomState,
}

impl Parts {
    /// The part of these bytes, which name this owner. Of its labels those of the `known` keys are kept, or all.
    pub(super) fn intern(
        &mut self,
        encoded: &[u8],
        owner: Option<&str>,
        known: Option<&Arc<KeySet>>,
    ) -> Arc<Part> {
        let hash = |encoded: &[u8]| self.hasher.hash_one(encoded);
        let entry = self.kept.entry(
            hash(encoded),
            |part| part.encoded() == encoded && part.known().map(Arc::as_ptr) == known.map(Arc::as_ptr),
            |part| hash(part.encoded()),
        );
        match entry {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => Arc::clone(
                entry
                    .insert(Arc::new(Part::new(encoded, owner).cut_with(known.cloned())))
                    .get(),
            ),
        }
    }

    /// A pod is gone, and with it its part if it was the last one to have it.
    pub(super) fn release(&mut self, pod: &Stored) {
        let Some(part) = pod.part() else {
            return;
        };
        // One is the pod's, the other is kept here.
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
