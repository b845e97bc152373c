//! Objects in their encoded form, in the buckets in which they are sent.
//!
//! On the wire, a bucket is the concatenation of its objects and of the fields that they share. So rendering a snapshot only
//! copies bytes. The digest of a bucket is cached until the bucket changes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use nodewise_proto::{bucket::Digest, v1};
use sha2::{Digest as _, Sha256};

use crate::label_keys::KeySet;

mod encoded_object;
mod placement;

pub use placement::Placement;

pub use encoded_object::{EncodedObject, SharedFields};
use encoded_object::{shared_len, write_shared};

/// The objects of one kind, by bucket and name.
#[derive(Debug)]
pub struct Buckets {
    list: Vec<Bucket>,
    len: usize,
    placement: Placement,
    /// The number of buckets changes with the number of objects, up to this.
    grows_to: Option<u32>,
    /// The label keys that are sent. The cached digests are valid for these keys.
    keys: Arc<KeySet>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// Ordered by name.
    members: Vec<Arc<EncodedObject>>,
    /// The cached digest; `None` after a change.
    cached: Option<CachedDigest>,
}

/// The digest of a bucket, together with a bucket of a second set that was sent after it.
#[derive(Clone, Copy, Debug)]
struct CachedDigest {
    /// The digest of the second bucket alone; `None` if there was none.
    second: Option<Digest>,
    digest: Digest,
}

impl Bucket {
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.members.binary_search_by(|member| member.name().cmp(name))
    }

    fn put(&mut self, object: Arc<EncodedObject>, keys: &KeySet) -> Option<Arc<EncodedObject>> {
        match self.find(object.name()) {
            Ok(index) => {
                if !self.members[index].is_sent_as_same_bytes(&object, keys) {
                    self.cached = None;
                }
                Some(std::mem::replace(&mut self.members[index], object))
            }
            Err(index) => {
                self.cached = None;
                self.members.insert(index, object);
                None
            }
        }
    }
}

impl Buckets {
    /// Creates `count` empty buckets, of nodes or of pods by node.
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self::of(Placement::Node, count)
    }

    /// Creates `count` empty buckets.
    #[must_use]
    pub fn of(placement: Placement, count: u32) -> Self {
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
            self.list.iter_mut().for_each(|bucket| bucket.cached = None);
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

    /// Inserts an object. Returns the object of the same name that was in its bucket before.
    pub fn put(&mut self, object: Arc<EncodedObject>) -> Option<Arc<EncodedObject>> {
        let index = self.index(&object);
        let old = self.list[index as usize].put(object, &self.keys);
        self.len += usize::from(old.is_none());
        self.resize();
        old
    }

    /// Removes the object of this name from the bucket to which this object belongs.
    pub fn take_out(&mut self, object: &EncodedObject) -> Option<Arc<EncodedObject>> {
        self.remove(self.index(object), object.name())
    }

    /// Removes the object of this name from a bucket and returns it.
    ///
    /// # Panics
    /// Panics if there is no bucket of this number. So do the other methods that take a bucket.
    pub fn remove(&mut self, bucket: u32, name: &str) -> Option<Arc<EncodedObject>> {
        let bucket = &mut self.list[bucket as usize];
        let index = bucket.find(name).ok()?;
        bucket.cached = None;
        self.len -= 1;
        let removed = bucket.members.remove(index);
        self.resize();
        Some(removed)
    }

    /// Returns the objects of one bucket, ordered by name.
    #[must_use]
    pub fn members(&self, bucket: u32) -> &[Arc<EncodedObject>] {
        &self.list[bucket as usize].members
    }

    /// Whether a bucket has an object of this name.
    #[must_use]
    pub fn contains(&self, bucket: u32, name: &str) -> bool {
        self.get(bucket, name).is_some()
    }

    /// Returns the object of this name in a bucket.
    #[must_use]
    pub fn get(&self, bucket: u32, name: &str) -> Option<&Arc<EncodedObject>> {
        let bucket = &self.list[bucket as usize];
        bucket.find(name).ok().map(|index| &bucket.members[index])
    }

    /// Returns all objects, bucket by bucket.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<EncodedObject>> {
        self.list.iter().flat_map(|bucket| &bucket.members)
    }
}

