//! One object in the encoded form in which it is sent.
//!
//! What an object has in common with many others (the labels and the controller of a DaemonSet's pods) is kept once, as a
//! [`Part`], and sent once for each bucket. Fields of a Protobuf message may come in any order, so its own fields followed by the
//! part are the message. Of all labels that are kept those are sent that a decision can read, as a [`KeySet`] says.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::BufMut;
use nodewise_proto::v1;
use prost::Message;
use prost::encoding::{self, WireType, decode_varint, encode_key, encode_varint, encoded_len_varint};

use crate::project::{KeySet, MAX_LABELS};
use crate::selector::Selector;

/// The tag of the list in NodeBucket and in PodBucket.
const LIST_TAG: u32 = 1;
/// The tag in PodBucket of what its pods share.
const SHARED_METADATA_TAG: u32 = 2;
/// The tag in Pod of the number of what it shares.
const NUMBER_TAG: u32 = 13;
/// The tag of the labels in Node.
const LABELS_TAG: u32 = 3;
/// The key of the first field of a Node and of a Pod, its name: field 1, length-delimited.
const NAME_KEY: u8 = 0x0a;

/// Of a pod no more than where it is.
#[derive(Clone, PartialEq, prost::Message)]
struct Target {
    #[prost(string, tag = "5")]
    node_name: String,
    #[prost(string, tag = "6")]
    target_node_name: String,
}

/// Encoded fields that objects share: a SharedMetadata.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    encoded: Box<[u8]>,
    /// The uid of the controller that is among the fields.
    owner: Option<Arc<str>>,
    /// The keys of the labels that are kept; absent if all are.
    known: Option<Arc<KeySet>>,
}

impl Part {
    pub(crate) fn new(encoded: &[u8], owner: Option<&str>) -> Self {
        Self {
            encoded: encoded.into(),
            owner: owner.map(Arc::from),
            known: None,
        }
    }

    /// The same, where of the labels only those of these keys are kept.
    pub(crate) fn cut_with(self, known: Option<Arc<KeySet>>) -> Self {
        Self { known, ..self }
    }

    /// The keys of the labels that are kept; absent if all are.
    pub(crate) fn known(&self) -> Option<&Arc<KeySet>> {
        self.known.as_ref()
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// The labels that are among the fields.
    pub(crate) fn labels(&self) -> Vec<v1::Label> {
        self.decode().labels
    }

    fn decode(&self) -> v1::SharedMetadata {
        v1::SharedMetadata::decode(self.encoded()).expect("what was encoded here decodes")
    }

    /// The encoded fields that are sent.
    pub(super) fn sent(&self, keys: &KeySet) -> Cow<'_, [u8]> {
        let mut metadata = self.decode();
        let all = metadata.labels.len();
        keys.reduce_labels(&mut metadata.labels);
        if metadata.labels.len() == all {
            Cow::Borrowed(self.encoded())
        } else {
            Cow::Owned(metadata.encode_to_vec())
        }
    }
}

/// The length of what [`write_shared`] writes.
pub(super) fn shared_len(encoded: &[u8]) -> usize {
    element_len(encoded.len())
}

/// Writes encoded fields for the pods of their bucket to refer to.
pub(super) fn write_shared(encoded: &[u8], buffer: &mut impl BufMut) {
    encode_key(SHARED_METADATA_TAG, WireType::LengthDelimited, buffer);
    encode_varint(encoded.len() as u64, buffer);
    buffer.put_slice(encoded);
}

/// All labels of a node, ordered by key.
#[derive(Debug)]
struct NodeLabels {
    labels: Box<[Arc<v1::Label>]>,
    /// Where among the node's own fields labels belong.
    at: u32,
}

/// The length of an element of a list of a bucket.
fn element_len(content: usize) -> usize {
    1 + encoded_len_varint(content as u64) + content
}

/// One object: its projection, its resourceVersion, and its place.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The fields that it does not share, the name first, and then the resourceVersion: one allocation less for each object.
    own: Box<[u8]>,
    /// Of a pod.
    part: Option<Arc<Part>>,
    /// Of a node.
    labels: Option<Box<NodeLabels>>,
    version_at: u32,
    bucket: u32,
    /// The number of the last change of a pod in the caches.
    changed: u64,
}

