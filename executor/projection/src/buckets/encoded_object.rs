//! One object in the encoded form in which it is sent.
//!
//! Fields that many objects have in common (the labels and the controller of the pods of a DaemonSet) are stored once, as a
//! [`SharedFields`], and sent once per bucket. The fields of a Protobuf message may come in any order, so the own fields followed by
//! the shared fields are the whole message. Of the stored labels, only those in a [`KeySet`] are sent.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::BufMut;
use nodewise_proto::v1;
use prost::Message;
use prost::encoding::{
    self, WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint,
};

use super::placement::Placement;
use crate::label_keys::{KeySet, MAX_LABELS};
use crate::selector::Selector;

/// The tag of the list of objects in NodeBucket and PodBucket.
pub(super) const LIST_TAG: u32 = 1;
/// The tag of the shared metadata in PodBucket.
const SHARED_METADATA_TAG: u32 = 2;
/// The tag in Pod of the number of its shared metadata.
const NUMBER_TAG: u32 = 13;
/// The tag of the labels in Node.
pub(super) const LABELS_TAG: u32 = 3;
/// The key of the first field of a Node and of a Pod, its name: field 1, length-delimited.
const NAME_KEY: u8 = 0x0a;

/// The tags in Pod of the node that it is on, and of the node that it is meant for.
const NODE_TAGS: [u32; 2] = [5, 6];

/// Encoded fields that several objects share: a SharedMetadata message.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedFields {
    encoded: Box<[u8]>,
    /// The uid of the controller in the fields.
    owner: Option<Arc<str>>,
    /// The keys of the labels that are stored; `None` if all are.
    known: Option<Arc<KeySet>>,
    /// Which bucket the controller's pods belong to.
    placement: Placement,
}

impl SharedFields {
    /// Creates shared fields. `encoded` includes the controller with the uid `owner`.
    #[must_use]
    pub fn new(encoded: &[u8], owner: Option<&str>) -> Self {
        Self {
            encoded: encoded.into(),
            owner: owner.map(Arc::from),
            known: None,
            placement: Placement::default(),
        }
    }

    /// Sets which bucket the controller's pods belong to.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Notes that of the labels only those with these keys are stored; `None` if all are.
    #[must_use]
    pub fn with_known_keys(self, known: Option<Arc<KeySet>>) -> Self {
        Self { known, ..self }
    }

    /// The keys of the labels that are stored; `None` if all are.
    #[must_use]
    pub fn known(&self) -> Option<&Arc<KeySet>> {
        self.known.as_ref()
    }

    /// Returns the fields as Protobuf.
    #[must_use]
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Returns the labels in the fields.
    #[must_use]
    pub fn labels(&self) -> Vec<v1::Label> {
        self.decode().labels
    }

    fn decode(&self) -> v1::SharedMetadata {
        v1::SharedMetadata::decode(self.encoded()).expect("what was encoded here decodes")
    }

    /// Returns the encoded fields, with only the labels that are sent.
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

/// The length of the output of [`write_shared`], in bytes.
pub(super) fn shared_len(encoded: &[u8]) -> usize {
    element_len(encoded.len())
}

/// Writes shared fields as an element of a PodBucket.
pub(super) fn write_shared(encoded: &[u8], buffer: &mut impl BufMut) {
    encode_key(SHARED_METADATA_TAG, WireType::LengthDelimited, buffer);
    encode_varint(encoded.len() as u64, buffer);
    buffer.put_slice(encoded);
}

/// All labels of a node, ordered by key.
#[derive(Debug)]
struct NodeLabels {
    labels: Box<[Arc<v1::Label>]>,
    /// The offset of the labels in the node's own fields, in bytes.
    at: u32,
}

/// The length of an element of a list of a bucket, in bytes.
pub(super) fn element_len(content: usize) -> usize {
    1 + encoded_len_varint(content as u64) + content
}

/// One object: its encoded projection, its resourceVersion, and its bucket.
#[derive(Debug)]
pub struct EncodedObject {
    /// The fields that are not shared, the name first, followed by the resourceVersion. One buffer for both saves an
    /// allocation per object.
    own: Box<[u8]>,
    /// The shared fields of a pod.
    shared_fields: Option<Arc<SharedFields>>,
    /// The labels of a node.
    labels: Option<Box<NodeLabels>>,
    version_at: u32,
    bucket: u32,
    /// Sequence number of the last change of the pod in the caches.
    changed: u64,
}

#[allow(clippy::missing_panics_doc, reason = "what this module encoded decodes")]
impl EncodedObject {
    /// Creates an object. `own` has the fields that are not in `shared_fields`.
    ///
    /// # Panics
    /// Panics if the object has 4 GiB or more.
    pub fn new(
        own: &impl Message,
        shared_fields: Option<Arc<SharedFields>>,
        version: &str,
        bucket: u32,
    ) -> Self {
        let size = own.encoded_len();
        let mut bytes = Vec::with_capacity(size + version.len());
        own.encode_raw(&mut bytes);
        bytes.extend_from_slice(version.as_bytes());
        Self {
            own: bytes.into(),
            shared_fields,
            labels: None,
            version_at: size.try_into().expect("an object is smaller than 4 GiB"),
            bucket,
            changed: 0,
        }
    }

