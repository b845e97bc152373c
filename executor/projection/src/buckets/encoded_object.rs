//! One object in the encoded form in which it is sent.
//!
//! Fields that many objects have in common (the labels and the controller of the pods of a DaemonSet, the labels of nodes) are
//! stored once, and sent once per bucket. The fields of a Protobuf message may come in any order, so the own fields followed by
//! the shared fields are the whole message.
//!
//! A large cluster has a million of these objects. So an object is one allocation, and a uid takes 16 bytes instead of 38.

use std::fmt;
use std::sync::Arc;

use bytes::{BufMut, Bytes};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use triomphe::ThinArc;
use uuid::Uuid;

use super::node_labels::NodeLabels;
use super::shared_fields::SharedFields;
use super::wire::{element_len, write_element};
use crate::label_keys::KeySet;

/// The tag before the resourceVersion. It is never sent, and could be any.
const VERSION_TAG: u32 = 1;
/// The tag of the uid in Node and Pod.
const UID_TAG: u32 = 2;
/// The tag of the name in Node and Pod.
const NAME_TAG: u32 = 1;

/// The length of a UUID as text, in bytes.
const UUID_LEN: usize = uuid::fmt::Hyphenated::LENGTH;

/// What objects of a kind share with each other. Of the stored labels, only those in a [`KeySet`] are sent.
pub trait Shared: fmt::Debug + Sized {
    /// Whether objects of this kind may have their labels in `Bucket.data_with_shared_labels`.
    const MAY_SHARE_LABELS: bool;

    /// The name of the node that an object is on, is meant for, or is. Empty if there is none.
    fn node(object: &EncodedObject<Self>) -> &str;

    /// Whether both are sent with the same bytes.
    fn is_sent_as_same_bytes(&self, other: &Self, keys: &KeySet) -> bool;

    /// Number of labels that a plan could read but that are not sent, because there are too many.
    fn cut(&self, keys: &KeySet) -> usize;

    /// The bytes of a bucket with these objects, and whether labels are shared in them. They may be if `shares_labels`.
    fn write_bucket(members: &[&EncodedObject<Self>], keys: &KeySet, shares_labels: bool) -> (Bytes, bool);
}

/// One object: its encoded projection and its resourceVersion. A clone is the same object.
#[derive(Debug)]
pub struct EncodedObject<S>(
    /// The resourceVersion as an element, followed by the fields that are neither shared nor in the header, the name first.
    ThinArc<Header<S>, u8>,
);

/// A pod in encoded form.
pub type EncodedPod = EncodedObject<SharedFields>;

/// A node in encoded form.
pub type EncodedNode = EncodedObject<NodeLabels>;

/// What every object has.
#[derive(Debug)]
struct Header<S> {
    shared: Arc<S>,
    /// The uid, if it is a UUID as Kubernetes writes one. Otherwise it is among the fields, and these bytes are 0. As a number they would
    /// have to be at an address that is a multiple of 16.
    uid: uuid::Bytes,
    /// Sequence number of the last change of the pod in the caches.
    changed: u64,
}

impl<S> Clone for EncodedObject<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[allow(clippy::missing_panics_doc, reason = "what this module encoded decodes")]
impl<S> EncodedObject<S> {
    /// Creates an object. `own` has the fields that are not in `shared`, among them this uid.
    pub(super) fn new(own: &impl Message, uid: &str, shared: Arc<S>, version: &str) -> Self {
        let mut bytes = Vec::with_capacity(element_len(version.len()) + own.encoded_len());
        write_element(VERSION_TAG, version.as_bytes(), &mut bytes);
        let begin = bytes.len();
        own.encode_raw(&mut bytes);
        let uid = compact(uid);
        if !uid.is_nil() {
            let name = Texts(&bytes[begin..]).take_while(|(tag, _)| *tag < UID_TAG);
            let at = begin + name.map(|(_, name)| element_len(name.len())).sum::<usize>();
            bytes.drain(at..at + element_len(UUID_LEN));
        }
        let header = Header {
            shared,
            uid: uid.into_bytes(),
            changed: 0,
        };
        Self(ThinArc::from_header_and_slice(header, &bytes))
    }

    fn header(&self) -> &Header<S> {
        &self.0.header.header
    }

    /// The resourceVersion, and the fields that are neither shared nor in the header.
    fn parts(&self) -> (&[u8], &[u8]) {
        let mut texts = Texts(&self.0.slice);
        let version = texts.next().map_or(&[][..], |(_, version)| version);
        (version, texts.0)
    }

    fn fields(&self) -> &[u8] {
        self.parts().1
    }

    /// The text in the first field with one of these tags. Only texts and messages may stand before it.
    pub(super) fn first_text(&self, tags: &[u32]) -> Option<&str> {
        let mut texts = Texts(self.fields());
        let found = texts.find(|(tag, _)| tags.contains(tag));
        found.map(|(_, content)| text(content))
    }

    /// metadata.name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.first_text(&[NAME_TAG]).unwrap_or_default()
    }

    /// metadata.resourceVersion.
    #[must_use]
    pub fn version(&self) -> &str {
        text(self.parts().0)
    }

    /// What the object shares with others.
    #[must_use]
    pub fn shared(&self) -> &Arc<S> {
        &self.header().shared
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

    /// The own fields as they are sent, without labels.
    pub(super) fn own(&self) -> OwnFields<'_> {
        let fields = self.fields();
        let head = Texts(fields).take_while(|(tag, _)| *tag <= UID_TAG);
        let at = head.map(|(_, content)| element_len(content.len())).sum();
        let (head, tail) = fields.split_at(at);
        OwnFields {
            head,
            uid: Uuid::from_bytes(self.header().uid),
            tail,
        }
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
}

impl<S: Shared> EncodedObject<S> {
    /// Whether both objects are sent with the same bytes.
    #[must_use]
    pub fn is_sent_as_same_bytes(&self, other: &Self, keys: &KeySet) -> bool {
        (self.fields(), self.header().uid) == (other.fields(), other.header().uid)
            && self.shared().is_sent_as_same_bytes(other.shared(), keys)
    }

    /// Number of labels that a plan could read but that are not sent, because there are too many.
    #[must_use]
    pub fn cut(&self, keys: &KeySet) -> usize {
        self.shared().cut(keys)
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
            write_element(UID_TAG, text.as_bytes(), buffer);
        }
    }

    /// Writes the fields after the labels.
    pub(super) fn write_tail(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(self.tail);
    }
}

/// The texts and messages at the beginning of a message: their tags and contents.
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

/// Adds encoded fields to a message.
pub(super) fn merge(message: &mut impl Message, encoded: &[u8]) {
    let merged = message.merge(encoded);
    merged.expect("what was encoded here decodes");
}
