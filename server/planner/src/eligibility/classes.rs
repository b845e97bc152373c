//! Nodes that agree in all labels that the constraints look at are evaluated once.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use crate::snapshot::Node;

/// Below this many comparisons evaluating a node is cheaper than finding its class.
const MIN_COMPARISONS: usize = 8;

/// Outcomes by class. Taints are left out: few nodes have any, and each has few.
#[derive(Debug)]
pub(super) struct Classes {
    /// The labels that make the class.
    keys: Vec<String>,
    /// By hash, so that a look-up allocates nothing; classes with equal hashes share a list.
    outcomes: RefCell<HashMap<u64, Vec<Class>>>,
}

#[derive(Debug)]
struct Class {
    /// The labels' values, in the order of the keys.
    values: Vec<Option<String>>,
    outcome: bool,
}

impl Classes {
    /// Whether classes save anything: many comparisons, and an outcome that does not depend on the node's name.
    pub(super) fn worth_it(comparisons: usize, depends_on_name: bool) -> bool {
        comparisons >= MIN_COMPARISONS && !depends_on_name
    }

    pub(super) fn new<'a>(keys: impl Iterator<Item = &'a str>) -> Self {
        let keys: BTreeSet<&str> = keys.collect();
        Self {
            keys: keys.into_iter().map(ToOwned::to_owned).collect(),
            outcomes: RefCell::default(),
        }
    }

    /// The outcome for the node's class, computed if it is the first of its class.
    pub(super) fn recall(&self, node: &Node, compute: impl FnOnce() -> bool) -> bool {
        let values = || self.keys.iter().map(|key| node.labels.get(key));
        let mut hasher = DefaultHasher::new();
        values().for_each(|value| value.hash(&mut hasher));
        let mut outcomes = self.outcomes.borrow_mut();
        let classes = outcomes.entry(hasher.finish()).or_default();
        let known = classes
            .iter()
            .find(|class| class.values.iter().map(Option::as_deref).eq(values()));
        if let Some(class) = known {
            return class.outcome;
        }
        let outcome = compute();
        classes.push(Class {
            values: values().map(|value| value.map(ToOwned::to_owned)).collect(),
            outcome,
        });
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::node;

    #[test]
    fn d_21_classes_are_for_many_comparisons_that_leave_names_out() {
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
        let classes = Classes::new(["zone", "color", "zone"].into_iter());
        let blue = |zone: &str| node("a", &[("color", "blue"), ("other", zone), ("zone", zone)], &[]);
        // (node, computed now)
        let table = [
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
        for (index, (node, fresh)) in table.iter().enumerate() {
            let mut computed = false;
            // The outcome tells classes apart: missing and empty labels, and values under another key.
            let expected = node.labels.get("zone").is_some();
            let outcome = classes.recall(node, || {
                computed = true;
                expected
            });
            assert_eq!((computed, outcome), (*fresh, expected), "row {index}");
        }
    }
}
