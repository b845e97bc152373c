//! The labels of a node, stored once for all nodes that have the same ones.

use std::sync::Arc;

use bytes::BufMut;
use nodewise_proto::v1;

use super::wire::{element_len, write_element, write_head};

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

    /// The labels, ordered by key.
    #[must_use]
    pub fn list(&self) -> &[Arc<v1::SharedLabel>] {
        &self.0
    }
}

/// The length of the output of [`write_label`], in bytes.
pub(super) fn written_label_len(label: &v1::SharedLabel, node: &str) -> usize {
    element_len(label_len(&label.key, label.value_on_node(node)))
}

/// Writes a label of the node of this name, as an element of its labels.
pub(super) fn write_label(label: &v1::SharedLabel, node: &str, buffer: &mut impl BufMut) {
    let value = label.value_on_node(node);
    write_head(LABELS_TAG, label_len(&label.key, value), buffer);
    for (tag, text) in [(1, label.key.as_str()), (2, value)] {
        if !text.is_empty() {
            write_element(tag, text.as_bytes(), buffer);
        }
    }
}

fn label_len(key: &str, value: &str) -> usize {
    let texts = [key, value].into_iter().filter(|text| !text.is_empty());
    texts.map(|text| element_len(text.len())).sum()
}
