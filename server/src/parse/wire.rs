//! Decodes the elements of buckets.
//!
//! The generated code would allocate a string for every key and every value of every label, which takes most of the time of a call.
//! So labels and names are decoded here, as slices of the message. The generated code decodes everything else.

use bytes::Buf as _;
use prost::{
    DecodeError, Message,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};

/// The tag of the list in NodeBucket and in PodBucket.
const LIST_TAG: u32 = 1;
/// The tag of `shared_metadata` in PodBucket, and of `shared_labels` in NodeBucket.
const SHARED_TAG: u32 = 2;
/// The tag of the labels in Node, in Pod and in SharedMetadata.
const LABELS_TAG: u32 = 3;
/// The tags of the fields of Label and SharedLabel.
const KEY_TAG: u32 = 1;
const VALUE_TAG: u32 = 2;
/// The tag of `value_is_node_name` in SharedLabel.
const IS_NAME_TAG: u32 = 3;

/// The serialized elements of a list in a NodeBucket or PodBucket. Other fields are skipped.
pub(super) struct Elements<'a> {
    bytes: &'a [u8],
    list: u32,
}

impl<'a> Elements<'a> {
    /// The elements of `nodes` or `pods`.
    pub(super) fn listed(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            list: LIST_TAG,
        }
    }

    /// The elements of `shared_metadata` or `shared_labels`.
    pub(super) fn shared(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            list: SHARED_TAG,
        }
    }

    fn advance(&mut self) -> Result<Option<&'a [u8]>, String> {
        while !self.bytes.is_empty() {
            let (tag, wire_type) = decode_key(&mut self.bytes).map_err(text)?;
            if tag == self.list && wire_type == WireType::LengthDelimited {
                return delimited(&mut self.bytes).map(Some);
            }
            skip(wire_type, tag, &mut self.bytes)?;
        }
        Ok(None)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], String>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.bytes = &[];
        }
        next.transpose()
    }
}

/// Decodes a Node, a Pod or a SharedMetadata. The fields with the tags `texts` are returned, and the labels are appended to `labels`,
/// instead of being in the message.
pub(super) fn decode<'a, M: Message + Default, const N: usize>(
    mut bytes: &'a [u8],
    texts: [u32; N],
    labels: &mut Vec<(&'a str, &'a str)>,
) -> Result<(M, [&'a str; N]), String> {
    let mut message = M::default();
    let mut found = [""; N];
    while !bytes.is_empty() {
        let (tag, wire_type) = decode_key(&mut bytes).map_err(text)?;
        let is_text = || texts.iter().position(|text| *text == tag);
        if wire_type != WireType::LengthDelimited {
            merge(&mut message, tag, wire_type, &mut bytes)?;
        } else if tag == LABELS_TAG {
            let entry = label(delimited(&mut bytes)?)
                .map_err(|error| format!("labels[{}]: {error}", labels.len()))?;
            labels.push(entry);
        } else if let Some(index) = is_text() {
            found[index] = utf8(delimited(&mut bytes)?)?;
        } else {
            merge(&mut message, tag, wire_type, &mut bytes)?;
        }
    }
    Ok((message, found))
}

fn merge(message: &mut impl Message, tag: u32, wire_type: WireType, bytes: &mut &[u8]) -> Result<(), String> {
    let merged = message.merge_field(tag, wire_type, bytes, DecodeContext::default());
    merged.map_err(text)
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Decodes a SharedLabel: key, value, and whether the value is the name of the node.
pub(super) fn shared_label(mut bytes: &[u8]) -> Result<(&str, &str, bool), String> {
    let (key, value) = label(bytes)?;
    let mut is_name = false;
    while !bytes.is_empty() {
        let (tag, wire_type) = decode_key(&mut bytes).map_err(text)?;
        if tag == IS_NAME_TAG && wire_type == WireType::Varint {
            is_name = decode_varint(&mut bytes).map_err(text)? != 0;
        } else {
            skip(wire_type, tag, &mut bytes)?;
        }
    }
    Ok((key, value, is_name))
}

fn label(mut bytes: &[u8]) -> Result<(&str, &str), String> {
    let (mut key, mut value) = ("", "");
    while !bytes.is_empty() {
        let (tag, wire_type) = decode_key(&mut bytes).map_err(text)?;
        let target = match (tag, wire_type) {
            (KEY_TAG, WireType::LengthDelimited) => &mut key,
            (VALUE_TAG, WireType::LengthDelimited) => &mut value,
            _ => {
                skip(wire_type, tag, &mut bytes)?;
                continue;
            }
        };
        *target = utf8(delimited(&mut bytes)?)?;
    }
    Ok((key, value))
}

/// Takes a length prefix and that many bytes.
fn delimited<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let length = decode_varint(bytes).map_err(text)?;
    let element = usize::try_from(length)
        .ok()
        .and_then(|length| bytes.get(..length));
    let element = element.ok_or_else(|| format!("ends within an element of {length} bytes"))?;
    bytes.advance(element.len());
    Ok(element)
}

fn skip(wire_type: WireType, tag: u32, bytes: &mut &[u8]) -> Result<(), String> {
    skip_field(wire_type, tag, bytes, DecodeContext::default()).map_err(text)
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(error: DecodeError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use nodewise_proto::v1;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn labels_are_decoded_as_by_the_generated_code(
            entries in prop::collection::vec((".{0,12}", ".{0,12}"), 0..6), name in ".{0,8}", unschedulable: bool,
        ) {
            let labels = entries.into_iter().map(|(key, value)| v1::Label { key, value }).collect();
            let node = v1::Node { name, labels, unschedulable, ..Default::default() };
            let bytes = node.encode_to_vec();
            let mut labels = Vec::new();
            let (rest, [name]) = decode::<v1::Node, 1>(&bytes, [1], &mut labels).unwrap();
            let labels: Vec<_> =
                labels.into_iter().map(|(key, value)| v1::Label { key: key.into(), value: value.into() }).collect();
            prop_assert_eq!(v1::Node { name: name.into(), labels, ..rest }, node);
        }

        #[test]
        fn shared_labels_are_decoded_as_by_the_generated_code(
            key in ".{0,12}", value in ".{0,12}", value_is_node_name: bool, mut bytes in prop::collection::vec(any::<u8>(), 0..8),
        ) {
            let mut encoded = v1::SharedLabel { key, value, value_is_node_name }.encode_to_vec();
            encoded.append(&mut bytes);
            let here = shared_label(&encoded);
            match v1::SharedLabel::decode(&encoded[..]) {
                Ok(label) => prop_assert_eq!(here, Ok((&*label.key, &*label.value, label.value_is_node_name))),
                Err(error) => prop_assert!(here.is_err() || error.to_string().contains("wire type"), "{here:?}"),
            }
        }

        #[test]
        fn invalid_bytes_are_refused_as_by_the_generated_code(
            mut bytes in prop::collection::vec(any::<u8>(), 0..24), labelled: bool,
        ) {
            if labelled {
                // Prefix the bytes with the tag and length of a label, so that they reach the decoder of labels.
                bytes.splice(0..0, [0x1a, u8::try_from(bytes.len()).unwrap()]);
            }
            let mut labels = Vec::new();
            let here: Result<(v1::Pod, _), _> = decode(&bytes, [1, 2, 5, 6, 14], &mut labels);
            let generated = v1::Pod::decode(&bytes[..]);
            prop_assert!(
                here.is_ok() == generated.is_ok() || generated.is_err_and(|error| error.to_string().contains("wire type")),
                "{here:?} of {bytes:?}"
            );
        }
    }
}