fn empty_list(count: u32) -> Vec<Bucket> {
    (0..count).map(|_| Bucket::default()).collect()
}

/// A set of buckets to be sent, and the work that rendering them took.
#[derive(Debug, Default)]
pub struct RenderedBuckets {
    /// The buckets, in order of their index.
    pub buckets: Vec<v1::Bucket>,
    /// Number of bytes that were encoded.
    pub written: usize,
    /// Number of bytes that were hashed.
    pub hashed: usize,
    keys: Arc<KeySet>,
}

/// The digest of an empty bucket.
static EMPTY: LazyLock<Digest> = LazyLock::new(|| Sha256::digest([]).into());

/// Renders the buckets of `first`, each followed by the bucket of `second` with the same index. A bucket is sent by digest
/// alone if `known` says that the receiver has it, else inline. An unchanged bucket is not hashed again, and is encoded only
/// for a receiver that does not have it.
pub fn render(
    mut first: Option<&mut Buckets>,
    mut second: Option<&mut Buckets>,
    keys: &Arc<KeySet>,
    count: u32,
    known: &dyn Fn(&Digest) -> bool,
) -> RenderedBuckets {
    let mut rendered = RenderedBuckets {
        keys: Arc::clone(keys),
        ..RenderedBuckets::default()
    };
    if let Some(set) = &mut first {
        set.send(keys);
    }
    if let Some(set) = &mut second {
        set.send(keys);
    }
    for index in 0..count as usize {
        let bucket = match (
            nonempty_bucket(&mut first, index),
            nonempty_bucket(&mut second, index),
        ) {
            (Some(bucket), second) => rendered.render(bucket, second, known),
            (None, Some(bucket)) => rendered.render(bucket, None, known),
            (None, None) => bucket_message(*EMPTY, (!known(&EMPTY)).then(Bytes::new)),
        };
        rendered.buckets.push(bucket);
    }
    rendered
}

fn nonempty_bucket<'a>(set: &'a mut Option<&mut Buckets>, index: usize) -> Option<&'a mut Bucket> {
    let bucket = &mut set.as_mut()?.list[index];
    (!bucket.members.is_empty()).then_some(bucket)
}

fn bucket_message(digest: Digest, data: Option<Bytes>) -> v1::Bucket {
    v1::Bucket {
        data,
        digest: Bytes::copy_from_slice(&digest),
    }
}

impl RenderedBuckets {
    fn render(
        &mut self,
        bucket: &mut Bucket,
        mut second: Option<&mut Bucket>,
        known: &dyn Fn(&Digest) -> bool,
    ) -> v1::Bucket {
        let second_digest = second.as_deref_mut().map(|second| self.digest_alone(second));
        let cached = bucket
            .cached
            .filter(|cached| cached.second == second_digest)
            .map(|cached| cached.digest);
        if let Some(digest) = cached.filter(|digest| known(digest)) {
            return bucket_message(digest, None);
        }
        let data = self.write(bucket, second.as_deref());
        let digest = cached.unwrap_or_else(|| self.hash(&data));
        bucket.cached = Some(CachedDigest {
            second: second_digest,
            digest,
        });
        bucket_message(digest, (!known(&digest)).then_some(data))
    }

    /// The digest of the second bucket alone. It shows whether the second bucket has changed.
    fn digest_alone(&mut self, bucket: &mut Bucket) -> Digest {
        if let Some(CachedDigest { second: None, digest }) = bucket.cached {
            return digest;
        }
        let data = self.write(bucket, None);
        let digest = self.hash(&data);
        bucket.cached = Some(CachedDigest { second: None, digest });
        digest
    }

