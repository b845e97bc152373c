//! Buckets: a snapshot holds its nodes and pods in parts, so that unchanged parts need not be sent and planned again.

use super::{List, Node, Nodes, Pod, Pods};

/// Some nodes, and the pods on or for these nodes.
///
/// Pods of a node that does not exist are all in one bucket, whichever that is. So are pods without a node.
#[derive(Debug, Clone, Default)]
pub struct Bucket {
    /// The nodes.
    pub nodes: List<Nodes>,
    /// The pods.
    pub pods: List<Pods>,
}

impl Bucket {
    /// Divides objects among `count` buckets. `bucket_of` gives the index of the bucket for a node's name, which is empty for
    /// pods without a node. It must be less than `count`.
    #[must_use]
    pub fn divide(
        nodes: Vec<Node>,
        pods: Vec<Pod>,
        count: usize,
        bucket_of: impl Fn(&str) -> usize,
    ) -> Vec<Self> {
        let mut divided: Vec<(Vec<Node>, Vec<Pod>)> = (0..count).map(|_| Default::default()).collect();
        for node in nodes {
            divided[bucket_of(&node.name)].0.push(node);
        }
        for pod in pods {
            divided[bucket_of(pod.target.node().unwrap_or_default())]
                .1
                .push(pod);
        }
        let lists = divided.into_iter();
        lists
            .map(|(nodes, pods)| Self {
                nodes: List::new(nodes),
                pods: List::new(pods),
            })
            .collect()
    }
}
