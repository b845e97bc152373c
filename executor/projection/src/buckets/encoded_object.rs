//! One object in the encoded form in which it is sent.
//!
//! Fields that many objects have in common (the labels and the controller of the pods of a DaemonSet, the labels of nodes) are
//! stored once, and sent once per bucket. The fields of a Protobuf message may come in any order, so the own fields followed by
//! the shared fields are the whole message. Of the stored labels, only those in a [`KeySet`] are sent.
//!
//! A large cluster has a million of these objects. So an object is one allocation, and a uid takes 16 bytes instead of 38.

use std::sync::Arc;

use bytes::BufMut;
use nodewise_proto::v1;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint};
use triomphe::ThinArc;
use uuid::Uuid;

use super::node_labels::{NodeLabels, value, write_label, written_label_len};
use super::placement::Placement;
use super::shared_fields::SharedFields;
use super::wire::{LIST_TAG, element_len};
use crate::label_keys::{KeySet, MAX_LABELS};
use crate::selector::Selector;

/// The tag in Pod of the number of its shared metadata.
const NUMBER_TAG: u32 = 13;
/// The tag of the uid in Node and Pod.
const UID_TAG: u32 = 2;
/// The tag of the name in Node and Pod.
const NAME_TAG: u32 = 1;
/// The tags in Pod of the node that it is on, and of the node that it is meant for.
const NODE_TAGS: [u32; 2] = [5, 6];

/// The length of a UUID as text, in bytes.
const UUID_LEN: usize = uuid::fmt::Hyphenated::LENGTH;

/// One object: its encoded projection, its resourceVersion, and its bucket. A clone is the same object.
#[derive(Clone, Debug)]
pub struct EncodedObject(
    /// The fields that are neither shared nor in the header, the name first, followed by the resourceVersion.
    ThinArc<Header, u8>,
);

/// What every object has.
#[derive(Debug)]
struct Header {
    shared: Shared,
    /// The uid, if it is a UUID as Kubernetes writes one. Otherwise it is among the fields, and these bytes are 0. As a number they would
    /// have to be at an address that is a multiple of 16.
    uid: uuid::Bytes,
    /// Sequence number of the last change of the pod in the caches.
    changed: u64,
    bucket: u32,
    /// Where the resourceVersion begins.
    version_at: u32,
}

/// What an object shares with others.
#[derive(Clone, Debug)]
enum Shared {
    Nothing,
    WithPods(Arc<SharedFields>),
    WithNodes(Arc<NodeLabels>),
}

#[allow(clippy::missing_panics_doc, reason = "what this module encoded decodes")]
impl EncodedObject {
    /// Creates a pod. `own` has the fields that are not in `shared_fields`.
    ///
    /// # Panics
    /// Panics if the pod has 4 GiB or more.
    #[must_use]
    pub fn of_pod(
        own: &v1::Pod,
        shared_fields: Option<Arc<SharedFields>>,
        version: &str,
        bucket: u32,
    ) -> Self {
        let shared = shared_fields.map_or(Shared::Nothing, Shared::WithPods);
        Self::new(own, &own.uid, shared, version, bucket)
    }

    /// Creates a node with these labels. The labels of `node` are ignored.
    ///
    /// # Panics
    /// Panics if the node has 4 GiB or more.
    #[must_use]
    pub fn of_node(mut node: v1::Node, labels: Arc<NodeLabels>, version: &str, bucket: u32) -> Self {
        node.labels = Vec::new();
        Self::new(&node, &node.uid, Shared::WithNodes(labels), version, bucket)
    }

