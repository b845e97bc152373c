//! Projections kept in their encoded form, in the buckets in which they are sent.
//!
//! A bucket on the wire is the concatenation of its members, and of what they share, so that a snapshot costs a copy, and a digest
//! is computed again only after its bucket changed: a snapshot of what did not change costs a look at each digest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use nodewise_client::Digest;
use nodewise_proto::v1;
use sha2::{Digest as _, Sha256};

use crate::project::KeySet;

mod stored;

pub(crate) use stored::{Part, Stored};
use stored::{shared_len, write_shared};

/// Objects of one kind, by bucket and name.
#[derive(Debug)]
pub(crate) struct Buckets {
    list: Vec<Bucket>,
    len: usize,
    /// The labels that are sent: what is remembered holds for these.
    keys: Arc<KeySet>,
}

#[derive(Debug, Default)]
struct Bucket {
    /// Ordered by name.
    members: Vec<Arc<Stored>>,
    /// Absent after a change.
    remembered: Option<Remembered>,
}

/// The digest of a bucket and of what was sent after it in the same bucket.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    /// The digest of the latter alone; absent when there was nothing.
    beside: Option<Digest>,
    digest: Digest,
}

impl Bucket {
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.members.binary_search_by(|member| member.name().cmp(name))
    }

    fn put(&mut self, object: Arc<Stored>, keys: &KeySet) -> Option<Arc<Stored>> {
        match self.find(object.name()) {
            Ok(index) => {
                if !self.members[index].is_sent_alike(&object, keys) {
                    self.remembered = None;
                }
                Some(std::mem::replace(&mut self.members[index], object))
            }
            Err(index) => {
                self.remembered = None;
                self.members.insert(index, object);
                None
            }
        }
    }
}

impl Buckets {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            list: (0..count).map(|_| Bucket::default()).collect(),
            len: 0,
            keys: Arc::default(),
        }
    }

    /// Sends these labels from now on.
    fn send(&mut self, keys: &Arc<KeySet>) {
        if !Arc::ptr_eq(&self.keys, keys) {
            self.keys = Arc::clone(keys);
            self.list.iter_mut().for_each(|bucket| bucket.remembered = None);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Keeps an object; answers with the one of that name that was in its bucket before.
    pub(crate) fn put(&mut self, object: Arc<Stored>) -> Option<Arc<Stored>> {
        let old = self.list[object.bucket() as usize].put(object, &self.keys);
        self.len += usize::from(old.is_none());
        old
    }

    pub(crate) fn remove(&mut self, bucket: u32, name: &str) -> Option<Arc<Stored>> {
        let bucket = &mut self.list[bucket as usize];
        let index = bucket.find(name).ok()?;
        bucket.remembered = None;
        self.len -= 1;
        Some(bucket.members.remove(index))
    }

    /// The objects of one bucket, ordered by name.
    pub(crate) fn members(&self, bucket: u32) -> &[Arc<Stored>] {
        &self.list[bucket as usize].members
    }

    pub(crate) fn contains(&self, bucket: u32, name: &str) -> bool {
        self.get(bucket, name).is_some()
    }

    pub(crate) fn get(&self, bucket: u32, name: &str) -> Option<&Arc<Stored>> {
        let bucket = &self.list[bucket as usize];
        bucket.find(name).ok().map(|index| &bucket.members[index])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.list.iter().flat_map(|bucket| &bucket.members)
    }
}

/// A set of buckets as it is sent, and what that took.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// In order of their index.
    pub(crate) buckets: Vec<v1::Bucket>,
    /// Bytes that were put together.
    pub(crate) written: usize,
    /// Bytes that were hashed.
    pub(crate) hashed: usize,
    keys: Arc<KeySet>,
}

/// The digest of a bucket without members.
static EMPTY: LazyLock<Digest> = LazyLock::new(|| Sha256::digest([]).into());

