//! The labels of one object, as rules read them.

use std::fmt;

use super::{Labels, classes::DistinctLabels};

/// The labels of one object. Those of a node are the labels of its class.
#[derive(Clone, Copy)]
pub struct LabelView<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Own(&'a Labels),
    Class {
        all: &'a DistinctLabels,
        /// The numbers of the labels of the class, by key.
        members: &'a [u32],
        /// The node's name.
        name: &'a str,
    },
}

/// Up to this many labels, a linear search is used instead of a binary search.
const FEW: usize = 8;

impl<'a> LabelView<'a> {
    /// The labels of a class, on the node of this name.
    pub(crate) fn of_class(all: &'a DistinctLabels, members: &'a [u32], name: &'a str) -> Self {
        Self(Source::Class { all, members, name })
    }

    /// The value of a label.
    #[must_use]
    pub fn get(self, key: &str) -> Option<&'a str> {
        match self.0 {
            Source::Own(labels) => labels.get(key),
            Source::Class { all, members, name } => {
                let position = if members.len() <= FEW {
                    members.iter().position(|label| all.key(*label) == key)
                } else {
                    members.binary_search_by(|label| all.key(*label).cmp(key)).ok()
                };
                position.map(|position| all.value(members[position], name))
            }
        }
    }

    /// All labels, ascending by key.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let (own, class) = match self.0 {
            Source::Own(labels) => (Some(labels.iter()), None),
            Source::Class { all, members, name } => {
                let label = move |label: &u32| (all.key(*label), all.value(*label, name));
                (None, Some(members.iter().map(label)))
            }
        };
        own.into_iter().flatten().chain(class.into_iter().flatten())
    }

    /// The number of labels.
    #[must_use]
    pub fn len(self) -> usize {
        match self.0 {
            Source::Own(labels) => labels.len(),
            Source::Class { members, .. } => members.len(),
        }
    }

    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Labels of their own.
    #[must_use]
    pub fn to_labels(self) -> Labels {
        match self.0 {
            Source::Own(labels) => labels.clone(),
            Source::Class { .. } => Labels::of(&mut self.iter().collect::<Vec<_>>()),
        }
    }
}

impl<'a> From<&'a Labels> for LabelView<'a> {
    fn from(labels: &'a Labels) -> Self {
        Self(Source::Own(labels))
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
