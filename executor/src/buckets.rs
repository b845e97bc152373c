//! Projections kept in their encoded form, in the buckets in which they are sent.
//!
//! A bucket on the wire is the concatenation of its members, so that a snapshot costs a copy, and a digest is computed again
//! only after its bucket changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use nodewise_proto::v1;
use sha2::{Digest as _, Sha256};

/// A bucket's digest: SHA-256 of its bytes.
pub type Digest = [u8; 32];

/// One object: its resourceVersion and its encoded projection.
#[derive(Debug)]
pub(crate) struct Stored {
    version: Box<str>,
    encoded: Box<[u8]>,
}

impl Stored {
    pub(crate) fn new(version: &str, encoded: Vec<u8>) -> Self {
        Self {
            version: version.into(),
            encoded: encoded.into(),
        }
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

/// Objects of one kind, by bucket and name.
#[derive(Debug)]
pub(crate) struct Buckets {
    buckets: Vec<Bucket>,
    len: usize,
}

#[derive(Debug, Default)]
struct Bucket {
    members: BTreeMap<Arc<str>, Stored>,
    /// Absent after a change.
    digest: Option<Digest>,
}

impl Bucket {
    fn write(&self, buffer: &mut BytesMut) {
        for stored in self.members.values() {
            // `repeated <message> = 1` of NodeBucket and PodBucket alike.
            prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, buffer);
            prost::encoding::encode_varint(stored.encoded.len() as u64, buffer);
            buffer.put_slice(&stored.encoded);
        }
    }
}

impl Buckets {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            buckets: (0..count).map(|_| Bucket::default()).collect(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, bucket: u32, name: &str) -> Option<&Stored> {
        self.buckets[bucket as usize].members.get(name)
    }

    pub(crate) fn insert(&mut self, bucket: u32, name: Arc<str>, stored: Stored) {
        let bucket = &mut self.buckets[bucket as usize];
        bucket.digest = None;
        self.len += usize::from(bucket.members.insert(name, stored).is_none());
    }

    pub(crate) fn remove(&mut self, bucket: u32, name: &str) -> Option<Stored> {
        let bucket = &mut self.buckets[bucket as usize];
        let removed = bucket.members.remove(name)?;
        bucket.digest = None;
        self.len -= 1;
        Some(removed)
    }

    pub(crate) fn iter_named(&self) -> impl Iterator<Item = (&Arc<str>, &Stored)> {
        self.buckets.iter().flat_map(|bucket| bucket.members.iter())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stored> {
        self.iter_named().map(|(_, stored)| stored)
    }
}

/// The buckets of several sets side by side, as they are sent: inline, or by digest alone when `known` says that the
/// receiver has it.
pub(crate) fn render(
    sets: &mut [&mut Buckets],
    count: u32,
    known: &dyn Fn(&Digest) -> bool,
) -> Vec<v1::Bucket> {
    (0..count as usize)
        .map(|index| render_one(sets, index, known))
        .collect()
}

fn render_one(sets: &mut [&mut Buckets], index: usize, known: &dyn Fn(&Digest) -> bool) -> v1::Bucket {
    let mut parts: Vec<&mut Bucket> = sets
        .iter_mut()
        .map(|set| &mut set.buckets[index])
        .filter(|bucket| !bucket.members.is_empty())
        .collect();
    let remembered = match parts.as_slice() {
        [only] => only.digest,
        _ => None,
    };
    let by_digest = |digest: Digest, data| v1::Bucket {
        data,
        digest: Bytes::copy_from_slice(&digest),
    };
    if let Some(digest) = remembered.filter(|digest| known(digest)) {
        return by_digest(digest, None);
    }
    let mut buffer = BytesMut::new();
    for part in &parts {
        part.write(&mut buffer);
    }
    let data = buffer.freeze();
    let digest = remembered.unwrap_or_else(|| Sha256::digest(&data).into());
    if let [only] = parts.as_mut_slice() {
        only.digest = Some(digest);
    }
    if known(&digest) {
        by_digest(digest, None)
    } else {
        by_digest(digest, Some(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    fn pod(name: &str) -> v1::Pod {
        v1::Pod {
            name: name.into(),
            uid: format!("uid-{name}"),
            ..Default::default()
        }
    }

    fn buckets(pods: &[(u32, &str)]) -> Buckets {
        let mut buckets = Buckets::new(2);
        for (bucket, name) in pods {
            buckets.insert(
                *bucket,
                (*name).into(),
                Stored::new("1", pod(name).encode_to_vec()),
            );
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
        let sent = render(&mut [&mut owned, &mut orphans], 2, &|_| false);
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
        let first = render(&mut [&mut owned], 2, &|_| false);
        let known: Vec<Bytes> = first.iter().map(|bucket| bucket.digest.clone()).collect();
        let is_known = |digest: &Digest| known.iter().any(|known| **known == digest[..]);
        let second = render(&mut [&mut owned], 2, &is_known);
        assert!(second.iter().all(|bucket| bucket.data.is_none()));
        owned.remove(1, "c");
        owned.insert(1, "d".into(), Stored::new("2", pod("d").encode_to_vec()));
        let third = render(&mut [&mut owned], 2, &is_known);
        assert_eq!(third[0], second[0]);
        assert_eq!(names(&third[1]), ["d"]);
        assert_eq!(owned.len(), 2);
    }

    #[test]
    fn an_empty_bucket_is_present_and_empty() {
        let sent = render(&mut [], 1, &|_| false);
        assert_eq!(sent[0].data.as_deref(), Some(&[][..]));
    }
}
