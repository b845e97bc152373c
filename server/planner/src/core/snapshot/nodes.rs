//! The nodes of one bucket, as a table.
//!
//! The nodes of a cluster have few different lists of labels, so a table holds each list once, as a class of nodes. What depends on
//! labels alone is decided once for each class.

use std::{
    cmp::Ordering,
    hash::{BuildHasher as _, Hash as _, Hasher as _},
};

use hashbrown::{DefaultHashBuilder, HashTable};
use jiff::Timestamp;

use super::{
    Node, Taint,
    list::Table,
    texts::{Texts, TextsBuilder},
    times::Times,
};
use crate::core::{label_view::LabelView, labels::Labels};

/// The nodes of one bucket, sorted by name.
#[derive(Debug, Default)]
pub struct Nodes {
    names: Texts,
    rows: Box<[Row]>,
    ready_since: Times,
    /// The taints of those nodes that have some, by the index of the node.
    taints: Box<[(u32, Box<[Taint]>)]>,
    classes: Box<[NodeClass]>,
}

/// What a node has in a few bytes.
#[derive(Debug, Clone, Copy)]
struct Row {
    class: u32,
    unschedulable: bool,
    ready: Option<bool>,
    in_maintenance: bool,
    has_taints: bool,
}

/// Labels that some nodes of a bucket have in common.
#[derive(Debug, Default)]
struct NodeClass {
    labels: Labels,
    /// The positions of the labels whose value is the name of the node. Such a label, usually `kubernetes.io/hostname`, would make
    /// every node a class of its own.
    named: Box<[u32]>,
}

/// A class of a [`NodesBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassIndex(u32);

/// A node of a table.
#[derive(Clone, Copy)]
pub struct NodeView<'a> {
    table: &'a Nodes,
    index: u32,
}

impl<'a> NodeView<'a> {
    fn row(self) -> Row {
        self.table.rows[self.index as usize]
    }

    fn class(self) -> &'a NodeClass {
        &self.table.classes[self.row().class as usize]
    }

    /// metadata.name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.table.names.get(self.index as usize)
    }

    /// metadata.labels.
    #[must_use]
    pub fn labels(self) -> LabelView<'a> {
        let class = self.class();
        LabelView::with_name(&class.labels, &class.named, self.name())
    }

    /// spec.taints, in the object's order.
    #[must_use]
    pub fn taints(self) -> &'a [Taint] {
        if !self.row().has_taints {
            return &[];
        }
        let taints = &self.table.taints;
        let found = taints.binary_search_by_key(&self.index, |(index, _)| *index);
        found.map_or(&[], |found| &taints[found].1)
    }

    /// spec.unschedulable. Used in explanations and progressive rollouts.
    #[must_use]
    pub fn unschedulable(self) -> bool {
        self.row().unschedulable
    }

    /// Whether the Ready condition is `True`; `None` if absent. Used in explanations and progressive rollouts.
    #[must_use]
    pub fn ready(self) -> Option<bool> {
        self.row().ready
    }

    /// lastTransitionTime of the Ready condition. Used in progressive rollouts.
    #[must_use]
    pub fn ready_since(self) -> Option<Timestamp> {
        self.table.ready_since.get(self.index as usize)
    }

    /// Whether the condition MaintenanceInProgress is `True`. Used in progressive rollouts.
    #[must_use]
    pub fn in_maintenance(self) -> bool {
        self.row().in_maintenance
    }

    /// The node as an object of its own.
    #[must_use]
    pub fn to_node(self) -> Node {
        Node {
            name: self.name().to_owned(),
            labels: self.labels().to_labels(),
            taints: self.taints().to_vec(),
            unschedulable: self.unschedulable(),
            ready: self.ready(),
            ready_since: self.ready_since(),
            in_maintenance: self.in_maintenance(),
        }
    }
}

impl std::fmt::Debug for NodeView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_node().fmt(f)
    }
}

