//! One object in the encoded form in which it is sent.
//!
//! What an object has in common with many others (the labels and the controller of a DaemonSet's pods) is kept once, as a
//! [`Part`], and sent once for each bucket. Fields of a Protobuf message may come in any order, so its own fields followed by the
//! part are the message.

use std::sync::Arc;

use bytes::BufMut;
use prost::Message;
use prost::encoding::{WireType, decode_varint, encode_key, encode_varint, encoded_len_varint};

/// The tag of the list in NodeBucket and in PodBucket.
const LIST_TAG: u32 = 1;
/// The tag in PodBucket of what its pods share.
const SHARED_METADATA_TAG: u32 = 2;
/// The tag in Pod of the number of what it shares.
const NUMBER_TAG: u32 = 13;
/// The key of the first field of a Node and of a Pod, its name: field 1, length-delimited.
const NAME_KEY: u8 = 0x0a;

/// Encoded fields that objects share: a SharedMetadata.
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

    /// The length of what [`Self::write`] writes.
    pub(super) fn written_len(&self) -> usize {
        element_len(self.encoded.len())
    }

    /// Writes it for the pods of its bucket to refer to.
    pub(super) fn write(&self, buffer: &mut impl BufMut) {
        encode_key(SHARED_METADATA_TAG, WireType::LengthDelimited, buffer);
        encode_varint(self.encoded.len() as u64, buffer);
        buffer.put_slice(&self.encoded);
    }
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

    fn encoded_len(&self, number: u32) -> usize {
        let own = self.fields().0.len();
        match number {
            0 => own,
            _ => own + 1 + encoded_len_varint(number.into()),
        }
    }

    /// The length of what [`Self::write`] writes.
    pub(super) fn written_len(&self, number: u32) -> usize {
        element_len(self.encoded_len(number))
    }

    /// Writes it as an element of its bucket, where what it shares has this number; 0: it shares nothing.
    pub(super) fn write(&self, number: u32, buffer: &mut impl BufMut) {
        encode_key(LIST_TAG, WireType::LengthDelimited, buffer);
        encode_varint(self.encoded_len(number) as u64, buffer);
        buffer.put_slice(self.fields().0);
        if number > 0 {
            encode_key(NUMBER_TAG, WireType::Varint, buffer);
            encode_varint(number.into(), buffer);
        }
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
            let stored = Stored::new(&own, Some(Arc::clone(&shared)), "12", 3);
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
            for number in [0, 1, 200] {
                let mut written = Vec::new();
                stored.write(number, &mut written);
                assert_eq!(written.len(), stored.written_len(number));
                shared.write(&mut written);
                assert_eq!(written.len(), stored.written_len(number) + shared.written_len());
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
