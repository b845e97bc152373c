//! A cache of decoded buckets, keyed by digest, and of the results of earlier plans, keyed by workload. A request may send a digest
//! instead of a bucket, and equal buckets are decoded once.
//!
//! Losing the cache costs the executor one more call, and the next plan some more time. Every cached bucket was verified against
//! its digest, so no request can plant a wrong one. A plan reuses only results that still hold.

use std::sync::{Arc, Mutex, PoisonError, atomic::AtomicU64, atomic::Ordering::Relaxed};

use nodewise_planner::snapshot::{Digest, List, Nodes, Pods};
use quick_cache::{Lifecycle, OptionsBuilder, Weighter, sync};

use crate::{size::ByteSize, warnings::Warnings, workload::Memory};

/// The position of a bucket in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketId {
    /// `Snapshot.bucket_count`.
    pub(crate) count: u32,
    /// The index of the bucket.
    pub(crate) index: u32,
    /// What decides to which bucket a pod belongs.
    pub(crate) by: BucketBy,
}

/// The name that decides to which bucket a pod belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BucketBy {
    /// That of its node.
    Node,
    /// Its own.
    Name,
}

/// A decoded bucket. A clone shares the items.
#[derive(Debug)]
pub(crate) struct Decoded<T> {
    /// The nodes or pods, each valid in itself.
    pub(crate) items: List<T>,
    /// Whether the bytes were in `data_with_shared_labels`, and may not be allowed in `data`.
    pub(crate) shares_labels: bool,
    /// The warnings about these items. Each plan has them, also if the bucket was cached.
    pub(crate) warnings: Warnings,
    /// The position for which the items were checked. The same bytes may come again at another position, such as an empty bucket.
    pub(crate) id: BucketId,
}

impl<T> Clone for Decoded<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            shares_labels: self.shares_labels,
            warnings: self.warnings.clone(),
            id: self.id,
        }
    }
}

/// What identifies a cache entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Nodes(Digest),
    Pods(Digest),
    /// By the workload's uid.
    Memory(Box<str>),
}

/// A cache entry and the bytes of memory that it takes.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Nodes(Decoded<Nodes>, u64),
    Pods(Decoded<Pods>, u64),
    /// `None` while a plan uses it.
    Memory(Arc<Mutex<Option<Memory>>>, u64),
}

/// The kinds of cache entries, as in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Decoded buckets of nodes.
    Nodes,
    /// Decoded buckets of pods.
    Pods,
    /// Results of earlier plans, by workload.
    Plans,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Nodes, Self::Pods, Self::Plans];

    /// The name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Pods => "pods",
            Self::Plans => "plans",
        }
    }
}

impl Key {
    fn kind(&self) -> Kind {
        match self {
            Self::Nodes(_) => Kind::Nodes,
            Self::Pods(_) => Kind::Pods,
            Self::Memory(_) => Kind::Plans,
        }
    }
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Key, Entry> for ByBytes {
    fn weight(&self, _: &Key, entry: &Entry) -> u64 {
        let (Entry::Nodes(_, bytes) | Entry::Pods(_, bytes) | Entry::Memory(_, bytes)) = entry;
        *bytes
    }
}

/// The counters of one kind since the start.
#[derive(Debug, Default)]
struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// Hits, misses and evictions of one kind since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
    /// Entries that were removed to make room for others.
    pub evictions: u64,
}

/// Counts evictions.
#[derive(Debug, Clone, Default)]
struct Counting(Arc<[Counters; 3]>);

impl Counting {
    fn of(&self, kind: Kind) -> &Counters {
        &self.0[kind as usize]
    }
}

impl Lifecycle<Key, Entry> for Counting {
    /// The key that is being inserted. Replacing its old entry is no eviction.
    type RequestState = Option<Key>;

    fn on_evict(&self, put: &mut Option<Key>, key: Key, _: Entry) {
        if put.as_ref() != Some(&key) {
            self.of(key.kind()).evictions.fetch_add(1, Relaxed);
        }
    }
}

/// The cache, bounded in bytes of memory. It evicts entries that were not used recently.
#[derive(Debug)]
pub struct Cache {
    entries: sync::Cache<Key, Entry, ByBytes, quick_cache::DefaultHashBuilder, Counting>,
    counting: Counting,
}

impl Cache {
    /// Bytes of a usual bucket. Only a hint for the initial size of tables.
    const USUAL_BUCKET_BYTES: u64 = 64 << 10;
    /// Bytes of an entry besides its content: key, links and pointers.
    const ENTRY_BYTES: u64 = 256;

