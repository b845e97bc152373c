//! Objects in their encoded form, in the buckets in which they are sent.
//!
//! On the wire, a bucket is the concatenation of its objects and of the fields that they share. So rendering a snapshot mostly
//! copies bytes. The digest of a bucket is cached until the bucket changes.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::label_keys::KeySet;

mod encoded_node;
mod encoded_object;
mod encoded_pod;
mod node_labels;
mod placement;
mod render;
mod shared_fields;
mod shared_labels;
#[cfg(test)]
mod testing;
mod wire;

pub use encoded_object::{EncodedNode, EncodedObject, EncodedPod, Shared};
pub use node_labels::NodeLabels;
pub use placement::Placement;
pub use render::{RenderedBuckets, render};
pub use shared_fields::SharedFields;

use render::CachedDigests;

/// The nodes, by bucket and ordered by name.
pub type NodeBuckets = Buckets<NodeLabels>;

/// Pods, by bucket and ordered by name; in the buckets of their nodes by node, and then by name.
pub type PodBuckets = Buckets<SharedFields>;

/// The objects of one kind, by bucket and in the order in which the service keeps them.
#[derive(Debug)]
pub struct Buckets<S> {
    list: Vec<Bucket<S>>,
    len: usize,
    placement: Placement,
    /// The number of buckets changes with the number of objects, up to this.
    grows_to: Option<u32>,
    /// The label keys that are sent. The cached digests are valid for these keys.
    keys: Arc<KeySet>,
}

/// The node of an object if that matters, and the name of the object.
type Order<'a> = (&'a str, &'a str);

/// What the order of an object in its bucket depends on.
fn order<S: Shared>(placement: Placement, object: &EncodedObject<S>) -> Order<'_> {
    match placement {
        Placement::Node => (S::node(object), object.name()),
        Placement::Name => ("", object.name()),
    }
}

fn compare<S: Shared>(placement: Placement, one: &EncodedObject<S>, other: &EncodedObject<S>) -> Ordering {
    order(placement, one).cmp(&order(placement, other))
}

#[derive(Debug)]
struct Bucket<S> {
    /// In order.
    members: Vec<EncodedObject<S>>,
    /// The cached digests; none after a change.
    cached: CachedDigests,
}

impl<S> Default for Bucket<S> {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            cached: CachedDigests::default(),
        }
    }
}

impl<S: Shared> Bucket<S> {
    fn find(&self, placement: Placement, wanted: Order<'_>) -> Result<usize, usize> {
        self.members
            .binary_search_by(|member| order(placement, member).cmp(&wanted))
    }

    fn put(
        &mut self,
        object: EncodedObject<S>,
        placement: Placement,
        keys: &KeySet,
    ) -> Option<EncodedObject<S>> {
        match self.find(placement, order(placement, &object)) {
            Ok(index) => {
                if !self.members[index].is_sent_as_same_bytes(&object, keys) {
                    self.cached = CachedDigests::default();
                }
                Some(std::mem::replace(&mut self.members[index], object))
            }
            Err(index) => {
                self.cached = CachedDigests::default();
                // Lists of a large cluster would have up to twice the room that they need.
                if self.members.len() == self.members.capacity() {
                    self.members.reserve_exact(self.members.len() / 8 + 1);
                }
                self.members.insert(index, object);
                None
            }
        }
    }

    fn remove(&mut self, index: usize) -> EncodedObject<S> {
        self.cached = CachedDigests::default();
        self.members.remove(index)
    }
}

impl<S: Shared> Buckets<S> {
    fn new(placement: Placement, count: u32) -> Self {
        Self {
            list: empty_list(count),
            len: 0,
            placement,
            grows_to: None,
            keys: Arc::default(),
        }
    }