    fn new(own: &impl Message, uid: &str, shared: Shared, version: &str, bucket: u32) -> Self {
        let mut bytes = Vec::with_capacity(own.encoded_len() + version.len());
        own.encode_raw(&mut bytes);
        let uid = compact(uid);
        if !uid.is_nil() {
            let name = Texts(&bytes).take_while(|(tag, _)| *tag < UID_TAG);
            let at: usize = name.map(|(_, name)| element_len(name.len())).sum();
            bytes.drain(at..at + element_len(UUID_LEN));
        }
        let version_at = u32::try_from(bytes.len()).expect("an object is smaller than 4 GiB");
        bytes.extend_from_slice(version.as_bytes());
        let header = Header {
            shared,
            uid: uid.into_bytes(),
            changed: 0,
            bucket,
            version_at,
        };
        Self(ThinArc::from_header_and_slice(header, &bytes))
    }

    fn header(&self) -> &Header {
        &self.0.header.header
    }

    /// The fields that are neither shared nor in the header.
    fn fields(&self) -> &[u8] {
        &self.0.slice[..self.header().version_at as usize]
    }

    /// The first fields, up to the first one that is not a text.
    fn texts(&self) -> Texts<'_> {
        Texts(self.fields())
    }

    /// metadata.name.
    #[must_use]
    pub fn name(&self) -> &str {
        let first = self.texts().next().filter(|(tag, _)| *tag == NAME_TAG);
        first.map_or("", |(_, name)| text(name))
    }

    /// metadata.resourceVersion.
    #[must_use]
    pub fn version(&self) -> &str {
        text(&self.0.slice[self.header().version_at as usize..])
    }

    /// The sequence number of the last change of the pod in the caches.
    #[must_use]
    pub fn changed(&self) -> u64 {
        self.header().changed
    }

    /// Sets the sequence number of the last change of the pod.
    ///
    /// # Panics
    /// Panics if the object has been cloned.
    pub fn change(&mut self, number: u64) {
        self.0.with_arc_mut(|object| {
            let object = triomphe::Arc::get_mut(object).expect("nothing else has the object yet");
            object.header_mut().changed = number;
        });
    }

    /// The uid of the controller.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.shared_fields()?.owner()
    }

    /// Which bucket the pods of the controller belong to.
    #[must_use]
    pub fn placement(&self) -> Placement {
        let shared_fields = self.shared_fields();
        shared_fields.map_or_else(Placement::default, |shared_fields| shared_fields.placement())
    }

    /// The index of the bucket of the object's node.
    #[must_use]
    pub fn bucket(&self) -> u32 {
        self.header().bucket
    }

    /// The shared fields of a pod.
    #[must_use]
    pub fn shared_fields(&self) -> Option<&Arc<SharedFields>> {
        match &self.header().shared {
            Shared::WithPods(shared_fields) => Some(shared_fields),
            Shared::Nothing | Shared::WithNodes(_) => None,
        }
    }

    /// The keys of the labels of a pod that are stored; `None` if all are.
    #[must_use]
    pub fn known(&self) -> Option<&Arc<KeySet>> {
        self.shared_fields()?.known()
    }

    /// Whether all labels that the selector reads are stored, so that it can be evaluated.
    #[must_use]
    pub fn has_labels_of(&self, selector: &Selector) -> bool {
        self.known().is_none_or(|known| known.has(selector.keys()))
    }

    /// All labels of a node.
    #[must_use]
    pub fn node_labels(&self) -> Option<&Arc<NodeLabels>> {
        match &self.header().shared {
            Shared::WithNodes(labels) => Some(labels),
            Shared::Nothing | Shared::WithPods(_) => None,
        }
    }

    /// The labels of a node that are sent, ordered by key.
    pub(super) fn sent_labels(&self, keys: &KeySet) -> impl Iterator<Item = &Arc<v1::SharedLabel>> {
        self.node_labels()
            .into_iter()
            .flat_map(|labels| labels.sent(keys))
    }

    /// The own fields as they are sent, without labels.
    pub(super) fn own(&self) -> OwnFields<'_> {
        let fields = self.fields();
        let head = self.texts().take_while(|(tag, _)| *tag <= UID_TAG);
        let at = head.map(|(_, content)| element_len(content.len())).sum();
        let (head, tail) = fields.split_at(at);
        OwnFields {
            head,
            uid: Uuid::from_bytes(self.header().uid),
            tail,
        }
    }

    /// Whether both objects are sent with the same bytes.
    #[must_use]
    pub fn is_sent_as_same_bytes(&self, other: &Self, keys: &KeySet) -> bool {
        (self.fields(), self.header().uid) == (other.fields(), other.header().uid)
            && self.sent_labels(keys).eq(other.sent_labels(keys))
            && match (self.shared_fields(), other.shared_fields()) {
                (Some(one), Some(other)) => {
                    one.encoded() == other.encoded() || one.sent(keys) == other.sent(keys)
                }
                (one, other) => one.is_none() && other.is_none(),
            }
    }

    /// Number of labels of a node or pod that a plan could read but that are not sent, because there are too many.
    #[must_use]
    pub fn cut(&self, keys: &KeySet) -> usize {
        match &self.header().shared {
            // An encoded label has at least four bytes.
            Shared::WithPods(shared_fields) if shared_fields.encoded().len() / 4 > MAX_LABELS => {
                keys.reduce_labels(&mut shared_fields.labels())
            }
            Shared::WithNodes(labels) if labels.list().len() > MAX_LABELS => {
                keys.reduce_labels(&mut self.node().labels)
            }
            _ => 0,
        }
    }

    /// Decodes a pod, with all labels that are stored.
    #[must_use]
    pub fn pod(&self) -> v1::Pod {
        let mut pod = self.decode_own::<v1::Pod>();
        if let Some(shared_fields) = self.shared_fields() {
            merge(&mut pod, shared_fields.encoded());
        }
        pod
    }

    /// The node of a pod, or else its target node. Pods are ordered by it, so it is found without decoding the pod.
    #[must_use]
    pub fn target_node(&self) -> &str {
        // Fields are encoded in the order of their tags, and empty ones are left out. Those before the node's are texts.
        let mut texts = self.texts();
        texts
            .find(|(tag, _)| NODE_TAGS.contains(tag))
            .map_or("", |(_, node)| text(node))
    }

    /// Decodes a node, with all of its labels.
    #[must_use]
    pub fn node(&self) -> v1::Node {
        let mut node = self.decode_own::<v1::Node>();
        let labels = self.node_labels().into_iter().flat_map(|labels| labels.list());
        node.labels = labels
            .map(|label| v1::Label {
                key: label.key.clone(),
                value: value(label, &node.name).to_owned(),
            })
            .collect();
        node
    }

    /// Decodes the fields that are not shared.
    #[must_use]
    pub fn decode_own<M: Message + Default>(&self) -> M {
        let mut message = M::decode(self.fields()).expect("what was encoded here decodes");
        let mut uid = Vec::new();
        self.own().write_uid(&mut uid);
        merge(&mut message, &uid);
        message
    }

    /// The length of the output of [`Self::write`], in bytes.
    pub(super) fn written_len(&self, number: u32, keys: &KeySet) -> usize {
        element_len(self.sent_len(number, keys))
    }

    /// Writes the object as an element of its bucket. `number` is the number of its shared fields, or 0.
    pub(super) fn write(&self, number: u32, keys: &KeySet, buffer: &mut impl BufMut) {
        let (own, name) = (self.own(), self.name());
        encode_key(LIST_TAG, WireType::LengthDelimited, buffer);
        encode_varint(self.sent_len(number, keys) as u64, buffer);
        own.write_head(buffer);
        for label in self.sent_labels(keys) {
            write_label(label, name, buffer);
        }
        own.write_tail(buffer);
        if number > 0 {
            encode_key(NUMBER_TAG, WireType::Varint, buffer);
            encode_varint(number.into(), buffer);
        }
    }

    /// The bytes of the object in its bucket, without its own length.
    fn sent_len(&self, number: u32, keys: &KeySet) -> usize {
        let name = self.name();
        let labels = self.sent_labels(keys).map(|label| written_label_len(label, name));
        self.own().len() + labels.sum::<usize>() + number_len(number)
    }
}

