//! One object in the encoded form in which it is sent.
//!
//! What an object has in common with many others (the labels and the controller of a DaemonSet's pods) is kept once, as a
//! [`Part`]. Fields of a Protobuf message may come in any order, so its own fields followed by the part are the message.

use std::sync::Arc;

use bytes::BufMut;
use prost::Message;
use prost::encoding::{WireType, decode_varint, encode_key, encode_varint, encoded_len_varint};

/// The tag of the list in NodeBucket and in PodBucket.
const LIST_TAG: u32 = 1;
/// The key of the first field of a Node and of a Pod, its name: field 1, length-delimited.
const NAME_KEY: u8 = 0x0a;

/// Encoded fields that objects share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    encoded: Box<[u8]>,
    /// The uid of the controller that is among the fields.
    owner: Option<Arc<str>>,
}

impl Part {
    pub(crate) fn new(encoded: &[u8], owner: Option<&str>) -> Self {
        Self {
            encoded: encoded.into(),
            owner: owner.map(Arc::from),
        }
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

/// One object: its projection, its resourceVersion, and its place.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The fields that it does not share, the name first, and then the resourceVersion: one allocation less for each object.
    own: Box<[u8]>,
    part: Option<Arc<Part>>,
    version_at: u32,
    bucket: u32,
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
            version_at: size.try_into().expect("an object is smaller than 4 GiB"),
            bucket,
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

    /// Whether the same would be sent for both.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }

    pub(crate) fn decode<M: Message + Default>(&self) -> M {
        let mut message = self.decode_own::<M>();
        let merged = message.merge(self.fields().1);
        merged.expect("what was encoded here decodes");
        message
    }

    /// The projection without what it shares.
    pub(crate) fn decode_own<M: Message + Default>(&self) -> M {
        M::decode(self.fields().0).expect("what was encoded here decodes")
    }

    fn encoded_len(&self) -> usize {
        let (own, shared) = self.fields();
        own.len() + shared.len()
    }

    /// The length of what [`Self::write`] writes.
    pub(super) fn written_len(&self) -> usize {
        let len = self.encoded_len();
        1 + encoded_len_varint(len as u64) + len
    }

    /// Writes it as an element of its bucket.
    pub(super) fn write(&self, buffer: &mut impl BufMut) {
        let (own, shared) = self.fields();
        encode_key(LIST_TAG, WireType::LengthDelimited, buffer);
        encode_varint(self.encoded_len() as u64, buffer);
        buffer.put_slice(own);
        buffer.put_slice(shared);
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it was encoded from text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_proto::v1;

    #[test]
    fn it_is_what_it_was_made_of() {
        let part = v1::Pod {
            labels: vec![v1::Label {
                key: "app".into(),
                value: "x".into(),
            }],
            ..Default::default()
        };
        for name in ["p", "é", &"long".repeat(60), ""] {
            let own = v1::Pod {
                name: name.into(),
                uid: "u".into(),
                ..Default::default()
            };
            let shared = Arc::new(Part::new(&part.encode_to_vec(), Some("owner")));
            let stored = Stored::new(&own, Some(shared), "12", 3);
            assert_eq!(
                (stored.name(), stored.version(), stored.owner(), stored.bucket()),
                (name, "12", Some("owner"), 3)
            );
            let whole = v1::Pod {
                labels: part.labels.clone(),
                ..own.clone()
            };
            assert_eq!(stored.decode::<v1::Pod>(), whole);
            assert_eq!(stored.decode_own::<v1::Pod>(), own);
            let mut written = Vec::new();
            stored.write(&mut written);
            assert_eq!(written.len(), stored.written_len());
            let bucket = v1::PodBucket::decode(&written[..]).expect("a bucket");
            assert_eq!(bucket.pods, [whole]);
        }
    }
}
