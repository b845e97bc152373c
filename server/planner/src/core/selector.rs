//! Label selectors (D-22).

use std::collections::BTreeSet;

use crate::core::labels::LabelView;

/// A label selector. All requirements are ANDed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selector {
    /// matchLabels; `None` if the field is absent. Upstream's test for an empty selector distinguishes that from an empty map
    ///
    pub match_labels: Option<Vec<(String, String)>>,
    /// matchExpressions; `None` when the field is absent.
    pub match_expressions: Option<Vec<SelectorRequirement>>,
}

impl Selector {
    /// Whether the labels meet all requirements. A selector without requirements selects everything.
    #[must_use]
    pub fn selects<'a>(&self, labels: impl Into<LabelView<'a>>) -> bool {
        let labels = labels.into();
        let mut equalities = self.match_labels.iter().flatten();
        let mut expressions = self.match_expressions.iter().flatten();
        equalities.all(|(key, value)| labels.get(key) == Some(value))
            && expressions.all(|requirement| holds(requirement, labels.get(&requirement.key)))
    }

    /// The keys of the labels that the requirements are about.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let equalities = self.match_labels.iter().flatten().map(|(key, _)| key);
        let expressions = self.match_expressions.iter().flatten();
        let keys = equalities.chain(expressions.map(|requirement| &requirement.key));
        keys.map(String::as_str)
    }
}

/// One valid entry of matchExpressions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SelectorRequirement {
    /// The key of the label.
    pub key: String,
    /// How the label is compared.
    pub operator: SelectorOperator,
}

/// How a selector requirement compares a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SelectorOperator {
    /// The label's value is one of these.
    In(BTreeSet<String>),
    /// The label is missing or its value is none of these.
    NotIn(BTreeSet<String>),
    /// The label is present.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

/// Whether the selector is empty and so selects everything. With `by_meaning`, a selector without requirements is empty.
/// Otherwise, as in upstream, only a selector without both fields is.
pub(crate) fn is_empty(selector: &Selector, by_meaning: bool) -> bool {
    let (labels, expressions) = (&selector.match_labels, &selector.match_expressions);
    if by_meaning {
        labels.iter().flatten().next().is_none() && expressions.iter().flatten().next().is_none()
    } else {
        labels.is_none() && expressions.is_none()
    }
}

fn holds(requirement: &SelectorRequirement, value: Option<&str>) -> bool {
    let listed = |values: &BTreeSet<String>| value.is_some_and(|value| values.contains(value));
    match &requirement.operator {
        SelectorOperator::In(values) => listed(values),
        SelectorOperator::NotIn(values) => !listed(values),
        SelectorOperator::Exists => value.is_some(),
        SelectorOperator::DoesNotExist => value.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        core::labels::Labels,
        fixtures::{labels, pairs, strings},
    };

    fn set(values: &[String]) -> BTreeSet<String> {
        values.iter().cloned().collect()
    }

    fn requirement(key: &str, operator: &str, values: &[&str]) -> SelectorRequirement {
        let operator = match operator {
            "In" => SelectorOperator::In(set(&strings(values))),
            "NotIn" => SelectorOperator::NotIn(set(&strings(values))),
            "Exists" => SelectorOperator::Exists,
            _ => SelectorOperator::DoesNotExist,
        };
        SelectorRequirement {
            key: key.to_owned(),
            operator,
        }
    }

    #[test]
    fn d_22_operators_against_present_other_and_missing_labels() {
        // (operator, values, on tier=web, on tier=db, without the label)
        let table: &[(&str, &[&str], bool, bool, bool)] = &[
            ("In", &["web"], true, false, false),
            ("In", &["web", "db"], true, true, false),
            ("NotIn", &["web"], false, true, true),
            ("NotIn", &["web", "db"], false, false, true),
            ("Exists", &[], true, true, false),
            ("DoesNotExist", &[], false, false, true),
        ];
        for (operator, values, web, db, missing) in table {
            let selector = Selector {
                match_labels: None,
                match_expressions: Some(vec![requirement("tier", operator, values)]),
            };
            assert_eq!(
                selector.selects(&labels(&[("tier", "web")])),
                *web,
                "{operator} {values:?} on web"
            );
            assert_eq!(
                selector.selects(&labels(&[("tier", "db")])),
                *db,
                "{operator} {values:?} on db"
            );
            assert_eq!(
                selector.selects(&labels(&[("x", "web")])),
                *missing,
                "{operator} {values:?} on none"
            );
        }
    }

    #[test]
    fn d_22_all_requirements_are_anded() {
        let selector = Selector {
            match_labels: Some(pairs(&[("app", "foo"), ("env", "")])),
            match_expressions: Some(vec![requirement("tier", "In", &["web"])]),
        };
        assert!(selector.selects(&labels(&[
            ("app", "foo"),
            ("env", ""),
            ("tier", "web"),
            ("more", "x")
        ])));
        assert!(
            !selector.selects(&labels(&[("app", "foo"), ("tier", "web")])),
            "env is missing, not empty"
        );
        assert!(!selector.selects(&labels(&[("app", "bar"), ("env", ""), ("tier", "web")])));
        assert!(!selector.selects(&labels(&[("app", "foo"), ("env", ""), ("tier", "db")])));
    }

    #[test]
    fn q_17_emptiness_is_literal_upstream_and_by_meaning_here() {
        let some = Some(pairs(&[("app", "foo")]));
        // (matchLabels, matchExpressions, literally empty, empty by meaning)
        let table = [
            (None, None, true, true),
            (Some(vec![]), None, false, true),
            (None, Some(vec![]), false, true),
            (Some(vec![]), Some(vec![]), false, true),
            (some, None, false, false),
            (
                None,
                Some(vec![requirement("a", "DoesNotExist", &[])]),
                false,
                false,
            ),
        ];
        for (match_labels, match_expressions, literal, meaning) in table {
            let selector = Selector {
                match_labels,
                match_expressions,
            };
            assert_eq!(is_empty(&selector, false), literal, "{selector:?}");
            assert_eq!(is_empty(&selector, true), meaning, "{selector:?}");
            if meaning {
                assert!(
                    selector.selects(&labels(&[("any", "thing")])),
                    "{selector:?} selects everything"
                );
            }
        }
    }

    proptest! {
        // D-22: an operator and its negation never agree, and equality is `In` with one value.
        #[test]
        fn d_22_negations_disagree(
            entries in proptest::collection::btree_map("[a-c]", "[x-z]?", 0..3),
            key in "[a-c]",
            values in proptest::collection::vec("[x-z]?", 1..3),
        ) {
            let labels: Labels = entries.into_iter().collect();
            let alone = |operator: SelectorOperator| {
                let requirement = SelectorRequirement { key: key.clone(), operator };
                Selector { match_labels: None, match_expressions: Some(vec![requirement]) }.selects(&labels)
            };
            prop_assert_ne!(alone(SelectorOperator::In(set(&values))), alone(SelectorOperator::NotIn(set(&values))));
            prop_assert_ne!(alone(SelectorOperator::Exists), alone(SelectorOperator::DoesNotExist));
            let equality = Selector {
                match_labels: Some(vec![(key.clone(), values[0].clone())]),
                match_expressions: None,
            };
            prop_assert_eq!(equality.selects(&labels), alone(SelectorOperator::In(set(&values[..1]))));
        }
    }
}
