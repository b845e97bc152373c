//! An index of the pods of a snapshot by name and by uid. It finds duplicates and taken names.
//!
//! The index is updated from snapshot to snapshot. Buckets whose digest did not change are not read again.

use std::{hash::BuildHasher as _, mem::size_of_val};

use hashbrown::{DefaultHashBuilder, HashTable, hash_table::Entry as Slot};

use crate::core::snapshot::{Bucket, Digest, PodView};

/// Two pods of a snapshot with the same name or the same uid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateIdentity {
    /// Index of the bucket of the second pod.
    pub bucket: usize,
    /// Index of that pod in its bucket.
    pub pod: usize,
    /// The field that both pods share.
    pub what: Identity,
}

/// A field that is unique among the pods of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// metadata.name.
    Name,
    /// metadata.uid.
    Uid,
}

impl Identity {
    const ALL: [Self; 2] = [Self::Name, Self::Uid];

    fn of(self, pod: PodView<'_>) -> &str {
        match self {
            Self::Name => pod.name(),
            Self::Uid => pod.uid(),
        }
    }
}

/// Pods by name and by uid.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities {
    /// Keyed with a random seed, so that nobody can choose names that collide in the table.
    hasher: DefaultHashBuilder,
    /// One table by name, one by uid.
    tables: [HashTable<Entry>; 2],
    buckets: Vec<IndexedBucket>,
    /// Digests of the non-empty pod lists that the last update replaced.
    superseded: Vec<Digest>,
}

/// The position of a pod in the buckets.
#[derive(Debug, Clone, Copy)]
struct Entry {
    bucket: u32,
    pod: u32,
}

/// The pods of one bucket that are in the tables.
#[derive(Debug, Clone, Default)]
struct IndexedBucket {
    digest: Option<Digest>,
    /// The hashes of name and uid of each pod.
    hashes: Box<[[u64; 2]]>,
}

impl Identities {
    /// An index of these buckets. If pods share a name, it holds one of them.
    pub(crate) fn of(buckets: &[Bucket]) -> Self {
        let mut identities = Self::default();
        // The parser of a snapshot has checked that names and uids are unique.
        let _ = identities.update(buckets);
        identities
    }

    /// Updates the index for the buckets of a snapshot. After an error the index must not be used.
    pub(crate) fn update(&mut self, buckets: &[Bucket]) -> Result<(), Vec<DuplicateIdentity>> {
        if self.buckets.len() != buckets.len() {
            self.tables.iter_mut().for_each(HashTable::clear);
            self.buckets = vec![IndexedBucket::default(); buckets.len()];
        }
        let is_new = |(index, bucket): &(usize, &Bucket)| {
            bucket.pods.digest().is_none() || self.buckets[*index].digest.as_ref() != bucket.pods.digest()
        };
        let new: Vec<(usize, &Bucket)> = buckets.iter().enumerate().filter(is_new).collect();
        let gone = new.iter().map(|(index, _)| &self.buckets[*index]);
        let gone = gone.filter(|known| !known.hashes.is_empty());
        self.superseded = gone.filter_map(|known| known.digest).collect();
        // Remove all replaced buckets before adding new ones: a pod may have moved from one bucket to another.
        for (index, _) in &new {
            self.remove_bucket(*index);
        }
        let mut duplicates = Vec::new();
        for (index, bucket) in new {
            self.insert_bucket(index, bucket, buckets, &mut duplicates);
        }
        if duplicates.is_empty() {
            Ok(())
        } else {
            Err(duplicates)
        }
    }

    /// Digests of the non-empty pod lists that the last update replaced.
    pub(crate) fn superseded(&self) -> &[Digest] {
        &self.superseded
    }

