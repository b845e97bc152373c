//! Nodes in encoded form. The bytes of a bucket of nodes are written by [`SharedLabels`].

use std::sync::Arc;

use bytes::Bytes;
use nodewise_proto::v1;

use super::encoded_object::{EncodedNode, Shared};
use super::node_labels::NodeLabels;
use super::shared_labels::SharedLabels;
use crate::label_keys::KeySet;

impl EncodedNode {
    /// Creates a node with these labels. The labels of `node` are ignored.
    #[must_use]
    pub fn of_node(mut node: v1::Node, labels: Arc<NodeLabels>, version: &str) -> Self {
        node.labels = Vec::new();
        Self::new(&node, &node.uid, labels, version)
    }

    /// Decodes the node, with all of its labels.
    #[must_use]
    pub fn node(&self) -> v1::Node {
        let mut node = self.decode_own::<v1::Node>();
        let labels = self.shared().list().iter().map(|label| label.on_node(&node.name));
        node.labels = labels.collect();
        node
    }
}

impl Shared for NodeLabels {
    const MAY_SHARE_LABELS: bool = true;

    fn node(object: &EncodedNode) -> &str {
        object.name()
    }

    fn is_sent_as_same_bytes(&self, other: &Self, keys: &KeySet) -> bool {
        keys.sent(self.list()).eq(keys.sent(other.list()))
    }

    fn cut(&self, keys: &KeySet) -> usize {
        keys.cut_of(self.list())
    }

    fn write_bucket(members: &[&EncodedNode], keys: &KeySet, shares_labels: bool) -> (Bytes, bool) {
        let labels = SharedLabels::of(members, keys, shares_labels);
        (labels.write(members), labels.is_used())
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::testing::{NAMES, UIDS};
    use super::*;

    #[test]
    fn a_node_decodes_to_its_input() {
        let label = |key: &str, value: &str| v1::Label {
            key: key.into(),
            value: value.into(),
        };
        let keys = crate::testing::keys(&["", "empty", "hostname", "zone"]);
        for (name, uid) in NAMES.into_iter().flat_map(|name| UIDS.map(|uid| (name, uid))) {
            let node = v1::Node {
                name: name.into(),
                uid: uid.into(),
                labels: vec![
                    label("", "v"),
                    label("empty", ""),
                    label("hostname", name),
                    label("zone", "a"),
                ],
                unschedulable: true,
                ..Default::default()
            };
            let labels = node
                .labels
                .iter()
                .map(|label| Arc::new(v1::SharedLabel::of(label.clone(), name)));
            let labels = Arc::new(NodeLabels::new(labels.collect()));
            let stored = EncodedNode::of_node(node.clone(), labels, "12");
            assert_eq!((stored.name(), stored.version()), (name, "12"));
            assert_eq!(stored.node(), node);
            let (data, shares_labels) = NodeLabels::write_bucket(&[&stored], &keys, false);
            let bucket = v1::NodeBucket {
                nodes: vec![node],
                ..Default::default()
            };
            assert_eq!(
                (data, shares_labels),
                (bucket.encode_to_vec().into(), false),
                "{uid}"
            );
        }
    }
}
