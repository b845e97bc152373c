//! The nodes of one bucket, as a table.
//!
//! The nodes of a cluster have few different lists of labels, so a table holds each list once, as a class of nodes. What depends on
//! labels alone is decided once for each class.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::{Node, Taint, list::Table, times::Times};
use crate::core::{
    labels::{
        LabelView,
        classes::{ClassIndex, ClassesBuilder, LabelIndex, NodeClasses},
    },
    texts::{Texts, TextsBuilder},
};

/// The nodes of one bucket, sorted by name.
#[derive(Debug, Default)]
pub struct Nodes {
    names: Texts,
    rows: Box<[Row]>,
    ready_since: Times,
    /// The taints of those nodes that have some, by the index of the node.
    taints: Box<[(u32, Box<[Taint]>)]>,
    classes: NodeClasses,
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

/// A node of a table.
#[derive(Clone, Copy)]
pub struct NodeView<'a> {
    table: &'a Nodes,
    index: u32,
}

/// What is known of the nodes of a class.
#[derive(Debug, Clone, Copy)]
enum Known<T> {
    Nothing,
    /// The result depends on the name of the node.
    ByName,
    /// The result of each.
    Same(T),
}

impl<'a> NodeView<'a> {
    fn row(self) -> Row {
        self.table.rows[self.index as usize]
    }

    /// metadata.name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.table.names.get(self.index as usize)
    }

    /// metadata.labels.
    #[must_use]
    pub fn labels(self) -> LabelView<'a> {
        let classes = &self.table.classes;
        LabelView::of_class(
            &classes.labels,
            classes.labels_of(self.row().class as usize),
            self.name(),
        )
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
    #[must_use]
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
        let NodeClasses { labels, .. } = &self.classes;
        let is_read = |label: &u32| labels.is_name(*label) && reads(labels.key(*label));
        let read: Vec<u32> = (0..labels.len()).filter(is_read).collect();
        let reads_name = |class: usize| {
            let mut members = self.classes.labels_of(class).iter();
            !read.is_empty() && members.any(|label| read.contains(label))
        };
        let mut known: Box<[Known<T>]> = (0..self.classes.len()).map(|_| Known::Nothing).collect();
        let mut result = |node: NodeView<'a>| {
            let class = node.row().class as usize;
            let found = match known[class] {
                Known::Same(found) => return Some(found),
                Known::Nothing | Known::ByName => find(node)?,
            };
            if matches!(known[class], Known::Nothing) {
                known[class] = if reads_name(class) {
                    Known::ByName
                } else {
                    Known::Same(found)
                };
            }
            Some(found)
        };
        self.iter().map(&mut result).collect()
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
        let lists = [
            self.names.bytes(),
            self.ready_since.bytes(),
            self.classes.bytes(),
            size_of_val(&*self.rows),
            size_of_val(&*self.taints),
        ];
        lists.into_iter().chain(taints).sum()
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
    classes: ClassesBuilder,
}

impl NodesBuilder {
    /// The class of a node of this name with these labels, which must be sorted by key; keys must be unique.
    pub fn class(&mut self, name: &str, labels: &[(&str, &str)]) -> ClassIndex {
        self.classes.class(name, labels)
    }

    /// The label with this key and this value; `None` is the name of the node.
    pub fn label(&mut self, key: &str, value: Option<&str>) -> LabelIndex {
        self.classes.label(key, value)
    }

    /// The class of nodes with these labels, which must be sorted by key; keys must be unique.
    pub fn class_of(&mut self, labels: &[LabelIndex]) -> ClassIndex {
        self.classes.class_of(labels)
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
            classes: self.classes.build(),
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

impl Table for Nodes {
    type Item = Node;

    fn of(items: Vec<Node>) -> Self {
        NodesBuilder::of(items).build()
    }
}