    /// Creates a node with these labels. The labels of `node` are ignored.
    ///
    /// # Panics
    /// Panics if the node has 4 GiB or more.
    #[must_use]
    pub fn of_node(mut node: v1::Node, labels: Box<[Arc<v1::Label>]>, version: &str, bucket: u32) -> Self {
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
        (
            own,
            self.shared_fields
                .as_ref()
                .map_or(&[], |shared_fields| shared_fields.encoded()),
        )
    }

    /// metadata.name.
    #[must_use]
    pub fn name(&self) -> &str {
        let Some((&NAME_KEY, mut rest)) = self.fields().0.split_first() else {
            return "";
        };
        let length = decode_varint(&mut rest).expect("what was encoded here decodes");
        text(&rest[..usize::try_from(length).expect("it was encoded from memory")])
    }

    /// metadata.resourceVersion.
    #[must_use]
    pub fn version(&self) -> &str {
        text(&self.own[self.version_at as usize..])
    }

    /// The sequence number of the last change of the pod in the caches.
    #[must_use]
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Sets the sequence number of the last change of the pod.
    pub fn change(&mut self, number: u64) {
        self.changed = number;
    }

    /// The uid of the controller.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.shared_fields.as_ref()?.owner.as_deref()
    }

    /// Which bucket the pods of the controller belong to.
    #[must_use]
    pub fn placement(&self) -> Placement {
        let shared_fields = self.shared_fields.as_ref();
        shared_fields.map_or_else(Placement::default, |shared_fields| shared_fields.placement)
    }

    /// The index of the bucket of the object's node.
    #[must_use]
    pub fn bucket(&self) -> u32 {
        self.bucket
    }

    /// The shared fields of a pod.
    #[must_use]
    pub fn shared_fields(&self) -> Option<&Arc<SharedFields>> {
        self.shared_fields.as_ref()
    }

    /// The keys of the labels of a pod that are stored; `None` if all are.
    #[must_use]
    pub fn known(&self) -> Option<&Arc<KeySet>> {
        self.shared_fields.as_ref()?.known()
    }

    /// Whether all labels that the selector reads are stored, so that it can be evaluated.
    #[must_use]
    pub fn has_labels_of(&self, selector: &Selector) -> bool {
        self.known().is_none_or(|known| known.has(selector.keys()))
    }

    /// All labels of a node, ordered by key.
    #[must_use]
    pub fn labels(&self) -> &[Arc<v1::Label>] {
        self.labels.as_ref().map_or(&[], |kept| &kept.labels)
    }

    /// The labels of a node that are sent.
    pub(super) fn sent_labels(&self, keys: &KeySet) -> impl Iterator<Item = &Arc<v1::Label>> {
        keys.sent(self.labels())
    }

    /// The encoded fields of a node before and after its labels.
    pub(super) fn around_labels(&self) -> (&[u8], &[u8]) {
        let at = self.labels.as_ref().map_or(0, |kept| kept.at as usize);
        self.fields().0.split_at(at)
    }

