//! The labels of one object, as rules read them.

use std::fmt;

use crate::core::labels::Labels;

/// The labels of one object. Those of nodes are stored once for all nodes that have the same ones; a label whose value is the name of
/// the node counts as the same for all of them.
#[derive(Clone, Copy)]
pub struct LabelView<'a> {
    labels: &'a Labels,
    /// The positions of the labels whose value is `name`, in ascending order.
    named: &'a [u32],
    name: &'a str,
}

impl<'a> LabelView<'a> {
    /// These labels, but those at the positions `named` have the value `name`.
    pub(crate) fn with_name(labels: &'a Labels, named: &'a [u32], name: &'a str) -> Self {
        Self { labels, named, name }
    }

    /// The value of a label.
    #[must_use]
    pub fn get(self, key: &str) -> Option<&'a str> {
        let position = self.labels.find(key)?;
        Some(self.value(position))
    }

    fn value(self, position: usize) -> &'a str {
        if self.named.iter().any(|named| *named as usize == position) {
            self.name
        } else {
            self.labels.value(position)
        }
    }

    /// All labels, ascending by key.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        (0..self.labels.len()).map(move |position| (self.labels.key(position), self.value(position)))
    }

    /// The number of labels.
    #[must_use]
    pub fn len(self) -> usize {
        self.labels.len()
    }

    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.labels.is_empty()
    }

    /// Labels of their own. A clone of the stored ones if that is the same.
    #[must_use]
    pub fn to_labels(self) -> Labels {
        if self.named.is_empty() {
            return self.labels.clone();
        }
        Labels::of(&mut self.iter().collect::<Vec<_>>())
    }
}

impl<'a> From<&'a Labels> for LabelView<'a> {
    fn from(labels: &'a Labels) -> Self {
        Self::with_name(labels, &[], "")
    }
}

impl fmt::Debug for LabelView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for LabelView<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for LabelView<'_> {}
