//! Whether the workload may run on a node, whether an existing pod may stay there, and why.
//!
//! The result depends only on the pod template and on the node's name, labels and taints (D-2, D-6, D-21), not on the node's
//! conditions or on other pods.

mod affinity;
mod classes;
mod explain;
mod fits;
mod missing;
mod syntax;
mod tolerations;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::{core::snapshot::NodeView, daemonset::workload::Scheduling};
use affinity::RequiredTerms;
pub(crate) use explain::{Constraint, Decision};
pub(crate) use fits::Fits;
use tolerations::Tolerations;
pub(crate) use tolerations::automatic as automatic_tolerations;

/// What a workload may do on a node. `run` implies `keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fit {
    /// A pod may start on the node.
    pub(crate) run: bool,
    /// A pod that is on the node may stay.
    pub(crate) keep: bool,
}

impl Fit {
    const RUN: Self = Self {
        run: true,
        keep: true,
    };
    const KEEP: Self = Self {
        run: false,
        keep: true,
    };
    pub(crate) const NEITHER: Self = Self {
        run: false,
        keep: false,
    };
}

/// The scheduling constraints of a pod template, compiled for evaluation on many nodes.
#[derive(Debug)]
pub(crate) struct Eligibility {
    /// The template's nodeName; empty for any node.
    node_name: String,
    node_selector: Vec<(String, String)>,
    /// The required node affinity; `None` if absent.
    required_terms: Option<RequiredTerms>,
    tolerations: Tolerations,
}

impl Eligibility {
    /// Compiles the constraints. With `comparison_operators`, tolerations may use `Gt` and `Lt`.
    pub(crate) fn compile(scheduling: &Scheduling, comparison_operators: bool) -> Self {
        let required_terms = scheduling.required_terms.as_deref().map(RequiredTerms::compile);
        let tolerations = Tolerations::compile(
            &scheduling.tolerations,
            scheduling.host_network,
            comparison_operators,
        );
        Self {
            node_name: scheduling.node_name.clone(),
            node_selector: scheduling.node_selector.clone(),
            required_terms,
            tolerations,
        }
    }

    /// Whether the workload may run on a node, and whether an existing pod may stay (D-8).
    pub(crate) fn evaluate(&self, node: NodeView<'_>) -> Fit {
        if self.matches(node, || self.terms_match(node)) {
            self.tolerations.fit(node.taints())
        } else {
            Fit::NEITHER
        }
    }

    /// Whether everything but the taints allows the workload on a node. `terms_match` is the result of [`Self::terms_match`].
    fn matches(&self, node: NodeView<'_>, terms_match: impl FnOnce() -> bool) -> bool {
        !self.is_elsewhere(node) && self.selector_matches(node) && (self.is_named(node) || terms_match())
    }

    /// The keys of the labels that decide whether the workload may run on a node, and whether the node's name decides, too.
    pub(crate) fn reads(&self) -> (BTreeSet<&str>, bool) {
        let selected = self.node_selector.iter().map(|(key, _)| key.as_str());
        let of_terms = self.required_terms.iter().flat_map(RequiredTerms::label_keys);
        let names = |terms: &RequiredTerms| terms.has_names() || terms.mix_names_and_labels();
        let by_name = !self.node_name.is_empty() || self.required_terms.as_ref().is_some_and(names);
        (selected.chain(of_terms).collect(), by_name)
    }

    /// Whether the template's nodeName names another node.
    fn is_elsewhere(&self, node: NodeView<'_>) -> bool {
        !self.node_name.is_empty() && self.node_name != node.name()
    }

    fn selector_matches(&self, node: NodeView<'_>) -> bool {
        // Values are compared without checking their syntax (D-10).
        self.node_selector
            .iter()
            .all(|(key, value)| node.labels().get(key) == Some(value))
    }

    /// Whether a term only asks for this node's name.
    fn is_named(&self, node: NodeView<'_>) -> bool {
        self.required_terms
            .as_ref()
            .is_some_and(|terms| terms.name(node.name()))
    }

    /// Whether one of the other terms matches, or there is no required affinity.
    fn terms_match(&self, node: NodeView<'_>) -> bool {
        self.required_terms
            .as_ref()
            .is_none_or(|terms| terms.match_otherwise(node))
    }
}