impl Nodes {
    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The node with this index.
    ///
    /// # Panics
    /// The methods of the view panic if there is none.
    #[must_use]
    pub fn at(&self, index: usize) -> NodeView<'_> {
        NodeView {
            table: self,
            // A table with more nodes would not fit in memory.
            index: u32::try_from(index).unwrap_or(u32::MAX),
        }
    }

    /// The index of the node of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        let (mut start, mut end) = (0, self.len());
        while start < end {
            let middle = start.midpoint(end);
            match self.names.get(middle).cmp(name) {
                Ordering::Less => start = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// A table of nodes in this order, which need not be by name. A bucket needs another one.
    #[must_use]
    pub fn in_order(nodes: Vec<Node>) -> Self {
        NodesBuilder::of(nodes).in_order()
    }

    /// All nodes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = NodeView<'_>> + DoubleEndedIterator {
        (0..self.len()).map(|index| self.at(index))
    }

    /// All nodes as objects of their own.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Node> {
        self.iter().map(NodeView::to_node).collect()
    }

    /// A result for each node that depends on nothing but the values of its labels: `find` is called once for each class. But it is
    /// called for each node of a class with a label whose value is the name of the node, if `reads` says that the result depends on
    /// the label of that key. `None` if `find` returns that.
    pub(crate) fn by_labels<'a, T: Copy>(
        &'a self,
        reads: impl Fn(&str) -> bool,
        mut find: impl FnMut(NodeView<'a>) -> Option<T>,
    ) -> Option<Box<[T]>> {
        let reads_name = |class: &NodeClass| {
            let mut named = class.named.iter();
            named.any(|position| reads(class.labels.key(*position as usize)))
        };
        let by_name: Box<[bool]> = self.classes.iter().map(reads_name).collect();
        let mut known: Box<[Option<T>]> = self.classes.iter().map(|_| None).collect();
        let mut result = |node: NodeView<'a>| {
            let class = node.row().class as usize;
            if let Some(known) = known[class] {
                return Some(known);
            }
            let found = find(node)?;
            if !by_name[class] {
                known[class] = Some(found);
            }
            Some(found)
        };
        self.iter().map(|node| result(node)).collect()
    }

    /// The nodes that have taints: their indices and their taints.
    pub(crate) fn tainted(&self) -> impl Iterator<Item = (usize, &[Taint])> {
        self.taints
            .iter()
            .map(|(index, taints)| (*index as usize, &**taints))
    }

    /// Memory of the nodes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let text = |taint: &Taint| taint.key.len() + taint.value.len();
        let taints = self
            .taints
            .iter()
            .map(|(_, taints)| size_of_val(&**taints) + taints.iter().map(text).sum::<usize>());
        let classes = self.classes.iter();
        let classes = classes.map(|class| class.labels.bytes() + size_of_val(&*class.named));
        let lists = [
            size_of_val(&*self.rows),
            size_of_val(&*self.taints),
            size_of_val(&*self.classes),
        ];
        self.names.bytes()
            + self.ready_since.bytes()
            + lists.into_iter().chain(taints).chain(classes).sum::<usize>()
    }
}

/// The fields of a node but for its labels.
#[derive(Debug, Clone, Default)]
pub struct NodeFields<'a> {
    /// metadata.name.
    pub name: &'a str,
    /// spec.taints, in the object's order.
    pub taints: Vec<Taint>,
    /// spec.unschedulable.
    pub unschedulable: bool,
    /// Whether the Ready condition is `True`; `None` if absent.
    pub ready: Option<bool>,
    /// lastTransitionTime of the Ready condition.
    pub ready_since: Option<Timestamp>,
    /// Whether the condition MaintenanceInProgress is `True`.
    pub in_maintenance: bool,
}

/// Builds a table of nodes.
#[derive(Debug, Default)]
pub struct NodesBuilder {
    names: TextsBuilder,
    rows: Vec<Row>,
    ready_since: Vec<Option<Timestamp>>,
    taints: Vec<(u32, Box<[Taint]>)>,
    classes: Vec<NodeClass>,
    /// The classes by their labels. Keyed with a random seed, so that nobody can choose labels that collide in the table.
    by_labels: HashTable<(u64, u32)>,
    hasher: DefaultHashBuilder,
}