/// The buckets of a set, each followed by that of another set: inline, or by digest alone when `known` says that the receiver
/// has it. What did not change is not hashed again, and put together only for a receiver that lacks it.
pub(crate) fn render(
    mut first: Option<&mut Buckets>,
    mut second: Option<&mut Buckets>,
    keys: &Arc<KeySet>,
    count: u32,
    known: &dyn Fn(&Digest) -> bool,
) -> Rendered {
    let mut rendered = Rendered {
        keys: Arc::clone(keys),
        ..Rendered::default()
    };
    if let Some(set) = &mut first {
        set.send(keys);
    }
    if let Some(set) = &mut second {
        set.send(keys);
    }
    for index in 0..count as usize {
        let bucket = match (occupied(&mut first, index), occupied(&mut second, index)) {
            (Some(bucket), beside) => rendered.render(bucket, beside, known),
            (None, Some(bucket)) => rendered.render(bucket, None, known),
            (None, None) => sent(*EMPTY, (!known(&EMPTY)).then(Bytes::new)),
        };
        rendered.buckets.push(bucket);
    }
    rendered
}

fn occupied<'a>(set: &'a mut Option<&mut Buckets>, index: usize) -> Option<&'a mut Bucket> {
    let bucket = &mut set.as_mut()?.list[index];
    (!bucket.members.is_empty()).then_some(bucket)
}

fn sent(digest: Digest, data: Option<Bytes>) -> v1::Bucket {
    v1::Bucket {
        data,
        digest: Bytes::copy_from_slice(&digest),
    }
}

impl Rendered {
    fn render(
        &mut self,
        bucket: &mut Bucket,
        mut beside: Option<&mut Bucket>,
        known: &dyn Fn(&Digest) -> bool,
    ) -> v1::Bucket {
        let digest_beside = beside.as_deref_mut().map(|beside| self.digest_alone(beside));
        let remembered = bucket
            .remembered
            .filter(|remembered| remembered.beside == digest_beside)
            .map(|remembered| remembered.digest);
        if let Some(digest) = remembered.filter(|digest| known(digest)) {
            return sent(digest, None);
        }
        let data = self.write(bucket, beside.as_deref());
        let digest = remembered.unwrap_or_else(|| self.hash(&data));
        bucket.remembered = Some(Remembered {
            beside: digest_beside,
            digest,
        });
        sent(digest, (!known(&digest)).then_some(data))
    }

    /// The digest of a bucket that is sent after others: by it they tell whether it is the one that they know.
    fn digest_alone(&mut self, bucket: &mut Bucket) -> Digest {
        if let Some(Remembered { beside: None, digest }) = bucket.remembered {
            return digest;
        }
        let data = self.write(bucket, None);
        let digest = self.hash(&data);
        bucket.remembered = Some(Remembered { beside: None, digest });
        digest
    }

    fn write(&mut self, bucket: &Bucket, beside: Option<&Bucket>) -> Bytes {
        let members = || {
            bucket
                .members
                .iter()
                .chain(beside.into_iter().flat_map(|beside| &beside.members))
        };
        let keys = Arc::clone(&self.keys);
        let mut shared = Numbered::default();
        let numbers: Vec<u32> = members()
            .map(|member| shared.number(member.part(), &keys))
            .collect();
        let numbered = || members().zip(&numbers);
        let own: usize = numbered()
            .map(|(member, number)| member.written_len(*number, &keys))
            .sum();
        let parts: usize = shared.parts.iter().map(|part| shared_len(part)).sum();
        let mut buffer = BytesMut::with_capacity(own + parts);
        numbered().for_each(|(member, number)| member.write(*number, &keys, &mut buffer));
        shared
            .parts
            .iter()
            .for_each(|part| write_shared(part, &mut buffer));
        self.written += buffer.len();
        buffer.freeze()
    }

    fn hash(&mut self, data: &[u8]) -> Digest {
        self.hashed += data.len();
        Sha256::digest(data).into()
    }
}

