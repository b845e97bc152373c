//! The labels of a node, stored once for all nodes that have the same ones.

use std::sync::Arc;

use bytes::BufMut;
use nodewise_proto::v1;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::wire::element_len;
use crate::label_keys::KeySet;

/// The tag of the labels in Node.
const LABELS_TAG: u32 = 3;

/// All labels of a node, ordered by key. A value that is the name of its node, such as that of `kubernetes.io/hostname`, counts as
/// the same value for all nodes: otherwise no two nodes would have the same labels.
#[derive(Debug, PartialEq, Eq)]
pub struct NodeLabels(Box<[Arc<v1::SharedLabel>]>);

impl NodeLabels {
    /// The labels of a node, ordered by key.
    #[must_use]
    pub fn new(labels: Box<[Arc<v1::SharedLabel>]>) -> Self {
        Self(labels)
    }

    /// A label of the node of this name, as several nodes may have it.
    #[must_use]
    pub fn label(label: v1::Label, node: &str) -> v1::SharedLabel {
        let v1::Label { key, value } = label;
        let value_is_node_name = value == node;
        v1::SharedLabel {
            key,
            value: if value_is_node_name { String::new() } else { value },
            value_is_node_name,
        }
    }

    /// The labels, ordered by key.
    #[must_use]
    pub fn list(&self) -> &[Arc<v1::SharedLabel>] {
        &self.0
    }

    /// The labels that are sent, ordered by key.
    pub(super) fn sent(&self, keys: &KeySet) -> impl Iterator<Item = &Arc<v1::SharedLabel>> {
        keys.sent(&self.0)
    }
}

/// The value of a label that the node of this name has.
pub(super) fn value<'a>(label: &'a v1::SharedLabel, node: &'a str) -> &'a str {
    if label.value_is_node_name {
        node
    } else {
        &label.value
    }
}

/// The length of the output of [`write_label`], in bytes.
pub(super) fn written_label_len(label: &v1::SharedLabel, node: &str) -> usize {
    element_len(label_len(&label.key, value(label, node)))
}

/// Writes a label of the node of this name, as an element of its labels.
pub(super) fn write_label(label: &v1::SharedLabel, node: &str, buffer: &mut impl BufMut) {
    let value = value(label, node);
    encode_key(LABELS_TAG, WireType::LengthDelimited, buffer);
    encode_varint(label_len(&label.key, value) as u64, buffer);
    for (tag, text) in [(1, label.key.as_str()), (2, value)] {
        if !text.is_empty() {
            encode_key(tag, WireType::LengthDelimited, buffer);
            encode_varint(text.len() as u64, buffer);
            buffer.put_slice(text.as_bytes());
        }
    }
}

fn label_len(key: &str, value: &str) -> usize {
    let texts = [key, value].into_iter().filter(|text| !text.is_empty());
    texts.map(|text| element_len(text.len())).sum()
}
