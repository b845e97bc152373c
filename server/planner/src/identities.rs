//! The names and uids of a snapshot's pods: that they are unique, and whether one is taken.
//!
//! Kept up from snapshot to snapshot: buckets that come again cost nothing.

use std::{
    hash::{BuildHasher as _, RandomState},
    mem::size_of,
};

use hashbrown::{HashTable, hash_table::Entry as Slot};

use crate::snapshot::{Bucket, Digest, Pod};

/// Two pods of a snapshot that share what they must not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twice {
    /// Index of the bucket of one of them.
    pub bucket: usize,
    /// Its index there.
    pub pod: usize,
    /// What they share.
    pub what: Identity,
}

/// What no two pods of a namespace share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// metadata.name.
    Name,
    /// metadata.uid.
    Uid,
}

impl Identity {
    const ALL: [Self; 2] = [Self::Name, Self::Uid];

    fn of(self, pod: &Pod) -> &str {
        match self {
            Self::Name => &pod.name,
            Self::Uid => &pod.uid,
        }
    }
}

/// Pods by name and by uid.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities {
    /// Keyed, so that nobody can choose names that all fall together.
    hasher: RandomState,
    /// By name, and by uid.
    tables: [HashTable<Entry>; 2],
    buckets: Vec<Known>,
}

/// Where the pod is that has a name.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    bucket: u32,
    pod: u32,
}

/// What of a bucket is in the tables.
#[derive(Debug, Clone, Default)]
struct Known {
    digest: Option<Digest>,
    /// Hashes of each pod's name and uid.
    hashes: Vec<[u64; 2]>,
}

impl Identities {
    /// Those of some buckets. Of pods that share a name one counts.
    pub(crate) fn of(buckets: &[Bucket]) -> Self {
        let mut identities = Self::default();
        // What is wrong with a snapshot is told before it is planned for.
        let _ = identities.take_up(buckets);
        identities
    }

    /// Brings everything up to date with the buckets of a snapshot. After an error it is of no use.
    pub(crate) fn take_up(&mut self, buckets: &[Bucket]) -> Result<(), Vec<Twice>> {
        if self.buckets.len() != buckets.len() {
            self.tables.iter_mut().for_each(HashTable::clear);
            self.buckets = vec![Known::default(); buckets.len()];
        }
        let is_new = |(index, bucket): &(usize, &Bucket)| {
            bucket.pods.digest().is_none() || self.buckets[*index].digest.as_ref() != bucket.pods.digest()
        };
        let new: Vec<(usize, &Bucket)> = buckets.iter().enumerate().filter(is_new).collect();
        // What goes makes room before what comes is looked at: a pod may have moved from one bucket to another.
        for (index, _) in &new {
            self.forget(*index);
        }
        let mut twice = Vec::new();
        for (index, bucket) in new {
            self.learn(index, bucket, buckets, &mut twice);
        }
        if twice.is_empty() { Ok(()) } else { Err(twice) }
    }

    fn forget(&mut self, bucket: usize) {
        let known = std::mem::take(&mut self.buckets[bucket]);
        for (pod, hashes) in known.hashes.iter().enumerate() {
            for (table, hash) in self.tables.iter_mut().zip(hashes) {
                let is_it = |entry: &Entry| (entry.bucket as usize, entry.pod as usize) == (bucket, pod);
                if let Ok(entry) = table.find_entry(*hash, is_it) {
                    entry.remove();
                }
            }
        }
    }

    fn learn(&mut self, index: usize, bucket: &Bucket, buckets: &[Bucket], twice: &mut Vec<Twice>) {
        let mut hashes = Vec::with_capacity(bucket.pods.len());
        for (place, pod) in bucket.pods.iter().enumerate() {
            let mut both = [0; 2];
            for ((what, table), hash) in Identity::ALL.into_iter().zip(&mut self.tables).zip(&mut both) {
                let text = what.of(pod);
                *hash = self.hasher.hash_one(text);
                let same = |entry: &Entry| what.of(at(buckets, *entry)) == text;
                match table.entry(*hash, same, |entry| entry.hash) {
                    Slot::Occupied(_) => twice.push(Twice {
                        bucket: index,
                        pod: place,
                        what,
                    }),
                    Slot::Vacant(slot) => {
                        slot.insert(Entry {
                            hash: *hash,
                            // A list of more does not fit in memory.
                            bucket: u32::try_from(index).unwrap_or(u32::MAX),
                            pod: u32::try_from(place).unwrap_or(u32::MAX),
                        });
                    }
                }
            }
            hashes.push(both);
        }
        self.buckets[index] = Known {
            digest: bucket.pods.digest().copied(),
            hashes,
        };
    }

    /// Whether a pod has this name, among the buckets that were taken up.
    pub(crate) fn is_taken(&self, name: &str, buckets: &[Bucket]) -> bool {
        let hash = self.hasher.hash_one(name);
        self.tables[0]
            .find(hash, |entry| at(buckets, *entry).name == name)
            .is_some()
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        // A table has a byte of control for each place.
        let tables = self
            .tables
            .iter()
            .map(|table| table.capacity() * (size_of::<Entry>() + 1));
        let hashes = self
            .buckets
            .iter()
            .map(|known| known.hashes.capacity() * size_of::<[u64; 2]>());
        tables.sum::<usize>() + hashes.sum::<usize>() + self.buckets.capacity() * size_of::<Known>()
    }
}

fn at(buckets: &[Bucket], entry: Entry) -> &Pod {
    &buckets[entry.bucket as usize].pods[entry.pod as usize]
}
