//! Fields of Protobuf messages, as the objects of a bucket are written.

use bytes::BufMut;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

/// The tag of the list of objects in NodeBucket and PodBucket.
pub(super) const LIST_TAG: u32 = 1;

/// The length of a field with this content, in bytes. Its tag has one byte.
pub(super) fn element_len(content: usize) -> usize {
    1 + encoded_len_varint(content as u64) + content
}

/// Writes what comes before the content of a field: its tag and its length.
pub(super) fn write_head(tag: u32, content: usize, buffer: &mut impl BufMut) {
    encode_key(tag, WireType::LengthDelimited, buffer);
    encode_varint(content as u64, buffer);
}

/// Writes a field with this content.
pub(super) fn write_element(tag: u32, content: &[u8], buffer: &mut impl BufMut) {
    write_head(tag, content.len(), buffer);
    buffer.put_slice(content);
}
