//! The labels of the nodes of one bucket: each label once, and each list of labels once, as a class of nodes.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable, hash_table::Entry};

use crate::core::texts::{Texts, TextsBuilder};

/// The distinct labels, by number. A label whose value is the name of its node, usually `kubernetes.io/hostname`, counts as the same
/// label on every node: otherwise every node would be a class of its own.
#[derive(Debug, Default)]
pub(crate) struct DistinctLabels {
    keys: Texts,
    /// Empty for the name of the node.
    values: Texts,
    are_names: Box<[bool]>,
}

impl DistinctLabels {
    /// The number of labels.
    pub(crate) fn len(&self) -> u32 {
        number(self.are_names.len())
    }

    /// The key of a label.
    pub(crate) fn key(&self, label: u32) -> &str {
        self.keys.get(label as usize)
    }

    /// The value of a label on the node of this name.
    pub(crate) fn value<'a>(&'a self, label: u32, name: &'a str) -> &'a str {
        if self.is_name(label) {
            name
        } else {
            self.values.get(label as usize)
        }
    }

    /// Whether the value is the name of the node.
    pub(crate) fn is_name(&self, label: u32) -> bool {
        self.are_names[label as usize]
    }
}

/// The classes of the nodes of one bucket.
#[derive(Debug, Default)]
pub(crate) struct NodeClasses {
    pub(crate) labels: DistinctLabels,
    /// The numbers of the labels of each class, one class after the other; those of one class by key.
    members: Box<[u32]>,
    /// Where each class ends in `members`.
    ends: Box<[u32]>,
}

impl NodeClasses {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The numbers of the labels of a class, by key.
    pub(crate) fn labels_of(&self, class: usize) -> &[u32] {
        members(&self.members, &self.ends, class)
    }

    pub(crate) fn bytes(&self) -> usize {
        let DistinctLabels {
            keys,
            values,
            are_names,
        } = &self.labels;
        let lists = size_of_val(&*self.members) + size_of_val(&*self.ends);
        keys.bytes() + values.bytes() + are_names.len() + lists
    }
}

fn members<'a>(members: &'a [u32], ends: &[u32], class: usize) -> &'a [u32] {
    let start = class.checked_sub(1).map_or(0, |before| ends[before]);
    &members[start as usize..ends[class] as usize]
}

/// A label of a [`ClassesBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelIndex(pub(crate) u32);

/// A class of a [`ClassesBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassIndex(pub(crate) u32);

/// Collects labels and classes. The tables are keyed with a random seed, so that nobody can choose labels that collide in them.
#[derive(Debug, Default)]
pub(crate) struct ClassesBuilder {
    keys: TextsBuilder,
    values: TextsBuilder,
    are_names: Vec<bool>,
    by_text: HashTable<u32>,
    members: Vec<u32>,
    ends: Vec<u32>,
    by_members: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The class of the node before: most nodes are like it.
    last: Option<u32>,
    /// The labels of one node.
    labels: Vec<u32>,
}

impl ClassesBuilder {
    /// The label with this key and this value; `None` is the name of the node.
    pub(crate) fn label(&mut self, key: &str, value: Option<&str>) -> LabelIndex {
        let Self {
            keys,
            values,
            are_names,
            by_text,
            hasher,
            ..
        } = self;
        let hash = |key: &str, value: Option<&str>| hasher.hash_one((key, value));
        let value_of = |label: usize| (!are_names[label]).then(|| values.get(label));
        let is_it = |label: &u32| keys.get(*label as usize) == key && value_of(*label as usize) == value;
        let hash_of = |label: &u32| hash(keys.get(*label as usize), value_of(*label as usize));
        match by_text.entry(hash(key, value), is_it, hash_of) {
            Entry::Occupied(found) => LabelIndex(*found.get()),
            Entry::Vacant(slot) => {
                let label = number(are_names.len());
                slot.insert(label);
                keys.push(key);
                values.push(value.unwrap_or_default());
                are_names.push(value.is_none());
                LabelIndex(label)
            }
        }
    }

