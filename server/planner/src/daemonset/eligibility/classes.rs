//! A cache of affinity results. Nodes with equal values for all labels that the required node affinity tests form a class, which is
//! evaluated once.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState},
};

use hashbrown::HashTable;

use crate::core::snapshot::{LabelView, NodeView};

/// With fewer comparisons, evaluating a node is faster than finding its class.
const MIN_COMPARISONS: usize = 8;
/// The most classes that are cached. Nodes of other classes are evaluated one by one. If every node has its own value of a label,
/// every node is a class, and caching saves nothing.
const MOST_CLASSES: usize = 4096;

/// Results by class. The nodeSelector is not part of a result, since finding the class would take as long as evaluating it.
/// Taints are not either, since few nodes have any, and those have few.
#[derive(Debug)]
pub(super) struct Classes<'n> {
    /// The label keys that define a class.
    keys: Vec<String>,
    /// Keyed with a random key, so that nobody can choose labels that collide in the table.
    hasher: RandomState,
    known: HashTable<Class<'n>>,
}

/// A class with its result. Its size does not depend on the number of keys: a template may name thousands.
#[derive(Debug)]
struct Class<'n> {
    /// Hash of the values of the keys.
    hash: u64,
    /// The first node of the class.
    node: NodeView<'n>,
    outcome: bool,
}

impl<'n> Classes<'n> {
    /// Whether caching pays: there are many comparisons, and the result does not depend on the node's name.
    pub(super) fn worth_it(comparisons: usize, depends_on_name: bool) -> bool {
        comparisons >= MIN_COMPARISONS && !depends_on_name
    }

    pub(super) fn new<'a>(keys: impl Iterator<Item = &'a str>) -> Self {
        let keys: BTreeSet<&str> = keys.collect();
        Self {
            keys: keys.into_iter().map(ToOwned::to_owned).collect(),
            hasher: RandomState::new(),
            known: HashTable::new(),
        }
    }

    /// The result for the node's class; `compute` computes it if it is not cached.
    pub(super) fn recall(&mut self, node: NodeView<'n>, compute: impl FnOnce() -> bool) -> bool {
        let hash = self.hash(node.labels());
        // Equal hashes do not imply equal values.
        let is_it =
            |class: &Class<'_>| class.hash == hash && self.are_equal(class.node.labels(), node.labels());
        if let Some(class) = self.known.find(hash, is_it) {
            return class.outcome;
        }
        let outcome = compute();
        if self.known.len() < MOST_CLASSES {
            let class = Class { hash, node, outcome };
            self.known.insert_unique(hash, class, |class| class.hash);
        }
        outcome
    }

    fn hash(&self, labels: LabelView<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        self.keys.iter().for_each(|key| labels.get(key).hash(&mut hasher));
        hasher.finish()
    }

    /// Whether nodes with these labels are in the same class.
    fn are_equal(&self, a: LabelView<'_>, b: LabelView<'_>) -> bool {
        self.keys.iter().all(|key| a.get(key) == b.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{node, table};

    #[test]
    fn d_21_classes_are_used_for_many_comparisons_without_node_names() {
        for (comparisons, depends_on_name, worth_it) in [
            (MIN_COMPARISONS, false, true),
            (MIN_COMPARISONS - 1, false, false),
            (MIN_COMPARISONS, true, false),
            (0, true, false),
        ] {
            assert_eq!(
                Classes::worth_it(comparisons, depends_on_name),
                worth_it,
                "{comparisons} {depends_on_name}"
            );
        }
    }

    #[test]
    fn d_21_each_class_is_computed_once_and_only_its_labels_make_it() {
        let blue = |zone: &str| node("a", &[("color", "blue"), ("other", zone), ("zone", zone)], &[]);
        // (node, computed now)
        let rows = [
            (blue("x"), true),
            (blue("y"), true),
            (blue("x"), false),
            (
                node(
                    "b",
                    &[("color", "blue"), ("other", "z"), ("zone", "x")],
                    &["a:NoSchedule"],
                ),
                false,
            ),
            (node("c", &[("color", "blue")], &[]), true),
            (blue(""), true),
            (node("d", &[("zone", "blue")], &[]), true),
            (node("e", &[("color", "blue")], &[]), false),
        ];
        let nodes = table(&rows.each_ref().map(|(node, _)| node.clone()));
        let mut classes = Classes::new(["zone", "color", "zone"].into_iter());
        for (index, (node, (_, fresh))) in nodes.iter().zip(&rows).enumerate() {
            let mut computed = false;
            // Missing labels, empty labels, and values under another key are different classes.
            let expected = node.labels().get("zone").is_some();
            let outcome = classes.recall(node, || {
                computed = true;
                expected
            });
            assert_eq!((computed, outcome), (*fresh, expected), "row {index}");
        }
    }

    #[test]
    fn the_number_of_cached_classes_is_limited_and_other_nodes_are_evaluated() {
        let one = |number: usize| {
            let labels = [("name", number.to_string()), ("parity", (number % 2).to_string())];
            let labels = labels.each_ref().map(|(key, value)| (*key, value.as_str()));
            node("a", &labels, &[])
        };
        let numbers = || 0..2 * MOST_CLASSES;
        let nodes = table(&numbers().map(one).collect::<Vec<_>>());
        let mut classes = Classes::new(["name", "parity"].into_iter());
        let mut remembers = |number: usize| {
            let mut computed = false;
            let outcome = classes.recall(nodes.at(number), || {
                computed = true;
                number.is_multiple_of(2)
            });
            assert_eq!(outcome, number.is_multiple_of(2), "{number}");
            !computed
        };
        assert!(!numbers().any(&mut remembers), "each class is new");
        let remembered: Vec<_> = numbers().filter(|number| remembers(*number)).collect();
        assert_eq!(remembered, (0..MOST_CLASSES).collect::<Vec<_>>());
        assert_eq!(classes.known.len(), MOST_CLASSES);
    }

    #[test]
    fn a_class_takes_no_memory_for_labels() {
        assert!(size_of::<Class<'_>>() <= 32);
    }
}