    /// A cache of at most `capacity` bytes. With 0 it stores nothing.
    ///
    /// # Panics
    /// Never: the options are complete.
    #[must_use]
    pub fn new(capacity: ByteSize) -> Self {
        let options = OptionsBuilder::new()
            // One shard: the bound holds for the whole, and one large bucket may take all of it.
            .shards(1)
            .weight_capacity(capacity.0)
            .estimated_items_capacity(
                ByteSize((capacity.0 / Self::USUAL_BUCKET_BYTES).clamp(16, 1 << 16)).as_usize(),
            )
            .build()
            .expect("both capacities are given");
        let counting = Counting::default();
        let entries = sync::Cache::with_options(
            options,
            ByBytes,
            quick_cache::DefaultHashBuilder::default(),
            counting.clone(),
        );
        Self { entries, counting }
    }

    /// Bytes of memory that the entries take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// The number of entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// The counters of one kind since the start.
    #[must_use]
    pub fn usage(&self, kind: Kind) -> Usage {
        let counters = self.counting.of(kind);
        Usage {
            hits: counters.hits.load(Relaxed),
            misses: counters.misses.load(Relaxed),
            evictions: counters.evictions.load(Relaxed),
        }
    }

    fn get(&self, key: &Key) -> Option<Entry> {
        let found = self.entries.get(key);
        self.count(key.kind(), found.is_some());
        found
    }

    fn put(&self, key: Key, entry: Entry) {
        self.entries
            .insert_with_lifecycle(key.clone(), entry, &mut Some(key));
    }

    fn count(&self, kind: Kind, hit: bool) {
        let counters = self.counting.of(kind);
        let counter = if hit { &counters.hits } else { &counters.misses };
        counter.fetch_add(1, Relaxed);
    }

    /// The cached bucket with this digest.
    pub(crate) fn bucket<T: Cacheable>(&self, digest: &Digest) -> Option<Decoded<T>> {
        T::bucket(self.get(&T::key(*digest))?)
    }

    /// Stores a bucket, if there is room.
    pub(crate) fn put_bucket<T: Cacheable>(&self, digest: Digest, bucket: &Decoded<T>) {
        let besides = Self::ENTRY_BYTES + bucket.warnings.bytes() as u64;
        let entry = T::entry(bucket.clone(), besides + bucket.items.bytes() as u64);
        self.put(T::key(digest), entry);
    }

    /// Takes the results of earlier plans for this workload. Until the caller returns them with [`Cache::remember`], other calls
    /// find nothing.
    pub(crate) fn recall(&self, uid: &str) -> Option<Memory> {
        let key = Key::Memory(uid.into());
        let memory = match self.entries.get(&key) {
            Some(Entry::Memory(slot, _)) => slot.lock().unwrap_or_else(PoisonError::into_inner).take(),
            _ => None,
        };
        self.count(Kind::Plans, memory.is_some());
        memory
    }

    /// Removes the buckets that newer ones have replaced in the last plan for a workload. Requests hardly ever name them again. Without
    /// this they would fill a cache of any size in time. Other workloads of the cluster have the same node buckets. A request for one of
    /// them that still names the former one is sent again with the bucket.
    pub(crate) fn remove_superseded(&self, memory: &mut Memory) {
        let nodes = memory.take_superseded_nodes().into_iter().map(Key::Nodes);
        let pods = memory.superseded_pods().iter().map(|digest| Key::Pods(*digest));
        for key in nodes.chain(pods) {
            self.entries.remove(&key);
        }
    }

    /// Stores the results of a plan, if there is room.
    pub(crate) fn remember(&self, uid: &str, memory: Memory) {
        let bytes = Self::ENTRY_BYTES + uid.len() as u64 + memory.bytes() as u64;
        let slot = Arc::new(Mutex::new(Some(memory)));
        self.put(Key::Memory(uid.into()), Entry::Memory(slot, bytes));
    }
}

/// A table that can be cached: of nodes or of pods.
pub(crate) trait Cacheable: Sized {
    /// The key of a bucket.
    fn key(digest: Digest) -> Key;
    /// The cache entry of a bucket, given the bytes that it takes.
    fn entry(bucket: Decoded<Self>, bytes: u64) -> Entry;