    fn remove_bucket(&mut self, bucket: usize) {
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

    fn insert_bucket(
        &mut self,
        index: usize,
        bucket: &Bucket,
        buckets: &[Bucket],
        duplicates: &mut Vec<DuplicateIdentity>,
    ) {
        let hashes = bucket
            .pods
            .iter()
            .map(|pod| Identity::ALL.map(|what| self.hasher.hash_one(what.of(pod))));
        self.buckets[index] = IndexedBucket {
            digest: bucket.pods.digest().copied(),
            hashes: hashes.collect(),
        };
        let known = &self.buckets;
        for (column, what) in Identity::ALL.into_iter().enumerate() {
            let table = &mut self.tables[column];
            let hash_of = |entry: &Entry| known[entry.bucket as usize].hashes[entry.pod as usize][column];
            table.reserve(bucket.pods.len(), hash_of);
            for (position, pod) in bucket.pods.iter().enumerate() {
                let (hash, text) = (known[index].hashes[position][column], what.of(pod));
                let same = |entry: &Entry| hash_of(entry) == hash && what.of(at(buckets, *entry)) == text;
                match table.entry(hash, same, hash_of) {
                    Slot::Occupied(_) => duplicates.push(DuplicateIdentity {
                        bucket: index,
                        pod: position,
                        what,
                    }),
                    Slot::Vacant(slot) => {
                        slot.insert(Entry {
                            // A list with more items would not fit in memory.
                            bucket: u32::try_from(index).unwrap_or(u32::MAX),
                            pod: u32::try_from(position).unwrap_or(u32::MAX),
                        });
                    }
                }
            }
        }
    }

    /// Whether a pod of the indexed buckets has this name.
    pub(crate) fn is_taken(&self, name: &str, buckets: &[Bucket]) -> bool {
        let hash = self.hasher.hash_one(name);
        self.tables[0]
            .find(hash, |entry| at(buckets, *entry).name() == name)
            .is_some()
    }

    /// Memory that the index takes, in bytes (approximate).
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(HashTable::allocation_size);
        let hashes = self.buckets.iter().map(|known| size_of_val(&*known.hashes));
        let lists = [size_of_val(&*self.buckets), size_of_val(&*self.superseded)];
        tables.chain(hashes).chain(lists).sum()
    }
}