    /// The number of buckets.
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "the count was a u32")]
    pub fn count(&self) -> u32 {
        u32::try_from(self.list.len()).expect("the count was a u32")
    }

    /// Sets the label keys that are sent. Drops the cached digests if they change.
    fn send(&mut self, keys: &Arc<KeySet>) {
        if !Arc::ptr_eq(&self.keys, keys) {
            self.keys = Arc::clone(keys);
            for bucket in &mut self.list {
                bucket.cached = CachedDigests::default();
            }
        }
    }

    /// Whether no bucket has an object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of objects in all buckets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Inserts an object. Returns the object of the same name that was in its bucket before; of a pod, that of the same name and node.
    pub fn put(&mut self, object: EncodedObject<S>) -> Option<EncodedObject<S>> {
        let index = self.index(&object);
        let old = self.list[index].put(object, self.placement, &self.keys);
        self.len += usize::from(old.is_none());
        self.resize();
        old
    }

    /// Removes the object of this name from the bucket to which this object belongs; of a pod, that of its name and node.
    pub fn take_out(&mut self, object: &EncodedObject<S>) -> Option<EncodedObject<S>> {
        self.remove_at(self.index(object), order(self.placement, object))
    }

    fn remove_at(&mut self, index: usize, order: Order<'_>) -> Option<EncodedObject<S>> {
        let bucket = &mut self.list[index];
        let found = bucket.find(self.placement, order);
        let removed = bucket.remove(found.ok()?);
        self.len -= 1;
        self.resize();
        Some(removed)
    }

    /// Returns the objects of one bucket, in order.
    ///
    /// # Panics
    /// Panics if there is no bucket of this number.
    #[must_use]
    pub fn members(&self, bucket: u32) -> &[EncodedObject<S>] {
        &self.list[bucket as usize].members
    }

    /// Returns all objects, bucket by bucket.
    pub fn iter(&self) -> impl Iterator<Item = &EncodedObject<S>> {
        self.list.iter().flat_map(|bucket| &bucket.members)
    }
}

impl PodBuckets {
    /// Creates `count` empty buckets of pods.
    #[must_use]
    pub fn of_pods(placement: Placement, count: u32) -> Self {
        Self::new(placement, count)
    }
}

impl NodeBuckets {
    /// Creates `count` empty buckets of nodes.
    #[must_use]
    pub fn of_nodes(count: u32) -> Self {
        // The node of a node is the node itself.
        Self::new(Placement::Node, count)
    }

    /// Returns the node of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&EncodedNode> {
        let bucket = &self.list[self.index_of(name)];
        let found = bucket.find(self.placement, (name, name));
        found.ok().map(|index| &bucket.members[index])
    }

    /// Removes the node of this name and returns it.
    pub fn remove(&mut self, name: &str) -> Option<EncodedNode> {
        self.remove_at(self.index_of(name), (name, name))
    }
}

