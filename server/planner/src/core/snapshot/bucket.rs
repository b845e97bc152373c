//! Nodes and pods in the parts in which they come.

use std::{cmp::Ordering, ops::Deref, sync::Arc};

use super::{Node, Pod};
/// What tells the content of a list: lists of equal digests hold equal objects.
pub type Digest = [u8; 32];

/// Some nodes, and the pods that are on them or meant for them.
///
/// Pods whose node does not exist, or that have no node, are in any one bucket, those of one name in the same.
#[derive(Debug, Clone, Default)]
pub struct Bucket {
    /// The nodes.
    pub nodes: List<Node>,
    /// The pods.
    pub pods: List<Pod>,
}

impl Bucket {
    /// Divides objects among `count` buckets. `bucket_of` tells the bucket of a node's name; a pod without a node is asked for by
    /// the empty name.
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

/// What a bucket holds lists of.
pub trait Listed {
    /// The order in which plans walk the objects of a bucket.
    fn order(a: &Self, b: &Self) -> Ordering;
}

impl Listed for Node {
    fn order(a: &Self, b: &Self) -> Ordering {
        a.name.cmp(&b.name)
    }
}

/// The objects of one kind in one bucket, sorted once for all plans.
#[derive(Debug)]
pub struct List<T> {
    items: Arc<[T]>,
    digest: Option<Digest>,
}

impl<T: Listed + Clone> List<T> {
    /// A list of objects in any order, which nothing is remembered of.
    #[must_use]
    pub fn new(items: Vec<T>) -> Self {
        Self::sorted(items, None)
    }

    /// A list of objects in any order that are known by a digest.
    #[must_use]
    pub fn known_by(items: Vec<T>, digest: Digest) -> Self {
        Self::sorted(items, Some(digest))
    }

    fn sorted(mut items: Vec<T>, digest: Option<Digest>) -> Self {
        let in_order = |a: &T, b: &T| T::order(a, b).is_le();
        let items = if items.is_sorted_by(in_order) {
            items.into()
        } else {
            items.sort_by(T::order);
            // Plans walk thousands of objects, and wait for memory above all: what is next in the walk should lie next.
            items.iter().cloned().collect()
        };
        Self { items, digest }
    }
}

impl<T> List<T> {
    /// What the content is known by, if by anything.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self {
            items: Arc::clone(&self.items),
            digest: self.digest,
        }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self {
            items: Arc::new([]),
            digest: None,
        }
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}