impl NodesBuilder {
    /// The class of a node of this name with these labels, which must be sorted by key; keys must be unique.
    pub fn class(&mut self, name: &str, labels: &[(&str, &str)]) -> ClassIndex {
        let mut hasher = self.hasher.build_hasher();
        for (key, value) in labels {
            (key, (value != &name).then_some(value)).hash(&mut hasher);
        }
        let hash = hasher.finish();
        let classes = &self.classes;
        let is_it = |(_, class): &&(u64, u32)| classes[*class as usize].has(name, labels);
        let found = self
            .by_labels
            .find(hash, |entry| entry.0 == hash && is_it(&entry));
        if let Some((_, class)) = found {
            return ClassIndex(*class);
        }
        let class = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        self.classes.push(NodeClass::of(name, labels));
        self.by_labels.insert_unique(hash, (hash, class), |entry| entry.0);
        ClassIndex(class)
    }

    /// Adds a node.
    pub fn push(&mut self, class: ClassIndex, fields: NodeFields<'_>) {
        self.names.push(fields.name);
        let has_taints = !fields.taints.is_empty();
        if has_taints {
            let index = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
            self.taints.push((index, fields.taints.into()));
        }
        self.rows.push(Row {
            class: class.0,
            unschedulable: fields.unschedulable,
            ready: fields.ready,
            in_maintenance: fields.in_maintenance,
            has_taints,
        });
        self.ready_since.push(fields.ready_since);
    }

    fn of(nodes: Vec<Node>) -> Self {
        let mut builder = Self::default();
        for node in nodes {
            let labels: Vec<_> = node.labels.iter().collect();
            let class = builder.class(&node.name, &labels);
            builder.push(
                class,
                NodeFields {
                    name: &node.name,
                    taints: node.taints,
                    unschedulable: node.unschedulable,
                    ready: node.ready,
                    ready_since: node.ready_since,
                    in_maintenance: node.in_maintenance,
                },
            );
        }
        builder
    }

    /// The nodes in the order in which they were added.
    fn in_order(self) -> Nodes {
        Nodes {
            names: self.names.build(),
            rows: self.rows.into(),
            ready_since: self.ready_since.into_iter().collect(),
            taints: self.taints.into(),
            classes: self.classes.into(),
        }
    }

    /// The table, sorted by name. The nodes may have been added in any order.
    #[must_use]
    pub fn build(self) -> Nodes {
        let nodes = self.in_order();
        if nodes.iter().is_sorted_by(|a, b| a.name() <= b.name()) {
            return nodes;
        }
        let mut order: Vec<NodeView<'_>> = nodes.iter().collect();
        order.sort_by_key(|node| node.name());
        let mut sorted = Self::default();
        for node in &order {
            sorted.push(
                ClassIndex(node.row().class),
                NodeFields {
                    name: node.name(),
                    taints: node.taints().to_vec(),
                    unschedulable: node.unschedulable(),
                    ready: node.ready(),
                    ready_since: node.ready_since(),
                    in_maintenance: node.in_maintenance(),
                },
            );
        }
        let sorted = sorted.build();
        Nodes {
            classes: nodes.classes,
            ..sorted
        }
    }
}

impl NodeClass {
    fn of(name: &str, labels: &[(&str, &str)]) -> Self {
        let is_name = |(_, value): &(&str, &str)| *value == name;
        let positions = (0_u32..).zip(labels);
        let mut without: Vec<_> = labels.to_vec();
        for label in &mut without {
            if is_name(label) {
                label.1 = "";
            }
        }
        Self {
            labels: Labels::of(&mut without),
            named: positions
                .filter(|(_, label)| is_name(label))
                .map(|(position, _)| position)
                .collect(),
        }
    }

    /// Whether a node of this name has these labels.
    fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        let view = LabelView::with_name(&self.labels, &self.named, name);
        view.len() == labels.len()
            && view.iter().eq(labels.iter().copied())
            // The same text, but it is not the name of every other node of the class.
            && labels.iter().filter(|(_, value)| *value == name).count() == self.named.len()
    }
}

impl Table for Nodes {
    type Item = Node;

    fn of(items: Vec<Node>) -> Self {
        NodesBuilder::of(items).build()
    }
}
