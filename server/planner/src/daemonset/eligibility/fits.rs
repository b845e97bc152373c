//! What a workload may do on all nodes of a bucket, decided once for nodes that are alike.

use std::collections::BTreeSet;

use super::{Eligibility, Fit, affinity::RequiredTerms, classes::Classes};
use crate::core::{
    cancellation::Cancellation,
    snapshot::{NodeView, Nodes},
};

/// Evaluates the nodes of the buckets of one snapshot.
#[derive(Debug)]
pub(crate) struct Fits<'e, 'n> {
    eligibility: &'e Eligibility,
    /// The keys of the labels that decide.
    keys: BTreeSet<&'e str>,
    /// Whether the node's name decides, too.
    by_name: bool,
    /// Cached results of the required terms; `None` if evaluating them is faster than a lookup.
    classes: Option<Classes<'n>>,
}

impl<'e, 'n> Fits<'e, 'n> {
    pub(crate) fn new(eligibility: &'e Eligibility) -> Self {
        let terms = eligibility.required_terms.as_ref();
        let of_terms: Vec<&str> = terms.into_iter().flat_map(RequiredTerms::label_keys).collect();
        let named = terms.is_some_and(RequiredTerms::mix_names_and_labels);
        let (keys, by_name) = eligibility.reads();
        Self {
            eligibility,
            keys,
            by_name,
            classes: Classes::worth_it(of_terms.len(), named).then(|| Classes::new(of_terms.into_iter())),
        }
    }

    /// What the workload may do on each node, in order. `None` if cancelled.
    pub(crate) fn of(&mut self, nodes: &'n Nodes, cancellation: Cancellation<'_>) -> Option<Box<[Fit]>> {
        let Self {
            eligibility,
            keys,
            by_name,
            classes,
        } = self;
        let untainted = eligibility.tolerations.fit(&[]);
        let mut evaluated = 0;
        let mut fit = |node: NodeView<'n>| {
            evaluated += 1;
            cancellation.tick(evaluated)?;
            let terms_match = || match classes {
                Some(classes) => classes.recall(node, || eligibility.terms_match(node)),
                None => eligibility.terms_match(node),
            };
            let matches = eligibility.matches(node, terms_match);
            Some(if matches { untainted } else { Fit::NEITHER })
        };
        let mut fits: Box<[Fit]> = if *by_name {
            nodes.iter().map(fit).collect::<Option<_>>()?
        } else {
            nodes.by_labels(|key| keys.contains(key), &mut fit)?
        };
        for (index, taints) in nodes.tainted() {
            cancellation.tick(index)?;
            if fits[index] != Fit::NEITHER {
                fits[index] = eligibility.tolerations.fit(taints);
            }
        }
        Some(fits)
    }
}