/// The uid, if it is a UUID as Kubernetes writes one, and else the nil UUID.
fn compact(uid: &str) -> Uuid {
    let parsed = Uuid::try_parse(uid).unwrap_or_default();
    let mut buffer = Uuid::encode_buffer();
    let written: &str = parsed.hyphenated().encode_lower(&mut buffer);
    if written == uid { parsed } else { Uuid::nil() }
}

/// The fields of an object that are not shared, as they are sent. The labels of a node come between head and tail.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnFields<'a> {
    /// The name, and the uid if it is not in `uid`.
    head: &'a [u8],
    /// Nil if the uid is in the head, or there is none.
    uid: Uuid,
    tail: &'a [u8],
}

impl OwnFields<'_> {
    /// The length of what is written, in bytes.
    pub(super) fn len(&self) -> usize {
        let uid = if self.uid.is_nil() {
            0
        } else {
            element_len(UUID_LEN)
        };
        self.head.len() + uid + self.tail.len()
    }

    /// Writes the name and the uid.
    pub(super) fn write_head(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(self.head);
        self.write_uid(buffer);
    }

    /// Writes the uid, unless it is in the head.
    fn write_uid(&self, buffer: &mut impl BufMut) {
        if !self.uid.is_nil() {
            let mut text = Uuid::encode_buffer();
            let text = self.uid.hyphenated().encode_lower(&mut text);
            encode_key(UID_TAG, WireType::LengthDelimited, buffer);
            encode_varint(text.len() as u64, buffer);
            buffer.put_slice(text.as_bytes());
        }
    }

    /// Writes the fields after the labels.
    pub(super) fn write_tail(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(self.tail);
    }
}