    /// Whether both objects are sent with the same bytes.
    #[must_use]
    pub fn is_sent_as_same_bytes(&self, other: &Self, keys: &KeySet) -> bool {
        self.fields().0 == other.fields().0
            && self.sent_labels(keys).eq(other.sent_labels(keys))
            && match (&self.shared_fields, &other.shared_fields) {
                (Some(one), Some(other)) => {
                    one.encoded == other.encoded || one.sent(keys) == other.sent(keys)
                }
                (one, other) => one.is_none() && other.is_none(),
            }
    }

    /// Number of labels of a node or pod that a plan could read but that are not sent, because there are too many.
    #[must_use]
    pub fn cut(&self, keys: &KeySet) -> usize {
        if let Some(shared_fields) = &self.shared_fields {
            // An encoded label has at least four bytes.
            let may_be = shared_fields.encoded.len() / 4 > MAX_LABELS;
            return if may_be {
                keys.reduce_labels(&mut shared_fields.labels())
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

    /// Decodes a pod, with all labels that are stored.
    #[must_use]
    pub fn pod(&self) -> v1::Pod {
        let mut pod = self.decode_own::<v1::Pod>();
        let merged = pod.merge(self.fields().1);
        merged.expect("what was encoded here decodes");
        pod
    }

    /// The node of a pod, or else its target node. Pods are ordered by it, so it is found without decoding the pod.
    #[must_use]
    pub fn target_node(&self) -> &str {
        let mut fields = self.fields().0;
        // Fields are encoded in the order of their tags, and empty ones are left out. Those before the node's are texts.
        while let Ok((tag, WireType::LengthDelimited)) = decode_key(&mut fields) {
            let length = decode_varint(&mut fields).expect("what was encoded here decodes");
            let length = usize::try_from(length).expect("it was encoded from memory");
            let (content, rest) = fields.split_at(length);
            if NODE_TAGS.contains(&tag) {
                return text(content);
            }
            fields = rest;
        }
        ""
    }

    /// Decodes a node, with all of its labels.
    #[must_use]
    pub fn node(&self) -> v1::Node {
        let mut node = self.decode_own::<v1::Node>();
        node.labels = self.labels().iter().map(|label| (**label).clone()).collect();
        node
    }

    /// Decodes the fields that are not shared.
    #[must_use]
    pub fn decode_own<M: Message + Default>(&self) -> M {
        M::decode(self.fields().0).expect("what was encoded here decodes")
    }

    /// The length of the output of [`Self::write`], in bytes.
    pub(super) fn written_len(&self, number: u32, keys: &KeySet) -> usize {
        element_len(self.sent(keys).len() + number_len(number))
    }

    /// Writes the object as an element of its bucket. `number` is the number of its shared fields, or 0.
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

    /// The own fields as they are sent, without shared fields.
    fn sent(&self, keys: &KeySet) -> OwnFields<'_> {
        let own = self.fields().0;
        match &self.labels {
            None => OwnFields::whole(Cow::Borrowed(own)),
            Some(kept) => OwnFields {
                fields: Cow::Borrowed(own),
                at: kept.at as usize,
                labels: self.sent_labels(keys).map(|label| &**label).collect(),
            },
        }
    }
}

/// Encoded fields with the labels to insert.
struct OwnFields<'a> {
    fields: Cow<'a, [u8]>,
    /// The offset of the labels, in bytes.
    at: usize,
    labels: Vec<&'a v1::Label>,
}

impl<'a> OwnFields<'a> {
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
    fn an_object_decodes_to_its_input() {
        let shared_fields = v1::Pod {
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
            let shared = Arc::new(SharedFields::new(&shared_fields.encode_to_vec(), Some("owner")));
            let stored = EncodedObject::new(&own, Some(Arc::clone(&shared)), "12", 3);
            assert_eq!(
                (stored.name(), stored.version(), stored.owner(), stored.bucket()),
                (name, "12", Some("owner"), 3)
            );
            let whole = v1::Pod {
                labels: shared_fields.labels.clone(),
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
                    labels: shared_fields.labels.clone(),
                    controller: None,
                };
                assert_eq!(bucket.shared_metadata, [metadata]);
            }
        }
    }
}
