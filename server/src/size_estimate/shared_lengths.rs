//! The lengths of the labels that the nodes of a bucket share. The nodes refer to them by number, and come before them in the bytes.

use prost::encoding::{DecodeContext, decode_key, skip_field};

use crate::limits::Limits;

/// The tag of `shared_labels` in NodeBucket.
const SHARED_LABELS_TAG: u32 = 2;
/// The tag of `value_is_node_name` in SharedLabel.
const IS_NAME_TAG: u32 = 3;

/// The length of each label of a bucket, in bytes.
#[derive(Debug, Default)]
pub(super) struct SharedLengths(Vec<SharedLength>);

#[derive(Debug, Clone, Copy)]
struct SharedLength {
    /// The bytes of the message. Those of key and value are a little less.
    message: u32,
    /// Whether the name of the node is added.
    is_name: bool,
}

impl SharedLengths {
    /// The lengths of the labels of this NodeBucket. Bytes that cannot be read end the list; the decoder will report them.
    pub(super) fn of(mut bucket: &[u8]) -> Self {
        let mut lengths = Vec::new();
        while let Ok((tag, wire_type)) = decode_key(&mut bucket) {
            if tag != SHARED_LABELS_TAG {
                if skip_field(wire_type, tag, &mut bucket, DecodeContext::default()).is_err() {
                    break;
                }
                continue;
            }
            let Some(label) = super::content(wire_type, tag, &mut bucket) else {
                break;
            };
            lengths.push(SharedLength {
                message: u32::try_from(label.len()).unwrap_or(u32::MAX),
                is_name: has_field(label, IS_NAME_TAG),
            });
        }
        Self(lengths)
    }

    /// The most bytes of key and value of the label with this number, counted from 1, of a node that is encoded in `node` bytes.
    pub(super) fn of_number(&self, number: u64, node: usize) -> usize {
        let index = usize::try_from(number).ok();
        let index = index.and_then(|number| number.checked_sub(1));
        let Some(length) = index.and_then(|index| self.0.get(index)) else {
            return 0;
        };
        let name = if length.is_name {
            node.min(Limits::NAME_BYTES)
        } else {
            0
        };
        name + length.message as usize
    }
}

fn has_field(mut message: &[u8], wanted: u32) -> bool {
    while let Ok((tag, wire_type)) = decode_key(&mut message) {
        if tag == wanted {
            return true;
        }
        if skip_field(wire_type, tag, &mut message, DecodeContext::default()).is_err() {
            return false;
        }
    }
    false
}