    /// The bucket of an entry of this kind.
    fn bucket(entry: Entry) -> Option<Decoded<Self>>;
    /// Bytes that the table takes.
    fn bytes(&self) -> usize;
}

impl Cacheable for Nodes {
    fn key(digest: Digest) -> Key {
        Key::Nodes(digest)
    }

    fn entry(bucket: Decoded<Self>, bytes: u64) -> Entry {
        Entry::Nodes(bucket, bytes)
    }

    fn bucket(entry: Entry) -> Option<Decoded<Self>> {
        match entry {
            Entry::Nodes(bucket, _) => Some(bucket),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        Nodes::bytes(self)
    }
}

impl Cacheable for Pods {
    fn key(digest: Digest) -> Key {
        Key::Pods(digest)
    }

    fn entry(bucket: Decoded<Self>, bytes: u64) -> Entry {
        Entry::Pods(bucket, bytes)
    }

    fn bucket(entry: Entry) -> Option<Decoded<Self>> {
        match entry {
            Entry::Pods(bucket, _) => Some(bucket),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        Pods::bytes(self)
    }
}

#[cfg(test)]
mod tests {
    use nodewise_planner::{
        daemonset::plan_cache::PlanCache,
        snapshot::{Bucket, Labels, Node},
    };

    use super::*;

    fn bucket(nodes: usize) -> Decoded<Nodes> {
        let node = |index| Node {
            name: format!("node-{index}"),
            labels: Labels::default(),
            taints: Vec::new(),
            unschedulable: false,
            ready: None,
            ready_since: None,
            in_maintenance: false,
        };
        Decoded {
            items: List::new((0..nodes).map(node).collect()),
            shares_labels: false,
            warnings: Warnings::default(),
            id: BucketId {
                count: 1,
                index: 0,
                by: BucketBy::Node,
            },
        }
    }

    #[test]
    fn a_bucket_is_found_by_kind_and_digest() {
        let cache = Cache::new(ByteSize::mib(1));
        cache.put_bucket([1; 32], &bucket(3));
        assert_eq!(cache.bucket::<Nodes>(&[1; 32]).unwrap().items.len(), 3);
        assert!(cache.bucket::<Nodes>(&[2; 32]).is_none());
        assert!(cache.bucket::<Pods>(&[1; 32]).is_none());
        let usage = |hits, misses| Usage {
            hits,
            misses,
            evictions: 0,
        };
        assert_eq!(
            Kind::ALL.map(|kind| cache.usage(kind)),
            [usage(1, 1), usage(0, 1), usage(0, 0)]
        );
    }

    #[test]
    fn results_of_earlier_plans_are_used_by_one_call_at_a_time() {
        let cache = Cache::new(ByteSize::mib(1));
        assert!(cache.recall("uid").is_none());
        let mut memory = Memory::DaemonSet(PlanCache::default());
        memory
            .identify(&[Bucket::default()])
            .expect("no pod is a duplicate");
        let bytes = memory.bytes();
        cache.remember("uid", memory);
        let memory = cache.recall("uid").expect("the results");
        assert_eq!(memory.bytes(), bytes);
        assert!(cache.recall("uid").is_none(), "another call uses it");
        assert!(cache.recall("other").is_none());
        cache.remember("uid", memory);
        assert!(cache.recall("uid").is_some());
        let Usage { hits, misses, .. } = cache.usage(Kind::Plans);
        assert_eq!((hits, misses), (2, 3));
    }

    #[test]
    fn the_cache_stays_within_its_capacity() {
        let capacity = ByteSize(64 << 10);
        let cache = Cache::new(capacity);
        for digest in 0..200_u8 {
            cache.put_bucket([digest; 32], &bucket(20));
            assert!(
                cache.bytes() <= capacity.0,
                "{} bytes after {digest}",
                cache.bytes()
            );
        }
        assert!(cache.entries() > 1, "the cache keeps some");
        assert!(cache.entries() < 200, "the cache evicts");
        cache.put_bucket([255; 32], &bucket(100_000));
        assert!(
            cache.bucket::<Nodes>(&[255; 32]).is_none(),
            "larger than the whole cache"
        );
        assert_eq!(
            cache.usage(Kind::Nodes).evictions,
            200 - cache.entries() as u64,
            "a bucket larger than the cache evicts nothing"
        );
        let none = Cache::new(ByteSize(0));
        none.put_bucket([1; 32], &bucket(1));
        assert!(none.bucket::<Nodes>(&[1; 32]).is_none());
    }
}
