//! Helpers for tests.

use crate::label_keys::{KeySet, LabelKeysRead};

/// Returns the label keys that are sent if DaemonSets select nodes by these labels.
#[must_use]
pub fn keys(labels: &[&str]) -> KeySet {
    KeySet::of_nodes([&LabelKeysRead {
        node_labels: labels.iter().map(|key| (*key).to_owned()).collect(),
        ..LabelKeysRead::default()
    }])
}
