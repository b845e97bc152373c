//! The form of the lists of a bucket.

use prost::encoding::encoded_len_varint;

/// The tag of the list of objects in NodeBucket and PodBucket.
pub(super) const LIST_TAG: u32 = 1;

/// The length of an element of a list of a message with this content, in bytes. The list's tag has one byte.
pub(super) fn element_len(content: usize) -> usize {
    1 + encoded_len_varint(content as u64) + content
}
