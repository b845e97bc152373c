//! Writes buckets as bytes, and caches their digests.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use nodewise_proto::bucket::{Digest, Receiver};
use nodewise_proto::v1;
use sha2::{Digest as _, Sha256};

use super::encoded_object::EncodedObject;
use super::shared_fields::{SharedFields, shared_len, write_shared};
use super::shared_labels::SharedLabels;
use super::{Bucket, Buckets, Content};
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
    /// Whether nodes share labels.
    shares_labels: bool,
}

/// The digest of an empty bucket.
static EMPTY: LazyLock<Digest> = LazyLock::new(|| Sha256::digest([]).into());

/// Renders the buckets of `first`, each merged with the bucket of `second` with the same index. A bucket is sent by digest alone if
/// the receiver has it, else inline. An unchanged bucket is not hashed again, and is encoded only for a receiver that does not have
/// it.
pub fn render(
    mut first: Option<&mut Buckets>,
    mut second: Option<&mut Buckets>,
    keys: &Arc<KeySet>,
    count: u32,
    receiver: &Receiver<'_>,
) -> RenderedBuckets {
    let has_nodes = first.as_ref().is_some_and(|set| set.content == Content::Nodes);
    let mut rendered = RenderedBuckets {
        keys: Arc::clone(keys),
        shares_labels: has_nodes && receiver.reads_shared_labels(),
        ..RenderedBuckets::default()
    };
    if let Some(set) = &mut first {
        set.send(keys);
    }
    if let Some(set) = &mut second {
        set.send(keys);
    }
    let content = first.as_ref().or(second.as_ref()).map(|set| set.content);
    for index in 0..count as usize {
        let bucket = match (
            nonempty_bucket(&mut first, index),
            nonempty_bucket(&mut second, index),
            content,
        ) {
            (Some(bucket), second, Some(content)) => rendered.render(content, bucket, second, receiver),
            (None, Some(bucket), Some(content)) => rendered.render(content, bucket, None, receiver),
            _ => message(*EMPTY, false, (!receiver.has(&EMPTY)).then(Bytes::new)),
        };
        rendered.buckets.push(bucket);
    }
    rendered
}

fn nonempty_bucket<'a>(set: &'a mut Option<&mut Buckets>, index: usize) -> Option<&'a mut Bucket> {
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
    fn render(
        &mut self,
        content: Content,
        bucket: &mut Bucket,
        mut second: Option<&mut Bucket>,
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
            Some(second) => self.write(&merged(content, bucket, second)),
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
    fn digest_alone(&mut self, bucket: &mut Bucket) -> Digest {
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

    /// Returns the bytes, and whether nodes share labels in them.
    fn write(&mut self, members: &[&EncodedObject]) -> (Bytes, bool) {
        let (data, has_shared_labels) = if self.shares_labels {
            let shared = SharedLabels::of(members, &self.keys);
            (shared.write(members), shared.is_used())
        } else {
            (write_plain(members, &self.keys), false)
        };
        self.written += data.len();
        (data, has_shared_labels)
    }

    fn hash(&mut self, data: &[u8]) -> Digest {
        self.hashed += data.len();
        Sha256::digest(data).into()
    }
}

fn refs(bucket: &Bucket) -> Vec<&EncodedObject> {
    bucket.members.iter().collect()
}

/// The members of both buckets, in order.
fn merged<'a>(content: Content, first: &'a Bucket, second: &'a Bucket) -> Vec<&'a EncodedObject> {
    let mut members = refs(first);
    members.extend(refs(second));
    // Both parts are sorted, which this sort makes use of.
    members.sort_by(|one, other| content.compare(one, other));
    members
}

/// Writes pods, whose labels and controllers are sent once, or nodes with labels of their own.
fn write_plain(members: &[&EncodedObject], keys: &KeySet) -> Bytes {
    let mut shared = SharedNumbers::default();
    let numbers = members
        .iter()
        .map(|member| shared.number(member.shared_fields(), keys));
    let numbers: Vec<u32> = numbers.collect();
    let with_numbers = || members.iter().zip(&numbers);
    let own: usize = with_numbers()
        .map(|(member, number)| member.written_len(*number, keys))
        .sum();
    let parts: usize = shared
        .parts
        .iter()
        .map(|shared_fields| shared_len(shared_fields))
        .sum();
    let mut buffer = BytesMut::with_capacity(own + parts);
    with_numbers().for_each(|(member, number)| member.write(*number, keys, &mut buffer));
    shared
        .parts
        .iter()
        .for_each(|shared_fields| write_shared(shared_fields, &mut buffer));
    buffer.freeze()
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