    fn write(&mut self, bucket: &Bucket, second: Option<&Bucket>) -> Bytes {
        let members = || {
            bucket
                .members
                .iter()
                .chain(second.into_iter().flat_map(|second| &second.members))
        };
        let keys = Arc::clone(&self.keys);
        let mut shared = SharedNumbers::default();
        let numbers: Vec<u32> = members()
            .map(|member| shared.number(member.shared_fields(), &keys))
            .collect();
        let with_numbers = || members().zip(&numbers);
        let own: usize = with_numbers()
            .map(|(member, number)| member.written_len(*number, &keys))
            .sum();
        let parts: usize = shared
            .parts
            .iter()
            .map(|shared_fields| shared_len(shared_fields))
            .sum();
        let mut buffer = BytesMut::with_capacity(own + parts);
        with_numbers().for_each(|(member, number)| member.write(*number, &keys, &mut buffer));
        shared
            .parts
            .iter()
            .for_each(|shared_fields| write_shared(shared_fields, &mut buffer));
        self.written += buffer.len();
        buffer.freeze()
    }

    fn hash(&mut self, data: &[u8]) -> Digest {
        self.hashed += data.len();
        Sha256::digest(data).into()
    }
}

/// The shared fields of the objects of a bucket, numbered in order of their first use.
#[derive(Default)]
struct SharedNumbers<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    /// The numbers, by the encoded fields that are sent, so that the bytes of a bucket do not depend on the order of its
    /// changes.
    numbers: HashMap<Cow<'a, [u8]>, u32>,
    last: Option<(&'a Arc<SharedFields>, u32)>,
}

