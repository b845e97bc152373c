//! The labels that a node lacks and that could turn a decision around.
//!
//! The labels of a node that does not exist yet are never complete: the kubelet sets the host's name, a cloud provider the zone. So a
//! caller must know which of them a decision depends on.

use std::collections::BTreeSet;

use super::{Eligibility, affinity::Expression};
use crate::core::snapshot::NodeView;

impl Eligibility {
    /// The keys of the labels that the node does not have and that could turn around whether the workload runs there, sorted.
    pub(crate) fn missing_labels(&self, node: NodeView<'_>) -> BTreeSet<&str> {
        let has = |key: &str| node.labels().get(key).is_some();
        let wrong_label = self
            .node_selector
            .iter()
            .any(|(key, value)| node.labels().get(key).is_some_and(|found| found != value));
        if self.is_elsewhere(node) || wrong_label || !self.tolerations.fit(node.taints()).run {
            return BTreeSet::new();
        }
        let selected = self.node_selector.iter().map(|(key, _)| key.as_str());
        let selected = selected.filter(|key| !has(key));
        match self.keys_of_terms(node) {
            Some(keys) => keys.into_iter().chain(selected).collect(),
            None => BTreeSet::new(),
        }
    }

    /// The keys of absent labels on which the result of the required node affinity depends. `None` if no term can ever match.
    fn keys_of_terms(&self, node: NodeView<'_>) -> Option<BTreeSet<&str>> {
        let Some(terms) = &self.required_terms else {
            return Some(BTreeSet::new());
        };
        let is_absent =
            |expression: &&Expression| expression.reads_label() && expression.value(node).is_none();
        let is_met = self.is_named(node) || self.terms_match(node);
        let (mut keys, mut possible) = (BTreeSet::new(), false);
        for term in terms.all().iter().flatten() {
            let failed: Vec<_> = term.iter().filter(|expression| !expression.holds(node)).collect();
            if !failed.iter().all(is_absent) {
                continue;
            }
            possible = true;
            let absent = term
                .iter()
                .filter(is_absent)
                .map(|expression| expression.requirement().key.as_str());
            match (is_met, failed.is_empty()) {
                // Another term matches already.
                (true, false) => {}
                // This term matches whatever further labels the node gets.
                (true, true) if absent.clone().next().is_none() => return Some(BTreeSet::new()),
                _ => keys.extend(absent),
            }
        }
        possible.then_some(keys)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        daemonset::{
            eligibility::Eligibility,
            workload::{NodeSelectorRequirement, NodeSelectorTerm, Scheduling},
        },
        fixtures::{node, pairs, table},
    };

    /// A term, written `zone In a,b & disk Exists`.
    fn term(text: &str) -> NodeSelectorTerm {
        let expression = |text: &str| {
            let mut words = text.split_whitespace().map(ToOwned::to_owned);
            let (key, operator) = (words.next().expect("a key"), words.next().expect("an operator"));
            let values = words
                .next()
                .map(|values| values.split(',').map(ToOwned::to_owned).collect());
            NodeSelectorRequirement {
                key,
                operator,
                values: values.unwrap_or_default(),
            }
        };
        let (fields, labels) = text
            .split('&')
            .map(expression)
            .partition(|expression| expression.key == "metadata.name");
        NodeSelectorTerm {
            match_expressions: labels,
            match_fields: fields,
        }
    }

    #[test]
    fn labels_are_missing_if_they_could_turn_the_decision_around() {
        // (nodeSelector, terms, labels, taints, missing)
        type Row<'a> = (
            &'a [(&'a str, &'a str)],
            &'a [&'a str],
            &'a [(&'a str, &'a str)],
            &'a [&'a str],
            &'a [&'a str],
        );
        let rows: &[Row<'_>] = &[
            (&[], &[], &[], &[], &[]),
            (&[("disk", "ssd")], &[], &[], &[], &["disk"]),
            (&[("disk", "ssd")], &[], &[("disk", "ssd")], &[], &[]),
            // Another label is wrong, a taint is not tolerated, or the node is another one: the label does not help.
            (
                &[("disk", "ssd"), ("os", "linux")],
                &[],
                &[("os", "windows")],
                &[],
                &[],
            ),
            (&[("disk", "ssd")], &[], &[], &["a:NoSchedule"], &[]),
            (&[], &["metadata.name In other & zone In a"], &[], &[], &[]),
            (&[], &["metadata.name In node & zone In a"], &[], &[], &["zone"]),
            (&[], &["zone In a"], &[], &[], &["zone"]),
            (&[], &["zone In a & disk Exists"], &[("zone", "b")], &[], &[]),
            (
                &[],
                &["zone In a & disk Exists", "rack Gt 1"],
                &[("zone", "b")],
                &[],
                &["rack"],
            ),
            (
                &[],
                &["zone In a & disk Exists"],
                &[("zone", "a")],
                &[],
                &["disk"],
            ),
            // It matches because a label is absent.
            (&[], &["zone NotIn a"], &[], &[], &["zone"]),
            (&[], &["zone NotIn a"], &[("zone", "b")], &[], &[]),
            (
                &[],
                &["gpu DoesNotExist & zone In a"],
                &[("zone", "a")],
                &[],
                &["gpu"],
            ),
            // Another term matches all the same.
            (
                &[],
                &["gpu DoesNotExist", "zone In a"],
                &[("zone", "a")],
                &[],
                &[],
            ),
            (
                &[],
                &["gpu DoesNotExist", "zone In a"],
                &[("zone", "b")],
                &[],
                &["gpu"],
            ),
            (
                &[("disk", "ssd")],
                &["gpu DoesNotExist"],
                &[],
                &[],
                &["disk", "gpu"],
            ),
            // A term that can never match.
            (&[("disk", "ssd")], &["zone In"], &[], &[], &[]),
            (
                &[("disk", "ssd")],
                &["metadata.name In node"],
                &[],
                &[],
                &["disk"],
            ),
        ];
        for (selector, terms, labels, taints, missing) in rows {
            let scheduling = Scheduling {
                node_selector: pairs(selector),
                required_terms: (!terms.is_empty()).then(|| terms.iter().map(|text| term(text)).collect()),
                ..Scheduling::default()
            };
            let eligibility = Eligibility::compile(&scheduling, false);
            let node = node("node", labels, taints);
            let found: Vec<_> = eligibility
                .missing_labels(table(&[node]).at(0))
                .into_iter()
                .collect();
            assert_eq!(found, *missing, "{selector:?} {terms:?} on {labels:?} {taints:?}");
        }
    }
}