impl Stored {
    /// `own` are the fields that are not in `part`.
    pub(crate) fn new(own: &impl Message, part: Option<Arc<Part>>, version: &str, bucket: u32) -> Self {
        let size = own.encoded_len();
        let mut bytes = Vec::with_capacity(size + version.len());
        own.encode_raw(&mut bytes);
        bytes.extend_from_slice(version.as_bytes());
        Self {
            own: bytes.into(),
            part,
            labels: None,
            version_at: size.try_into().expect("an object is smaller than 4 GiB"),
            bucket,
            changed: 0,
        }
    }

    /// A node; `labels` are those that it has.
    pub(crate) fn of_node(
        mut node: v1::Node,
        labels: Box<[Arc<v1::Label>]>,
        version: &str,
        bucket: u32,
    ) -> Self {
        node.labels = Vec::new();
        let before = v1::Node {
            name: node.name.clone(),
            uid: node.uid.clone(),
            ..Default::default()
        };
        Self {
            labels: Some(Box::new(NodeLabels {
                labels,
                at: before
                    .encoded_len()
                    .try_into()
                    .expect("a node is smaller than 4 GiB"),
            })),
            ..Self::new(&node, None, version, bucket)
        }
    }

    fn fields(&self) -> (&[u8], &[u8]) {
        let own = &self.own[..self.version_at as usize];
        (own, self.part.as_ref().map_or(&[], |part| part.encoded()))
    }

    pub(crate) fn name(&self) -> &str {
        let Some((&NAME_KEY, mut rest)) = self.fields().0.split_first() else {
            return "";
        };
        let length = decode_varint(&mut rest).expect("what was encoded here decodes");
        text(&rest[..usize::try_from(length).expect("it was encoded from memory")])
    }

    pub(crate) fn version(&self) -> &str {
        text(&self.own[self.version_at as usize..])
    }

    /// The number of the last change of the pod in the caches.
    pub(crate) fn changed(&self) -> u64 {
        self.changed
    }

    /// The pod is changed, by the change of this number.
    pub(crate) fn change(&mut self, number: u64) {
        self.changed = number;
    }

    /// The uid of its controller.
    pub(crate) fn owner(&self) -> Option<&str> {
        self.part.as_ref()?.owner.as_deref()
    }

    pub(crate) fn bucket(&self) -> u32 {
        self.bucket
    }

    pub(crate) fn part(&self) -> Option<&Arc<Part>> {
        self.part.as_ref()
    }

    /// The keys of the labels of a pod that are kept; absent if all are.
    pub(crate) fn known(&self) -> Option<&Arc<KeySet>> {
        self.part.as_ref()?.known()
    }

    /// Whether those labels of a pod are kept that a selector names.
    pub(crate) fn is_decided(&self, selector: &Selector) -> bool {
        self.known().is_none_or(|known| known.has(selector.keys()))
    }

    /// All labels of a node, ordered by key.
    pub(crate) fn labels(&self) -> &[Arc<v1::Label>] {
        self.labels.as_ref().map_or(&[], |kept| &kept.labels)
    }

    /// Those of them that are sent.
    fn sent_labels(&self, keys: &KeySet) -> impl Iterator<Item = &v1::Label> {
        keys.sent(self.labels().iter().map(|label| &**label))
    }

    /// Whether the same is sent for both.
    pub(crate) fn is_sent_alike(&self, other: &Self, keys: &KeySet) -> bool {
        self.fields().0 == other.fields().0
            && self.sent_labels(keys).eq(other.sent_labels(keys))
            && match (&self.part, &other.part) {
                (Some(one), Some(other)) => {
                    one.encoded == other.encoded || one.sent(keys) == other.sent(keys)
                }
                (one, other) => one.is_none() && other.is_none(),
            }
    }

    /// How many labels of a node or pod cannot be sent although a decision could read them, since there are too many.
    pub(crate) fn cut(&self, keys: &KeySet) -> usize {
        if let Some(part) = &self.part {
            // A label is never shorter.
            let may_be = part.encoded.len() / 4 > MAX_LABELS;
            return if may_be {
                keys.reduce_labels(&mut part.labels())
            } else {
                0
            };
        }
        if self.labels().len() > MAX_LABELS {
            keys.reduce_labels(&mut self.node().labels)
        } else {
            0
        }
    }

    /// The projection of a pod, with all of its labels that are kept.
    pub(crate) fn pod(&self) -> v1::Pod {
        let mut pod = self.decode_own::<v1::Pod>();
        let merged = pod.merge(self.fields().1);
        merged.expect("what was encoded here decodes");
        pod
    }

    /// The node that a pod is on, or else the one that it is meant for.
    pub(crate) fn target_node(&self) -> String {
        let Target {
            node_name,
            target_node_name,
        } = self.decode_own();
        if node_name.is_empty() {
            target_node_name
        } else {
            node_name
        }
    }