fn number_len(number: u32) -> usize {
    if number == 0 {
        0
    } else {
        1 + encoded_len_varint(number.into())
    }
}

/// The texts at the beginning of a message: their tags and contents.
struct Texts<'a>(&'a [u8]);

impl<'a> Iterator for Texts<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let Ok((tag, WireType::LengthDelimited)) = decode_key(&mut self.0) else {
            return None;
        };
        let length = decode_varint(&mut self.0).expect("what was encoded here decodes");
        let length = usize::try_from(length).expect("it was encoded from memory");
        let (content, rest) = self.0.split_at(length);
        self.0 = rest;
        Some((tag, content))
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it was encoded from text")
}

fn merge(message: &mut impl Message, encoded: &[u8]) {
    let merged = message.merge(encoded);
    merged.expect("what was encoded here decodes");
}

#[cfg(test)]
mod tests {
    use super::super::shared_fields::{shared_len, write_shared};
    use super::*;

    const NAMES: [&str; 4] = ["p", "é", "", "a-name-as-pods-have-them-x7fqz"];
    /// Only the first one is a UUID as Kubernetes writes them.
    const UIDS: [&str; 6] = [
        "5d8c7f9b-5d2e-4c0f-9b1a-7f3c2a9e6d10",
        "5D8C7F9B-5d2e-4c0f-9b1a-7f3c2a9e6d10",
        "5d8c7f9b5d2e4c0f9b1a7f3c2a9e6d10",
        "00000000-0000-0000-0000-000000000000",
        "u",
        "",
    ];

    fn written(object: &EncodedObject, number: u32, keys: &KeySet) -> Vec<u8> {
        let mut written = Vec::new();
        object.write(number, keys, &mut written);
        assert_eq!(written.len(), object.written_len(number, keys));
        written
    }