fn empty_list<S>(count: u32) -> Vec<Bucket<S>> {
    (0..count).map(|_| Bucket::default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use bytes::Bytes;
    use nodewise_proto::bucket::{Digest, Receiver};
    use nodewise_proto::v1;
    use prost::Message as _;
    use rand::{RngExt as _, SeedableRng as _};
    use sha2::{Digest as _, Sha256};

    fn keys() -> Arc<KeySet> {
        static KEYS: LazyLock<Arc<KeySet>> =
            LazyLock::new(|| crate::testing::keys(&["controller-revision-hash"]).into());
        Arc::clone(&KEYS)
    }

    fn pod(name: &str) -> v1::Pod {
        v1::Pod {
            name: name.into(),
            uid: format!("uid-{name}"),
            ..Default::default()
        }
    }

    fn without_fields() -> Arc<SharedFields> {
        Arc::new(SharedFields::new(&[], None))
    }

    /// A pod that is meant for a node of one of two buckets.
    fn meant_for(bucket: u32, name: &str) -> v1::Pod {
        let mut nodes = (0..).map(|number| format!("n{number}"));
        v1::Pod {
            target_node_name: nodes
                .find(|node| nodewise_proto::bucket::of(node, 2) == bucket)
                .expect("an endless list"),
            ..pod(name)
        }
    }

    fn stored(bucket: u32, name: &str, version: &str) -> EncodedPod {
        EncodedPod::of_pod(&meant_for(bucket, name), without_fields(), version)
    }

    fn of_revision(hash: &str) -> v1::SharedMetadata {
        v1::SharedMetadata {
            labels: vec![v1::Label {
                key: "controller-revision-hash".into(),
                value: hash.into(),
            }],
            controller: None,
        }
    }

    // Shared fields are sent once in a bucket, and the bytes do not depend on the order of inserts.
    #[test]
    fn shared_fields_are_sent_once() {
        let sharing = |name: &str, hash: &str| {
            let shared_fields = SharedFields::new(&of_revision(hash).encode_to_vec(), None);
            EncodedPod::of_pod(&pod(name), Arc::new(shared_fields), "1")
        };
        let old = Arc::new(SharedFields::new(&of_revision("old").encode_to_vec(), None));
        let alike = |name: &str| EncodedPod::of_pod(&pod(name), Arc::clone(&old), "1");
        let nothing = EncodedPod::of_pod(&pod("e"), without_fields(), "1");
        let members = [
            alike("a"),
            sharing("b", "new"),
            alike("c"),
            alike("d"),
            nothing,
            sharing("f", "new"),
        ];
        let sent = |order: &[usize]| {
            let mut buckets = PodBuckets::of_pods(Placement::Node, 1);
            for index in order {
                buckets.put(members[*index].clone());
            }
            render(Some(&mut buckets), None, &keys(), 1, &Receiver::EMPTY)
                .buckets
                .remove(0)
        };
        let bucket = sent(&[0, 1, 2, 3, 4, 5]);
        assert_eq!(bucket, sent(&[5, 3, 4, 1, 0, 2]));
        let bucket = v1::PodBucket::decode(bucket.data.expect("inline")).expect("a bucket");
        assert_eq!(bucket.shared_metadata, [of_revision("old"), of_revision("new")]);
        let numbers: Vec<_> = bucket.pods.iter().map(|pod| pod.shared_metadata).collect();
        assert_eq!(numbers, [1, 2, 1, 1, 0, 2]);
        assert!(bucket.pods.iter().all(|pod| pod.labels.is_empty()));
    }

    fn on_node(name: &str, node_name: &str, target_node_name: &str) -> EncodedPod {
        let pod = v1::Pod {
            node_name: node_name.into(),
            target_node_name: target_node_name.into(),
            phase: v1::PodPhase::Running.into(),
            ..pod(name)
        };
        EncodedPod::of_pod(&pod, without_fields(), "1")
    }

    // The service keeps the pods of nodes in this order. Orphans are among the others.
    #[test]
    fn pods_are_ordered_by_node_and_name() {
        let mut owned = PodBuckets::of_pods(Placement::Node, 1);
        let mut orphans = PodBuckets::of_pods(Placement::Node, 1);
        for (name, node, target) in [
            ("a", "n2", ""),
            ("b", "n1", ""),
            ("c", "", ""),
            ("d", "n1", ""),
            ("e", "", "n2"),
        ] {
            assert!(owned.put(on_node(name, node, target)).is_none());
        }
        for (name, node) in [("y", "n1"), ("x", "n3")] {
            orphans.put(on_node(name, node, ""));
        }
        let mut sent = || render(Some(&mut owned), Some(&mut orphans), &keys(), 1, &Receiver::EMPTY).buckets;
        assert_eq!(names(&sent()[0]), ["c", "b", "d", "y", "a", "e", "x"]);
        assert_eq!(
            owned.put(on_node("b", "n1", "")).expect("it is there").name(),
            "b"
        );
        assert!(
            owned.take_out(&on_node("b", "n2", "")).is_none(),
            "it is on another node"
        );
        assert!(owned.take_out(&on_node("b", "n1", "")).is_some());
        let mut by_name = PodBuckets::of_pods(Placement::Name, 1);
        for (name, node) in [("a", "n2"), ("b", "n1"), ("c", "")] {
            by_name.put(on_node(name, node, ""));
        }
        let sent = render(Some(&mut by_name), None, &keys(), 1, &Receiver::EMPTY).buckets;
        assert_eq!(names(&sent[0]), ["a", "b", "c"]);
    }

    fn buckets(pods: &[(u32, &str)]) -> PodBuckets {
        let mut buckets = PodBuckets::of_pods(Placement::Node, 2);
        for (bucket, name) in pods {
            buckets.put(stored(*bucket, name, "1"));
        }
        buckets
    }

    fn names(bucket: &v1::Bucket) -> Vec<String> {
        let data = bucket.data.clone().expect("inline");
        v1::PodBucket::decode(data)
            .expect("a bucket")
            .pods
            .into_iter()
            .map(|pod| pod.name)
            .collect()
    }

    #[test]
    fn two_sets_are_merged_per_bucket() {
        let mut owned = buckets(&[(0, "b"), (0, "a"), (1, "c")]);
        let mut orphans = buckets(&[(0, "z")]);
        let sent = render(Some(&mut owned), Some(&mut orphans), &keys(), 2, &Receiver::EMPTY).buckets;
        assert_eq!(names(&sent[0]), ["a", "b", "z"]);
        assert_eq!(names(&sent[1]), ["c"]);
        for bucket in sent {
            let data = bucket.data.expect("inline");
            assert_eq!(bucket.digest, Bytes::copy_from_slice(&Sha256::digest(&data)));
        }
    }

    #[test]
    fn a_known_bucket_is_sent_by_digest_until_it_changes() {
        let mut owned = buckets(&[(0, "a"), (1, "c")]);
        let first = render(Some(&mut owned), None, &keys(), 2, &Receiver::EMPTY).buckets;
        let known: Vec<Bytes> = first.iter().map(|bucket| bucket.digest.clone()).collect();
        let is_known = |digest: &Digest| known.iter().any(|known| **known == digest[..]);
        let second = render(Some(&mut owned), None, &keys(), 2, &Receiver::new(&is_known)).buckets;
        assert!(second.iter().all(|bucket| bucket.data.is_none()));
        owned.take_out(&stored(1, "c", "1"));
        owned.put(stored(1, "d", "2"));
        let third = render(Some(&mut owned), None, &keys(), 2, &Receiver::new(&is_known)).buckets;
        assert_eq!(third[0], second[0]);
        assert_eq!(names(&third[1]), ["d"]);
        assert_eq!(owned.len(), 2);
    }

    #[test]
    fn an_empty_bucket_is_present_and_empty() {
        let sent = render::<SharedFields>(None, None, &keys(), 1, &Receiver::EMPTY).buckets;
        assert_eq!(sent[0].data.as_deref(), Some(&[][..]));
    }

    /// A replica that keeps all buckets.
    #[derive(Default)]
    struct Replica(std::collections::HashSet<Digest>);

    impl Replica {
        /// Sends a snapshot. Returns the number of bytes encoded, bytes hashed, and buckets sent inline.
        fn send(&mut self, owned: &mut PodBuckets, orphans: &mut PodBuckets) -> (usize, usize, usize) {
            let has = |digest: &Digest| self.0.contains(digest);
            let rendered = render(Some(owned), Some(orphans), &keys(), 2, &Receiver::new(&has));
            let digests = rendered.buckets.iter().map(|bucket| bucket.digest[..].try_into());
            self.0
                .extend(digests.map(|digest: Result<Digest, _>| digest.expect("32 bytes")));
            let inline = rendered.buckets.iter().filter(|bucket| bucket.data.is_some());
            (rendered.written, rendered.hashed, inline.count())
        }
    }

    // With many large DaemonSets, a sync without changes only compares digests.
    #[test]
    fn an_unchanged_bucket_is_neither_encoded_nor_hashed() {
        let mut owned = buckets(&[(0, "a"), (0, "b"), (1, "c")]);
        let mut orphans = buckets(&[(0, "y"), (1, "z")]);
        let mut replica = Replica::default();
        let (written, hashed, inline) = replica.send(&mut owned, &mut orphans);
        assert!(written > 0 && hashed > 0);
        assert_eq!(inline, 2);
        assert_eq!(replica.send(&mut owned, &mut orphans), (0, 0, 0));
        owned.put(stored(0, "a", "2"));
        assert_eq!(
            replica.send(&mut owned, &mut orphans),
            (0, 0, 0),
            "a new version of the same"
        );
        let size = |bucket, name| meant_for(bucket, name).encoded_len() + 2;
        owned.put(stored(1, "d", "1"));
        let changed = size(1, "c") + size(1, "d") + size(1, "z");
        assert_eq!(
            replica.send(&mut owned, &mut orphans),
            (changed, changed, 1),
            "only the bucket that changed, and of it not the orphans by themselves"
        );
        orphans.take_out(&stored(0, "y", "1"));
        let left = size(0, "a") + size(0, "b");
        assert_eq!(replica.send(&mut owned, &mut orphans), (left, left, 1));
        assert_eq!(replica.send(&mut owned, &mut orphans), (0, 0, 0));
        // Another replica has no buckets. They are encoded for it, but not hashed again.
        let (written, hashed, inline) = Replica::default().send(&mut owned, &mut orphans);
        assert!(written > 0);
        assert_eq!((hashed, inline), (0, 2));
    }

    #[test]
    fn an_empty_bucket_is_not_encoded_or_hashed() {
        let rendered = render(
            Some(&mut PodBuckets::of_pods(Placement::Node, 3)),
            None,
            &keys(),
            3,
            &Receiver::EMPTY,
        );
        assert_eq!((rendered.written, rendered.hashed), (0, 0));
        assert_eq!(rendered.buckets[2].digest[..], Sha256::digest([])[..]);
    }

    // The bytes of a bucket do not depend on its history.
    #[test]
    fn cached_digests_match_the_bytes() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let mut random = rand::rngs::SmallRng::seed_from_u64(7);
        let (mut sets, mut members) = ([buckets(&[]), buckets(&[])], [BTreeSet::new(), BTreeSet::new()]);
        for _ in 0..2_000 {
            let (set, bucket) = (random.random_range(0..2), random.random_range(0..2));
            let (name, version) = (NAMES[random.random_range(0..4)], random.random_range(0..3_u32));
            if random.random_bool(0.5) {
                sets[set].put(stored(bucket, name, &version.to_string()));
                members[set].insert((bucket, name));
            } else {
                sets[set].take_out(&stored(bucket, name, ""));
                members[set].remove(&(bucket, name));
            }
            let all_known = random.random_bool(0.5);
            let [owned, orphans] = &mut sets;
            let rendered = render(
                Some(owned),
                Some(orphans),
                &keys(),
                2,
                &Receiver::new(&|_| all_known),
            );
            let fresh = members
                .each_ref()
                .map(|set| buckets(&set.iter().copied().collect::<Vec<_>>()));
            let [mut owned, mut orphans] = fresh;
            let expected = render(Some(&mut owned), Some(&mut orphans), &keys(), 2, &Receiver::EMPTY).buckets;
            for (bucket, expected) in rendered.buckets.iter().zip(&expected) {
                assert_eq!(bucket.digest, expected.digest);
                let data = expected.data.as_deref().expect("inline");
                assert_eq!(bucket.digest[..], Sha256::digest(data)[..]);
                assert_eq!(bucket.data.is_none(), all_known);
            }
        }
    }
}
