//! Writes buckets as bytes, and caches their digests.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use nodewise_proto::bucket::{Digest, Receiver};
use nodewise_proto::v1;
use sha2::{Digest as _, Sha256};

use super::encoded_object::{EncodedObject, Shared};
use super::placement::Placement;
use super::{Bucket, Buckets, compare};
use crate::label_keys::KeySet;

/// The cached digests of a bucket, one for each form in which it may be sent.
#[derive(Debug, Default)]
pub(super) struct CachedDigests {
    plain: Option<CachedDigest>,
    with_shared_labels: Option<CachedDigest>,
}

impl CachedDigests {
    fn of_form(&mut self, shares_labels: bool) -> &mut Option<CachedDigest> {
        if shares_labels {
            &mut self.with_shared_labels
        } else {
            &mut self.plain
        }
    }
}

/// The digest of a bucket, together with a bucket of a second set that was merged into it.
#[derive(Clone, Copy, Debug)]
struct CachedDigest {
    /// The digest of the second bucket alone; `None` if there was none.
    second: Option<Digest>,
    digest: Digest,
    /// Whether the bytes have shared labels.
    has_shared_labels: bool,
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
    /// Whether labels may be shared.
    shares_labels: bool,
}

/// The digest of an empty bucket.
static EMPTY: LazyLock<Digest> = LazyLock::new(|| Sha256::digest([]).into());

/// Renders the buckets of `first`, each merged with the bucket of `second` with the same index. A bucket is sent by digest alone if
/// the receiver has it, else inline. An unchanged bucket is not hashed again, and is encoded only for a receiver that does not have
/// it.
pub fn render<S: Shared>(
    mut first: Option<&mut Buckets<S>>,
    mut second: Option<&mut Buckets<S>>,
    keys: &Arc<KeySet>,
    count: u32,
    receiver: &Receiver<'_>,
) -> RenderedBuckets {
    let mut rendered = RenderedBuckets {
        keys: Arc::clone(keys),
        shares_labels: S::MAY_SHARE_LABELS && receiver.reads_shared_labels(),
        ..RenderedBuckets::default()
    };
    if let Some(set) = &mut first {
        set.send(keys);
    }
    if let Some(set) = &mut second {
        set.send(keys);
    }
    let placement = first.as_ref().or(second.as_ref()).map(|set| set.placement);
    for index in 0..count as usize {
        let bucket = match (
            nonempty_bucket(&mut first, index),
            nonempty_bucket(&mut second, index),
            placement,
        ) {
            (Some(bucket), second, Some(placement)) => rendered.render(placement, bucket, second, receiver),
            (None, Some(bucket), Some(placement)) => rendered.render(placement, bucket, None, receiver),
            _ => message(*EMPTY, false, (!receiver.has(&EMPTY)).then(Bytes::new)),
        };
        rendered.buckets.push(bucket);
    }
    rendered
}

fn nonempty_bucket<'a, S>(set: &'a mut Option<&mut Buckets<S>>, index: usize) -> Option<&'a mut Bucket<S>> {
    let bucket = &mut set.as_mut()?.list[index];
    (!bucket.members.is_empty()).then_some(bucket)
}

fn message(digest: Digest, has_shared_labels: bool, data: Option<Bytes>) -> v1::Bucket {
    let digest = Bytes::copy_from_slice(&digest);
    let (data, data_with_shared_labels) = if has_shared_labels {
        (None, data)
    } else {
        (data, None)
    };
    v1::Bucket {
        data,
        digest,
        data_with_shared_labels,
    }
}

impl RenderedBuckets {
    fn render<S: Shared>(
        &mut self,
        placement: Placement,
        bucket: &mut Bucket<S>,
        mut second: Option<&mut Bucket<S>>,
        receiver: &Receiver<'_>,
    ) -> v1::Bucket {
        let second_digest = second.as_deref_mut().map(|second| self.digest_alone(second));
        let cached = *bucket.cached.of_form(self.shares_labels);
        let cached = cached.filter(|cached| cached.second == second_digest);
        if let Some(cached) = cached.filter(|cached| receiver.has(&cached.digest)) {
            return message(cached.digest, cached.has_shared_labels, None);
        }
        let (data, has_shared_labels) = match second {
            None => self.write(&refs(bucket)),
            Some(second) => self.write(&merged(placement, bucket, second)),
        };
        let digest = cached.map_or_else(|| self.hash(&data), |cached| cached.digest);
        *bucket.cached.of_form(self.shares_labels) = Some(CachedDigest {
            second: second_digest,
            digest,
            has_shared_labels,
        });
        let is_known = receiver.has(&digest);
        message(digest, has_shared_labels, (!is_known).then_some(data))
    }

    /// The digest of the second bucket alone. It shows whether the second bucket has changed.
    fn digest_alone<S: Shared>(&mut self, bucket: &mut Bucket<S>) -> Digest {
        let cached = *bucket.cached.of_form(self.shares_labels);
        if let Some(CachedDigest {
            second: None, digest, ..
        }) = cached
        {
            return digest;
        }
        let (data, has_shared_labels) = self.write(&refs(bucket));
        let digest = self.hash(&data);
        *bucket.cached.of_form(self.shares_labels) = Some(CachedDigest {
            second: None,
            digest,
            has_shared_labels,
        });
        digest
    }

    /// Returns the bytes, and whether labels are shared in them.
    fn write<S: Shared>(&mut self, members: &[&EncodedObject<S>]) -> (Bytes, bool) {
        let (data, has_shared_labels) = S::write_bucket(members, &self.keys, self.shares_labels);
        self.written += data.len();
        (data, has_shared_labels)
    }

    fn hash(&mut self, data: &[u8]) -> Digest {
        self.hashed += data.len();
        Sha256::digest(data).into()
    }
}

fn refs<S>(bucket: &Bucket<S>) -> Vec<&EncodedObject<S>> {
    bucket.members.iter().collect()
}

/// The members of both buckets, in order.
fn merged<'a, S: Shared>(
    placement: Placement,
    first: &'a Bucket<S>,
    second: &'a Bucket<S>,
) -> Vec<&'a EncodedObject<S>> {
    let mut members = refs(first);
    members.extend(refs(second));
    // Both parts are sorted, which this sort makes use of.
    members.sort_by(|one, other| compare(placement, one, other));
    members
}