fn at(buckets: &[Bucket], entry: Entry) -> PodView<'_> {
    buckets[entry.bucket as usize].pods.at(entry.pod as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::snapshot::{List, Pod},
        fixtures::{daemon_set, pod},
    };

    /// A bucket of pods of these names; `digest` 0 stands for none.
    fn bucket(digest: u8, names: &[&str]) -> Bucket {
        let pods = names
            .iter()
            .map(|name| pod(&daemon_set(), name, "n", "h"))
            .collect();
        Bucket {
            pods: match digest {
                0 => List::new(pods),
                digest => List::with_digest(pods, [digest; 32]),
            },
            ..Bucket::default()
        }
    }

    fn taken(identities: &Identities, buckets: &[Bucket]) -> String {
        let names = ["a", "b", "c", "d", "e"];
        names
            .into_iter()
            .filter(|name| identities.is_taken(name, buckets))
            .collect()
    }

    #[test]
    fn follows_the_buckets_from_snapshot_to_snapshot() {
        let mut identities = Identities::default();
        // (what, buckets, names that are taken)
        let table = [
            (
                "the first",
                vec![bucket(1, &["a", "b"]), bucket(2, &["c"])],
                "abc",
            ),
            (
                "one changes",
                vec![bucket(3, &["b", "d"]), bucket(2, &["c"])],
                "bcd",
            ),
            (
                "a pod moves",
                vec![bucket(4, &["c"]), bucket(5, &["b", "d"])],
                "bcd",
            ),
            ("and back", vec![bucket(3, &["b", "d"]), bucket(2, &["c"])], "bcd"),
            (
                "without a digest",
                vec![bucket(0, &["e"]), bucket(2, &["c"])],
                "ce",
            ),
            ("again without", vec![bucket(0, &["a"]), bucket(2, &["c"])], "ac"),
            ("all in one", vec![bucket(2, &["c"])], "c"),
            ("none", vec![], ""),
        ];
        for (what, buckets, names) in table {
            assert_eq!(identities.update(&buckets), Ok(()), "{what}");
            assert_eq!(taken(&identities, &buckets), names, "{what}");
        }
    }

    #[test]
    fn reports_the_digests_of_replaced_pod_lists() {
        let mut cache = crate::daemonset::plan_cache::PlanCache::default();
        assert_eq!(cache.superseded_pods(), [[0; 32]; 0]);
        for (what, buckets, superseded) in [
            (
                "the first",
                vec![bucket(1, &["a"]), bucket(2, &["b"]), bucket(3, &[])],
                &[][..],
            ),
            (
                "the same",
                vec![bucket(1, &["a"]), bucket(2, &["b"]), bucket(3, &[])],
                &[],
            ),
            (
                "one pod more",
                vec![bucket(1, &["a"]), bucket(4, &["b", "c"]), bucket(3, &[])],
                &[2],
            ),
            (
                "two change, one of which was empty",
                vec![bucket(5, &[]), bucket(4, &["b", "c"]), bucket(6, &["d"])],
                &[1],
            ),
            (
                "without a digest",
                vec![bucket(5, &[]), bucket(0, &["b"]), bucket(6, &["d"])],
                &[4],
            ),
            (
                "a list without a digest is not reported",
                vec![bucket(5, &[]), bucket(7, &["b"]), bucket(6, &["d"])],
                &[],
            ),
        ] {
            assert_eq!(cache.identify(&buckets), Ok(()), "{what}");
            let digests: Vec<_> = superseded.iter().map(|digest| [*digest; 32]).collect();
            assert_eq!(cache.superseded_pods(), digests, "{what}");
        }
    }

    #[test]
    fn buckets_with_an_unchanged_digest_are_not_read_again() {
        let mut identities = Identities::default();
        assert_eq!(identities.update(&[bucket(1, &["a"]), bucket(2, &["b"])]), Ok(()));
        // The digest is wrong on purpose: an error would mean that the bucket was read.
        let other = [bucket(1, &["a"]), bucket(2, &["a"])];
        assert_eq!(identities.update(&other), Ok(()));
    }

    #[test]
    fn reports_pods_that_share_a_name_or_a_uid() {
        let named = |name: &str, uid: &str| Pod {
            uid: uid.to_owned(),
            ..pod(&daemon_set(), name, "n", "h")
        };
        let of = |pods: &[Pod]| Bucket {
            pods: List::new(pods.to_vec()),
            ..Bucket::default()
        };
        let duplicate = |bucket, pod, what| DuplicateIdentity { bucket, pod, what };
        let table = [
            (vec![of(&[named("a", "1")]), of(&[named("b", "2")])], vec![]),
            (
                vec![of(&[named("a", "1")]), of(&[named("0", "2"), named("a", "3")])],
                vec![duplicate(1, 1, Identity::Name)],
            ),
            (
                vec![of(&[named("a", "1"), named("b", "1")])],
                vec![duplicate(0, 1, Identity::Uid)],
            ),
            (
                vec![of(&[named("a", "1")]), of(&[named("a", "1")])],
                vec![duplicate(1, 0, Identity::Name), duplicate(1, 0, Identity::Uid)],
            ),
        ];
        for (buckets, expected) in table {
            let result = Identities::default().update(&buckets);
            assert_eq!(result.err().unwrap_or_default(), expected);
        }
    }

    #[test]
    fn memory_per_pod_is_bounded() {
        let names: Vec<String> = (0..1_000).map(|index| format!("pod-{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let bytes = Identities::of(&[bucket(1, &names)]).bytes();
        assert!((34_000..60_000).contains(&bytes), "{bytes}");
        assert_eq!(Identities::default().bytes(), 0);
    }
}
