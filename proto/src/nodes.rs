//! The labels that several nodes of a bucket share.
//!
//! Every client writes buckets by the same rule, so that equal nodes have equal bytes, whatever their history and whoever sends them: an
//! entry is shared if at least two nodes of the bucket have it, the entries are in order of key and value, and each node's numbers
//! ascend. `testdata/bucket_bytes.json` has examples.

use std::collections::BTreeMap;

use crate::v1::{Label, Node, NodeBucket, SharedLabel};

impl SharedLabel {
    /// A label of the node of this name, as several nodes may have it.
    #[must_use]
    pub fn of(label: Label, node: &str) -> Self {
        let Label { key, value } = label;
        let value_is_node_name = value == node;
        Self {
            key,
            value: if value_is_node_name { String::new() } else { value },
            value_is_node_name,
        }
    }

    /// The value that the node of this name has.
    #[must_use]
    pub fn value_on_node<'a>(&'a self, node: &'a str) -> &'a str {
        if self.value_is_node_name {
            node
        } else {
            &self.value
        }
    }

    /// The label that the node of this name has.
    #[must_use]
    pub fn on_node(&self, node: &str) -> Label {
        Label {
            key: self.key.clone(),
            value: self.value_on_node(node).to_owned(),
        }
    }
}

/// A label as an entry of a bucket: the key, whether the value is the name of its node, and otherwise the value. In the order of the
/// entries.
type Entry = (String, bool, String);

/// Makes a bucket of these nodes, in which labels that at least two of them have occur once.
#[must_use]
pub fn sharing(mut nodes: Vec<Node>) -> NodeBucket {
    let mut counts = BTreeMap::<Entry, usize>::new();
    for node in &nodes {
        for entry in entries(node).into_iter().flatten() {
            *counts.entry(entry).or_default() += 1;
        }
    }
    counts.retain(|_, nodes| *nodes > 1);
    let numbers: BTreeMap<&Entry, u32> = counts.keys().zip(1..).collect();
    for node in &mut nodes {
        let mut entries = entries(node).into_iter();
        let shared = &mut node.shared_labels;
        node.labels.retain(|_| {
            let entry = entries.next().flatten();
            let number = entry.and_then(|entry| numbers.get(&entry));
            shared.extend(number);
            number.is_none()
        });
        shared.sort_unstable();
    }
    let label = |(key, value_is_node_name, value)| SharedLabel {
        key,
        value,
        value_is_node_name,
    };
    NodeBucket {
        nodes,
        shared_labels: counts.into_keys().map(label).collect(),
    }
}

/// The entry of each label of a node. `None` for one that cannot be shared: without a key, or with a key that the node has twice.
fn entries(node: &Node) -> Vec<Option<Entry>> {
    let mut keys = BTreeMap::<&str, usize>::new();
    for label in &node.labels {
        *keys.entry(&label.key).or_default() += 1;
    }
    let entry = |label: &Label| {
        if label.key.is_empty() || keys[&*label.key] > 1 {
            return None;
        }
        let label = SharedLabel::of(label.clone(), &node.name);
        Some((label.key, label.value_is_node_name, label.value))
    };
    node.labels.iter().map(entry).collect()
}

/// The nodes of a bucket, each with all labels of its own, in order of their keys. `None` if a node refers to an entry that does not
/// exist.
#[must_use]
pub fn whole(bucket: NodeBucket) -> Option<Vec<Node>> {
    let shared = bucket.shared_labels;
    let whole = |mut node: Node| {
        for number in std::mem::take(&mut node.shared_labels) {
            let index = usize::try_from(number).ok()?.checked_sub(1)?;
            let entry = shared.get(index)?;
            let label = entry.on_node(&node.name);
            node.labels.push(label);
        }
        node.labels.sort_by(|a, b| a.key.cmp(&b.key));
        Some(node)
    };
    bucket.nodes.into_iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, labels: &[(&str, &str)]) -> Node {
        let label = |(key, value): &(&str, &str)| Label {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        Node {
            name: name.to_owned(),
            labels: labels.iter().map(label).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn what_is_shared_comes_back_whole() {
        let nodes = [
            node("a", &[("hostname", "a"), ("os", "linux"), ("zone", "1")]),
            // Its hostname is the name of the node before.
            node("b", &[("hostname", "a"), ("os", "linux"), ("zone", "2")]),
            node("c", &[("hostname", "c"), ("os", "linux"), ("zone", "1")]),
            node("d", &[("hostname", "a")]),
            node("e", &[]),
        ];
        let bucket = sharing(nodes.to_vec());
        let entry = |label: &SharedLabel| (label.key.clone(), label.value.clone(), label.value_is_node_name);
        let text = |key: &str, value: &str, is_name| (key.to_owned(), value.to_owned(), is_name);
        assert_eq!(
            bucket.shared_labels.iter().map(entry).collect::<Vec<_>>(),
            [
                text("hostname", "a", false),
                text("hostname", "", true),
                text("os", "linux", false),
                text("zone", "1", false),
            ]
        );
        let numbers: Vec<_> = bucket.nodes.iter().map(|node| &node.shared_labels[..]).collect();
        assert_eq!(numbers, [&[2, 3, 4][..], &[1, 3], &[2, 3, 4], &[1], &[]]);
        assert_eq!(whole(bucket).as_deref(), Some(&nodes[..]));
    }

    #[test]
    fn labels_that_no_apiserver_accepts_stay_with_the_node() {
        let nodes = vec![node("a", &[("", "x"), ("k", "1"), ("k", "1")]); 2];
        let bucket = sharing(nodes.clone());
        assert_eq!((bucket.nodes, bucket.shared_labels), (nodes, vec![]));
    }

    #[test]
    fn numbers_without_an_entry_are_refused() {
        for number in [0, 1] {
            let mut node = node("a", &[]);
            node.shared_labels = vec![number];
            let bucket = NodeBucket {
                nodes: vec![node],
                shared_labels: vec![],
            };
            assert_eq!(whole(bucket), None);
        }
    }
}