    #[test]
    fn a_pod_decodes_to_its_input() {
        let labels = vec![v1::Label {
            key: "app".into(),
            value: "x".into(),
        }];
        let metadata = v1::SharedMetadata {
            labels: labels.clone(),
            controller: None,
        };
        let shared = Arc::new(SharedFields::new(&metadata.encode_to_vec(), Some("owner")));
        let keys = crate::testing::keys(&["app"]);
        for (name, uid) in NAMES.into_iter().flat_map(|name| UIDS.map(|uid| (name, uid))) {
            let own = v1::Pod {
                name: name.into(),
                uid: uid.into(),
                target_node_name: "n".into(),
                ..Default::default()
            };
            let stored = EncodedObject::of_pod(&own, Some(Arc::clone(&shared)), "12", 3);
            assert_eq!(
                (stored.name(), stored.version(), stored.owner()),
                (name, "12", Some("owner"))
            );
            assert_eq!((stored.target_node(), stored.bucket()), ("n", 3));
            let whole = v1::Pod {
                labels: labels.clone(),
                ..own.clone()
            };
            assert_eq!(stored.pod(), whole);
            assert_eq!(stored.decode_own::<v1::Pod>(), own);
            for number in [0, 1, 200] {
                let mut written = written(&stored, number, &keys);
                let refers = v1::Pod {
                    shared_metadata: number,
                    ..own.clone()
                };
                let alone = v1::PodBucket {
                    pods: vec![refers.clone()],
                    shared_metadata: Vec::new(),
                };
                assert_eq!(written, alone.encode_to_vec(), "{uid}");
                let (encoded, own_len) = (shared.sent(&keys), written.len());
                write_shared(&encoded, &mut written);
                assert_eq!(written.len(), own_len + shared_len(&encoded));
                let bucket = v1::PodBucket::decode(&written[..]).expect("a bucket");
                assert_eq!(
                    (bucket.pods, bucket.shared_metadata),
                    (vec![refers], vec![metadata.clone()])
                );
            }
        }
    }

    #[test]
    fn a_node_decodes_to_its_input() {
        let label = |key: &str, value: &str| v1::Label {
            key: key.into(),
            value: value.into(),
        };
        let keys = crate::testing::keys(&["", "empty", "hostname", "zone"]);
        for (name, uid) in NAMES.into_iter().flat_map(|name| UIDS.map(|uid| (name, uid))) {
            let node = v1::Node {
                name: name.into(),
                uid: uid.into(),
                labels: vec![
                    label("", "v"),
                    label("empty", ""),
                    label("hostname", name),
                    label("zone", "a"),
                ],
                unschedulable: true,
                ..Default::default()
            };
            let labels = node
                .labels
                .iter()
                .map(|label| Arc::new(NodeLabels::label(label.clone(), name)));
            let labels = Arc::new(NodeLabels::new(labels.collect()));
            let stored = EncodedObject::of_node(node.clone(), labels, "12", 3);
            assert_eq!(
                (stored.name(), stored.version(), stored.bucket()),
                (name, "12", 3)
            );
            assert_eq!(stored.node(), node);
            let bucket = v1::NodeBucket {
                nodes: vec![node],
                ..Default::default()
            };
            assert_eq!(written(&stored, 0, &keys), bucket.encode_to_vec(), "{uid}");
        }
    }

    #[test]
    fn another_uid_is_another_object() {
        let keys = KeySet::default();
        let pod = |uid: &str, changed| {
            let pod = v1::Pod {
                uid: uid.into(),
                ..Default::default()
            };
            let mut pod = EncodedObject::of_pod(&pod, None, "1", 0);
            pod.change(changed);
            pod
        };
        for (at, uid) in UIDS.iter().enumerate() {
            for (other_at, other) in UIDS.iter().enumerate() {
                let is_same = pod(uid, 1).is_sent_as_same_bytes(&pod(other, 2), &keys);
                assert_eq!(is_same, at == other_at);
            }
        }
        assert_eq!(pod("u", 7).changed(), 7);
    }
}