impl<'a> SharedNumbers<'a> {
    /// The number of the shared fields of an object, from 1; 0 if nothing is shared.
    fn number(&mut self, shared_fields: Option<&'a Arc<SharedFields>>, keys: &KeySet) -> u32 {
        let Some(shared_fields) = shared_fields.filter(|shared_fields| !shared_fields.encoded().is_empty())
        else {
            return 0;
        };
        // Most objects share the fields of the object before them.
        if let Some((last, number)) = self.last
            && Arc::ptr_eq(last, shared_fields)
        {
            return number;
        }
        let sent = shared_fields.sent(keys);
        let number = if sent.is_empty() {
            0
        } else {
            *self.numbers.entry(sent).or_insert_with_key(|sent| {
                self.parts.push(sent.clone());
                u32::try_from(self.parts.len()).expect("fewer than there are pods")
            })
        };
        self.last = Some((shared_fields, number));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use prost::Message as _;
    use rand::{RngExt as _, SeedableRng as _};

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

    fn stored(bucket: u32, name: &str, version: &str) -> Arc<EncodedObject> {
        EncodedObject::new(&pod(name), None, version, bucket).into()
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
            Arc::new(EncodedObject::new(
                &pod(name),
                Some(Arc::new(shared_fields)),
                "1",
                0,
            ))
        };
        let old = Arc::new(SharedFields::new(&of_revision("old").encode_to_vec(), None));
        let alike = |name: &str| Arc::new(EncodedObject::new(&pod(name), Some(Arc::clone(&old)), "1", 0));
        let nothing = Arc::new(EncodedObject::new(
            &pod("e"),
            Some(SharedFields::new(&[], None).into()),
            "1",
            0,
        ));
        let members = [
            alike("a"),
            sharing("b", "new"),
            alike("c"),
            alike("d"),
            nothing,
            sharing("f", "new"),
        ];
        let sent = |order: &[usize]| {
            let mut buckets = Buckets::new(1);
            for index in order {
                buckets.put(Arc::clone(&members[*index]));
            }
            render(Some(&mut buckets), None, &keys(), 1, &|_| false)
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

    fn buckets(pods: &[(u32, &str)]) -> Buckets {
        let mut buckets = Buckets::new(2);
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
        let sent = render(Some(&mut owned), Some(&mut orphans), &keys(), 2, &|_| false).buckets;
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
        let first = render(Some(&mut owned), None, &keys(), 2, &|_| false).buckets;
        let known: Vec<Bytes> = first.iter().map(|bucket| bucket.digest.clone()).collect();
        let is_known = |digest: &Digest| known.iter().any(|known| **known == digest[..]);
        let second = render(Some(&mut owned), None, &keys(), 2, &is_known).buckets;
        assert!(second.iter().all(|bucket| bucket.data.is_none()));
        owned.remove(1, "c");
        owned.put(stored(1, "d", "2"));
        let third = render(Some(&mut owned), None, &keys(), 2, &is_known).buckets;
        assert_eq!(third[0], second[0]);
        assert_eq!(names(&third[1]), ["d"]);
        assert_eq!(owned.len(), 2);
    }

    #[test]
    fn an_empty_bucket_is_present_and_empty() {
        let sent = render(None, None, &keys(), 1, &|_| false).buckets;
        assert_eq!(sent[0].data.as_deref(), Some(&[][..]));
    }

    /// A receiver that keeps all buckets.
    #[derive(Default)]
    struct Receiver(std::collections::HashSet<Digest>);

    impl Receiver {
        /// Sends a snapshot. Returns the number of bytes encoded, bytes hashed, and buckets sent inline.
        fn send(&mut self, owned: &mut Buckets, orphans: &mut Buckets) -> (usize, usize, usize) {
            let rendered = render(Some(owned), Some(orphans), &keys(), 2, &|digest| {
                self.0.contains(digest)
            });
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
        let mut receiver = Receiver::default();
        let (written, hashed, inline) = receiver.send(&mut owned, &mut orphans);
        assert!(written > 0 && hashed > 0);
        assert_eq!(inline, 2);
        assert_eq!(receiver.send(&mut owned, &mut orphans), (0, 0, 0));
        owned.put(stored(0, "a", "2"));
        assert_eq!(
            receiver.send(&mut owned, &mut orphans),
            (0, 0, 0),
            "a new version of the same"
        );
        let size = |name| pod(name).encoded_len() + 2;
        owned.put(stored(1, "d", "1"));
        let changed = size("c") + size("d") + size("z");
        assert_eq!(
            receiver.send(&mut owned, &mut orphans),
            (changed, changed, 1),
            "only the bucket that changed, and of it not the orphans by themselves"
        );
        orphans.remove(0, "y");
        let left = size("a") + size("b");
        assert_eq!(receiver.send(&mut owned, &mut orphans), (left, left, 1));
        assert_eq!(receiver.send(&mut owned, &mut orphans), (0, 0, 0));
        // Another replica has no buckets. They are encoded for it, but not hashed again.
        let (written, hashed, inline) = Receiver::default().send(&mut owned, &mut orphans);
        assert!(written > 0);
        assert_eq!((hashed, inline), (0, 2));
    }

    #[test]
    fn an_empty_bucket_is_not_encoded_or_hashed() {
        let rendered = render(Some(&mut Buckets::new(3)), None, &keys(), 3, &|_| false);
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
                sets[set].remove(bucket, name);
                members[set].remove(&(bucket, name));
            }
            let all_known = random.random_bool(0.5);
            let [owned, orphans] = &mut sets;
            let rendered = render(Some(owned), Some(orphans), &keys(), 2, &|_| all_known);
            let fresh = members
                .each_ref()
                .map(|set| buckets(&set.iter().copied().collect::<Vec<_>>()));
            let [mut owned, mut orphans] = fresh;
            let expected = render(Some(&mut owned), Some(&mut orphans), &keys(), 2, &|_| false).buckets;
            for (bucket, expected) in rendered.buckets.iter().zip(&expected) {
                assert_eq!(bucket.digest, expected.digest);
                let data = expected.data.as_deref().expect("inline");
                assert_eq!(bucket.digest[..], Sha256::digest(data)[..]);
                assert_eq!(bucket.data.is_none(), all_known);
            }
        }
    }
}