/// What the members of a bucket share, in the order in which they first have it.
#[derive(Default)]
struct Numbered<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    /// By what is sent of them, so that a bucket has the same bytes however its members came to be.
    numbers: HashMap<Cow<'a, [u8]>, u32>,
    last: Option<(&'a Arc<Part>, u32)>,
}

impl<'a> Numbered<'a> {
    /// The number of a part, from 1; 0 for none.
    fn number(&mut self, part: Option<&'a Arc<Part>>, keys: &KeySet) -> u32 {
        let Some(part) = part.filter(|part| !part.encoded().is_empty()) else {
            return 0;
        };
        // Most have what the one before them has.
        if let Some((last, number)) = self.last
            && Arc::ptr_eq(last, part)
        {
            return number;
        }
        let sent = part.sent(keys);
        let number = if sent.is_empty() {
            0
        } else {
            *self.numbers.entry(sent).or_insert_with_key(|sent| {
                self.parts.push(sent.clone());
                u32::try_from(self.parts.len()).expect("fewer than there are pods")
            })
        };
        self.last = Some((part, number));
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

    fn stored(bucket: u32, name: &str, version: &str) -> Arc<Stored> {
        Stored::new(&pod(name), None, version, bucket).into()
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

    // Nothing that pods share is sent twice in a bucket, and it is the same bytes whatever came first.
    #[test]
    fn what_pods_share_is_sent_once() {
        let sharing = |name: &str, hash: &str| {
            let part = Part::new(&of_revision(hash).encode_to_vec(), None);
            Arc::new(Stored::new(&pod(name), Some(Arc::new(part)), "1", 0))
        };
        let old = Arc::new(Part::new(&of_revision("old").encode_to_vec(), None));
        let alike = |name: &str| Arc::new(Stored::new(&pod(name), Some(Arc::clone(&old)), "1", 0));
        let nothing = Arc::new(Stored::new(&pod("e"), Some(Part::new(&[], None).into()), "1", 0));
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
    fn sets_are_sent_side_by_side() {
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
    fn what_is_known_goes_by_digest_until_it_changes() {
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

    /// A receiver that keeps everything it was sent.
    #[derive(Default)]
    struct Receiver(std::collections::HashSet<Digest>);

    impl Receiver {
        /// Sends it a snapshot; answers with bytes put together, bytes hashed and buckets sent inline.
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

    // Issue of many large DaemonSets: a sync of which nothing changed looks at digests and at nothing else.
    #[test]
    fn what_did_not_change_is_neither_put_together_nor_hashed() {
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
        // Another replica lacks everything: it is put together for it, and hashed no more.
        let (written, hashed, inline) = Receiver::default().send(&mut owned, &mut orphans);
        assert!(written > 0);
        assert_eq!((hashed, inline), (0, 2));
    }

    #[test]
    fn an_empty_bucket_costs_nothing() {
        let rendered = render(Some(&mut Buckets::new(3)), None, &keys(), 3, &|_| false);
        assert_eq!((rendered.written, rendered.hashed), (0, 0));
        assert_eq!(rendered.buckets[2].digest[..], Sha256::digest([])[..]);
    }

    // However it came to be, a bucket is what the same members give from scratch.
    #[test]
    fn remembered_digests_are_those_of_the_bytes() {
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
            let everything_is_known = random.random_bool(0.5);
            let [owned, orphans] = &mut sets;
            let rendered = render(Some(owned), Some(orphans), &keys(), 2, &|_| everything_is_known);
            let fresh = members
                .each_ref()
                .map(|set| buckets(&set.iter().copied().collect::<Vec<_>>()));
            let [mut owned, mut orphans] = fresh;
            let expected = render(Some(&mut owned), Some(&mut orphans), &keys(), 2, &|_| false).buckets;
            for (bucket, expected) in rendered.buckets.iter().zip(&expected) {
                assert_eq!(bucket.digest, expected.digest);
                let data = expected.data.as_deref().expect("inline");
                assert_eq!(bucket.digest[..], Sha256::digest(data)[..]);
                assert_eq!(bucket.data.is_none(), everything_is_known);
            }
        }
    }
}