    /// The class of a node of this name with these labels, by key; keys are unique.
    pub(crate) fn class(&mut self, name: &str, labels: &[(&str, &str)]) -> ClassIndex {
        debug_assert!(labels.is_sorted_by(|a, b| a.0 < b.0), "{labels:?}");
        self.labels.clear();
        for (position, (key, value)) in labels.iter().enumerate() {
            let value = (*value != name).then_some(*value);
            let label = self.same_as_before(position, key, value);
            let label = label.unwrap_or_else(|| self.label(key, value).0);
            self.labels.push(label);
        }
        self.class_of_labels()
    }

    /// The class of nodes with these labels, by key; keys are unique.
    pub(crate) fn class_of(&mut self, labels: &[LabelIndex]) -> ClassIndex {
        self.labels.clear();
        self.labels.extend(labels.iter().map(|label| label.0));
        self.class_of_labels()
    }

    /// The label at this position of the node before, if it is this one.
    fn same_as_before(&self, position: usize, key: &str, value: Option<&str>) -> Option<u32> {
        let label = *self.members_of(self.last?).get(position)?;
        let index = label as usize;
        let same_value = match value {
            None => self.are_names[index],
            Some(value) => !self.are_names[index] && self.values.get(index) == value,
        };
        (same_value && self.keys.get(index) == key).then_some(label)
    }

    fn members_of(&self, class: u32) -> &[u32] {
        members(&self.members, &self.ends, class as usize)
    }

    fn class_of_labels(&mut self) -> ClassIndex {
        if let Some(last) = self.last
            && self.members_of(last) == self.labels
        {
            return ClassIndex(last);
        }
        let Self {
            members: all,
            ends,
            by_members,
            hasher,
            labels,
            ..
        } = self;
        let hash = |labels: &[u32]| hasher.hash_one(labels);
        let of = |class: &u32| members(all, ends, *class as usize);
        let slot = by_members.entry(
            hash(labels),
            |class| of(class) == &**labels,
            |class| hash(of(class)),
        );
        let class = match slot {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(slot) => {
                let class = number(ends.len());
                slot.insert(class);
                all.extend_from_slice(labels);
                ends.push(number(all.len()));
                class
            }
        };
        self.last = Some(class);
        ClassIndex(class)
    }

    pub(crate) fn build(self) -> NodeClasses {
        NodeClasses {
            labels: DistinctLabels {
                keys: self.keys.build(),
                values: self.values.build(),
                are_names: self.are_names.into(),
            },
            members: self.members.into(),
            ends: self.ends.into(),
        }
    }
}

/// A count of objects as a number: more would not fit in memory.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(builder: &mut ClassesBuilder, name: &str, zone: &str) -> ClassIndex {
        builder.class(name, &[("hostname", name), ("zone", zone)])
    }

    #[test]
    fn nodes_that_differ_in_their_names_are_of_one_class() {
        let mut builder = ClassesBuilder::default();
        let one = class(&mut builder, "n1", "a");
        assert_eq!(class(&mut builder, "n2", "a"), one);
        let other = class(&mut builder, "n3", "b");
        assert_ne!(other, one);
        assert_eq!(class(&mut builder, "n4", "a"), one);
        // Its label is the name of the node before, not its own.
        assert_ne!(builder.class("n5", &[("hostname", "n4"), ("zone", "a")]), one);
        // By numbers it is the same class.
        let labels = [builder.label("hostname", None), builder.label("zone", Some("b"))];
        assert_eq!(builder.class_of(&labels), other);
        // A value that is empty is not the name.
        let empty = builder.class("n6", &[("hostname", ""), ("zone", "a")]);
        assert_ne!(empty, one);
        let built = builder.build();
        let labels = |class: ClassIndex, name| {
            let labels = built.labels_of(class.0 as usize).iter();
            let label = |label: &u32| {
                format!(
                    "{}={}",
                    built.labels.key(*label),
                    built.labels.value(*label, name)
                )
            };
            labels.map(label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(one, "n4"), "hostname=n4 zone=a");
        assert_eq!(labels(other, "n3"), "hostname=n3 zone=b");
        assert_eq!(labels(empty, "n6"), "hostname= zone=a");
        assert_eq!(built.len(), 4);
    }
}