    /// The projection of a node, with all of its labels.
    pub(crate) fn node(&self) -> v1::Node {
        let mut node = self.decode_own::<v1::Node>();
        node.labels = self.labels().iter().map(|label| (**label).clone()).collect();
        node
    }

    /// The projection without what it shares.
    pub(crate) fn decode_own<M: Message + Default>(&self) -> M {
        M::decode(self.fields().0).expect("what was encoded here decodes")
    }

    /// The length of what [`Self::write`] writes.
    pub(super) fn written_len(&self, number: u32, keys: &KeySet) -> usize {
        element_len(self.sent(keys).len() + number_len(number))
    }

    /// Writes it as an element of its bucket, where what it shares has this number; 0: it shares nothing.
    pub(super) fn write(&self, number: u32, keys: &KeySet, buffer: &mut impl BufMut) {
        let sent = self.sent(keys);
        encode_key(LIST_TAG, WireType::LengthDelimited, buffer);
        encode_varint((sent.len() + number_len(number)) as u64, buffer);
        sent.write(buffer);
        if number > 0 {
            encode_key(NUMBER_TAG, WireType::Varint, buffer);
            encode_varint(number.into(), buffer);
        }
    }

    /// Its fields as they are sent, without what it shares.
    fn sent(&self, keys: &KeySet) -> Sent<'_> {
        let own = self.fields().0;
        match &self.labels {
            None => Sent::whole(Cow::Borrowed(own)),
            Some(kept) => Sent {
                fields: Cow::Borrowed(own),
                at: kept.at as usize,
                labels: self.sent_labels(keys).collect(),
            },
        }
    }
}

/// Encoded fields, with labels among them.
struct Sent<'a> {
    fields: Cow<'a, [u8]>,
    /// Where the labels belong.
    at: usize,
    labels: Vec<&'a v1::Label>,
}

impl<'a> Sent<'a> {
    fn whole(fields: Cow<'a, [u8]>) -> Self {
        Self {
            fields,
            at: 0,
            labels: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        let labels = self.labels.iter();
        let labels = labels.map(|label| encoding::message::encoded_len(LABELS_TAG, *label));
        self.fields.len() + labels.sum::<usize>()
    }

    fn write(&self, buffer: &mut impl BufMut) {
        let (before, after) = self.fields.split_at(self.at);
        buffer.put_slice(before);
        for label in &self.labels {
            encoding::message::encode(LABELS_TAG, *label, buffer);
        }
        buffer.put_slice(after);
    }
}

fn number_len(number: u32) -> usize {
    if number == 0 {
        0
    } else {
        1 + encoded_len_varint(number.into())
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it was encoded from text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_it_was_made_of() {
        let part = v1::Pod {
            labels: vec![v1::Label {
                key: "app".into(),
                value: "x".into(),
            }],
            ..Default::default()
        };
        let keys = crate::testing::keys(&["app"]);
        for name in ["p", "é", &"long".repeat(60), ""] {
            let own = v1::Pod {
                name: name.into(),
                uid: "u".into(),
                ..Default::default()
            };
            let shared = Arc::new(Part::new(&part.encode_to_vec(), Some("owner")));
            let stored = Stored::new(&own, Some(Arc::clone(&shared)), "12", 3);
            assert_eq!(
                (stored.name(), stored.version(), stored.owner(), stored.bucket()),
                (name, "12", Some("owner"), 3)
            );
            let whole = v1::Pod {
                labels: part.labels.clone(),
                ..own.clone()
            };
            assert_eq!(stored.pod(), whole);
            assert_eq!(stored.decode_own::<v1::Pod>(), own);
            for number in [0, 1, 200] {
                let mut written = Vec::new();
                stored.write(number, &keys, &mut written);
                assert_eq!(written.len(), stored.written_len(number, &keys));
                let encoded = shared.sent(&keys);
                write_shared(&encoded, &mut written);
                assert_eq!(
                    written.len(),
                    stored.written_len(number, &keys) + shared_len(&encoded)
                );
                let bucket = v1::PodBucket::decode(&written[..]).expect("a bucket");
                let refers = v1::Pod {
                    shared_metadata: number,
                    ..own.clone()
                };
                assert_eq!(bucket.pods, [refers]);
                let metadata = v1::SharedMetadata {
                    labels: part.labels.clone(),
                    controller: None,
                };
                assert_eq!(bucket.shared_metadata, [metadata]);
            }
        }
    }
}
