//! Buckets that earlier calls decoded, so that a call may give them by digest and so that equal buckets are decoded once.
//!
//! A cache and nothing else: losing it costs the executor one more call. Everything in it was verified against its
//! digest, so no request can plant a wrong bucket.

use std::{mem::size_of, sync::Arc};

use nodewise_planner::snapshot::{ControllerRef, Labels, Node, Pod, Target};
use quick_cache::{OptionsBuilder, Weighter, sync};

use crate::size::ByteSize;

/// A SHA-256 digest.
pub(crate) type Digest = [u8; 32];

/// The bucket of which a decoded bucket is known to be a valid one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// `Snapshot.bucket_count`.
    pub(crate) count: u32,
    /// The index of the bucket.
    pub(crate) index: u32,
}

/// A decoded bucket.
#[derive(Debug, Clone)]
pub(crate) struct Decoded<T> {
    /// What it holds; each is valid in itself.
    pub(crate) items: Arc<[T]>,
    /// Where every item was seen to belong. The same bytes may come again for another place: an empty bucket does.
    pub(crate) place: Place,
}

/// What lies in the cache. Nodes and pods are kept apart by the key.
#[derive(Debug, Clone)]
enum Entry {
    Nodes(Decoded<Node>, u64),
    Pods(Decoded<Pod>, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Nodes,
    Pods,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<(Kind, Digest), Entry> for ByBytes {
    fn weight(&self, _: &(Kind, Digest), entry: &Entry) -> u64 {
        let (Entry::Nodes(_, bytes) | Entry::Pods(_, bytes)) = entry;
        *bytes
    }
}

/// Decoded buckets by what they hold and their digest, bounded in bytes of memory.
#[derive(Debug)]
pub struct Cache {
    entries: sync::Cache<(Kind, Digest), Entry, ByBytes>,
}

impl Cache {
    /// What a usual bucket takes; only a hint for the size of tables.
    const USUAL_BUCKET_BYTES: u64 = 64 << 10;
    /// What an entry takes besides its items: key, links and pointers.
    const ENTRY_BYTES: u64 = 256;

    /// A cache that holds buckets of at most so many bytes together. With 0 it holds none.
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
        let entries = sync::Cache::with_options(
            options,
            ByBytes,
            quick_cache::DefaultHashBuilder::default(),
            sync::DefaultLifecycle::default(),
        );
        Self { entries }
    }

    /// Bytes of memory that the buckets in the cache take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.weight()
    }

    /// Buckets in the cache.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.entries.len()
    }
}

/// What a bucket may hold.
pub(crate) trait Cacheable: Sized {
    /// The bucket of a digest, if it is here.
    fn get(cache: &Cache, digest: &Digest) -> Option<Decoded<Self>>;
    /// Keeps a bucket, as far as there is room.
    fn put(cache: &Cache, digest: Digest, bucket: &Decoded<Self>);
}

impl Cacheable for Node {
    fn get(cache: &Cache, digest: &Digest) -> Option<Decoded<Self>> {
        match cache.entries.get(&(Kind::Nodes, *digest))? {
            Entry::Nodes(bucket, _) => Some(bucket),
            Entry::Pods(..) => None,
        }
    }

    fn put(cache: &Cache, digest: Digest, bucket: &Decoded<Self>) {
        let bytes = Cache::ENTRY_BYTES + bucket.items.iter().map(node_bytes).sum::<u64>();
        cache
            .entries
            .insert((Kind::Nodes, digest), Entry::Nodes(bucket.clone(), bytes));
    }
}

impl Cacheable for Pod {
    fn get(cache: &Cache, digest: &Digest) -> Option<Decoded<Self>> {
        match cache.entries.get(&(Kind::Pods, *digest))? {
            Entry::Pods(bucket, _) => Some(bucket),
            Entry::Nodes(..) => None,
        }
    }

    fn put(cache: &Cache, digest: Digest, bucket: &Decoded<Self>) {
        let bytes = Cache::ENTRY_BYTES + bucket.items.iter().map(pod_bytes).sum::<u64>();
        cache
            .entries
            .insert((Kind::Pods, digest), Entry::Pods(bucket.clone(), bytes));
    }
}

/// What an allocation takes besides its content, roughly: the allocator's header and rounding.
const ALLOCATION_BYTES: usize = 16;

fn text_bytes(text: &str) -> usize {
    if text.is_empty() {
        0
    } else {
        text.len() + ALLOCATION_BYTES
    }
}

fn label_bytes(labels: &Labels) -> usize {
    let text: usize = labels.iter().map(|(key, value)| key.len() + value.len()).sum();
    text + labels.len() * size_of::<(usize, usize)>() + 2 * ALLOCATION_BYTES
}

fn node_bytes(node: &Node) -> u64 {
    let taints: usize = node
        .taints
        .iter()
        .map(|taint| size_of_val(taint) + text_bytes(&taint.key) + text_bytes(&taint.value))
        .sum();
    (size_of::<Node>() + text_bytes(&node.name) + label_bytes(&node.labels) + taints) as u64
}

fn pod_bytes(pod: &Pod) -> u64 {
    let controller = pod
        .controller
        .as_ref()
        .map_or(0, |ControllerRef { kind, name, uid }| {
            text_bytes(kind) + text_bytes(name) + text_bytes(uid)
        });
    let target = match &pod.target {
        Target::Bound(node) | Target::Meant(node) => text_bytes(node),
        Target::Nowhere => 0,
    };
    let own = text_bytes(&pod.name) + text_bytes(&pod.uid) + label_bytes(&pod.labels);
    (size_of::<Pod>() + own + controller + target) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(nodes: usize) -> Decoded<Node> {
        let node = |index| Node {
            name: format!("node-{index}"),
            labels: Labels::default(),
            taints: Vec::new(),
            unschedulable: false,
            ready: None,
        };
        Decoded {
            items: (0..nodes).map(node).collect(),
            place: Place { count: 1, index: 0 },
        }
    }

    #[test]
    fn a_bucket_is_found_by_kind_and_digest() {
        let cache = Cache::new(ByteSize::mib(1));
        Node::put(&cache, [1; 32], &bucket(3));
        assert_eq!(Node::get(&cache, &[1; 32]).unwrap().items.len(), 3);
        assert!(Node::get(&cache, &[2; 32]).is_none());
        assert!(Pod::get(&cache, &[1; 32]).is_none());
    }

    #[test]
    fn the_bound_in_bytes_holds_whatever_is_put_in() {
        let capacity = ByteSize(64 << 10);
        let cache = Cache::new(capacity);
        for digest in 0..200_u8 {
            Node::put(&cache, [digest; 32], &bucket(20));
            assert!(
                cache.bytes() <= capacity.0,
                "{} bytes after {digest}",
                cache.bytes()
            );
        }
        assert!(cache.buckets() > 1, "the cache keeps some");
        assert!(cache.buckets() < 200, "the cache evicts");
        Node::put(&cache, [255; 32], &bucket(100_000));
        assert!(
            Node::get(&cache, &[255; 32]).is_none(),
            "larger than the whole cache"
        );
        let none = Cache::new(ByteSize(0));
        Node::put(&none, [1; 32], &bucket(1));
        assert!(Node::get(&none, &[1; 32]).is_none());
    }
}
