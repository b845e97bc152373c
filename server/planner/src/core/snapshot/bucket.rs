//! Buckets: a snapshot holds its nodes and pods in parts, so that unchanged parts need not be sent and planned again.

use std::{cmp::Ordering, ops::Deref, sync::Arc};

use super::{Node, Pod};

/// The digest of a list. Lists with equal digests hold equal objects.
pub type Digest = [u8; 32];

/// Some nodes, and the pods on or for these nodes.
///
/// Pods of a node that does not exist are all in one bucket, whichever that is. So are pods without a node.
#[derive(Debug, Clone, Default)]
pub struct Bucket {
    /// The nodes.
    pub nodes: List<Node>,
    /// The pods.
    pub pods: List<Pod>,
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

/// An object that a bucket holds lists of.
pub trait Listed {
    /// The order of the objects in a list.
    fn order(a: &Self, b: &Self) -> Ordering;
}

impl Listed for Node {
    fn order(a: &Self, b: &Self) -> Ordering {
        a.name.cmp(&b.name)
    }
}

/// The objects of one kind in one bucket, sorted. A clone shares the objects.
#[derive(Debug)]
pub struct List<T> {
    items: Arc<[T]>,
    digest: Option<Digest>,
}

impl<T: Listed + Clone> List<T> {
    /// A list without a digest. The objects may be in any order.
    #[must_use]
    pub fn new(items: Vec<T>) -> Self {
        Self::sorted(items, None)
    }

    /// A list with a digest. The objects may be in any order.
    #[must_use]
    pub fn with_digest(items: Vec<T>, digest: Digest) -> Self {
        Self::sorted(items, Some(digest))
    }

    fn sorted(mut items: Vec<T>, digest: Option<Digest>) -> Self {
        let in_order = |a: &T, b: &T| T::order(a, b).is_le();
        let items = if items.is_sorted_by(in_order) {
            items.into()
        } else {
            items.sort_by(T::order);
            // Clone the items, so that their allocations are in list order too: plans visit thousands of items, and the time is
            // mostly memory access.
            items.iter().cloned().collect()
        };
        Self { items, digest }
    }
}

impl<T> List<T> {
    /// The digest, if the list has one.
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
