//! Which DaemonSets would run on nodes that need not exist, why or why not, and what their pods request there in sum.
//!
//! The decision is that of [`daemonset::plan`](super::plan) for a node without pods. Nodes that a DaemonSet cannot tell apart form a
//! class: it is decided about once. Results that are equal for many nodes are kept once, too.

mod classes;
mod decision;
mod sum;

pub use crate::core::pod_requests::PodRequests;
pub use decision::{Decision, most_text};
pub use sum::{Sum, Sums};

use std::{collections::HashMap, hash::RandomState};

use crate::{
    core::{
        cancellation::Cancellation,
        json::Json,
        pod_requests, selector,
        snapshot::{NodeView, Nodes, Selector, Taint},
    },
    daemonset::{eligibility::Eligibility, workload::Scheduling},
};
use classes::Classes;
use decision::{Decider, Decisions};

/// What a decision needs of a DaemonSet.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The scheduling constraints of the template.
    pub scheduling: Scheduling,
    /// spec.selector; `None` when absent.
    pub selector: Option<Selector>,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
}

impl Candidate {
    /// Why the controller creates no pods at all; `None` if it does (D-71).
    fn inactive(&self) -> Option<&'static str> {
        let selects_all = |selector: &Selector| selector::is_empty(selector, true);
        if self.selector.as_ref().is_some_and(selects_all) {
            return Some("the workload's selector is empty, so nothing is decided until that is mended");
        }
        let deleting = "the workload is being deleted, and gets no new pods";
        self.deleting.then_some(deleting)
    }
}

/// The requests of the pods of a template. The error says what is wrong, beginning with the path inside the object.
pub fn requests(template: &Json) -> Result<PodRequests, String> {
    pod_requests::of_template(template)
}

/// What a template does not tell about its requests, in sentences for people.
#[must_use]
pub fn notes(template: &Json) -> Vec<String> {
    pod_requests::notes(template)
}

/// The decisions about all candidates on all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evaluations {
    /// The distinct decisions, in the order of the candidates.
    pub decisions: Vec<Decision>,
    /// For each node: the index of its entry in `distinct`.
    pub of_node: Vec<u32>,
    /// The distinct evaluations: for each candidate, the index of its entry in `decisions`.
    pub distinct: Vec<Vec<u32>>,
}

/// Decides about all candidates on all nodes. A candidate that is `None` could not be read: nothing is known about it. Tolerations may
/// use `Gt` and `Lt` with `comparison_operators`. The function calls `stop` now and then, and returns `None` soon after it returns true.
#[must_use]
pub fn evaluate(
    candidates: &[Option<Candidate>],
    nodes: &Nodes,
    comparison_operators: bool,
    stop: &dyn Fn() -> bool,
) -> Option<Evaluations> {
    let cancellation = Cancellation::new(stop);
    let hasher = RandomState::new();
    let taints = numbers(nodes.iter().map(NodeView::taints));
    let mut decisions = Decisions::new(nodes);
    // One row for each node, with one column for each candidate.
    let mut rows = vec![0; nodes.len() * candidates.len()];
    for (column, candidate) in candidates.iter().enumerate() {
        cancellation.check()?;
        let mut fill = |index: usize, decision: u32| rows[index * candidates.len() + column] = decision;
        let fixed = match candidate {
            None => Some(Decision::unknown(column)),
            Some(candidate) => candidate.inactive().map(|why| Decision::inactive(column, why)),
        };
        if let (Some(fixed), false) = (fixed, nodes.is_empty()) {
            let decision = decisions.add(fixed);
            (0..nodes.len()).for_each(|index| fill(index, decision));
            continue;
        }
        let Some(candidate) = candidate else { continue };
        let eligibility = Eligibility::compile(&candidate.scheduling, comparison_operators);
        let decider = Decider::new(column, &eligibility);
        let mut classes = Classes::new(eligibility.reads(), nodes, &taints, &hasher);
        for (index, node) in nodes.iter().enumerate() {
            cancellation.tick(index)?;
            let decision = classes.recall(index, || decisions.add(decider.decide(node)));
            fill(index, decision);
        }
        decisions.next_candidate();
    }
    Some(grouped(
        &rows,
        candidates.len(),
        nodes.len(),
        decisions.into_list(),
    ))
}

/// The number of each list of taints: equal lists have equal numbers.
fn numbers<'a>(lists: impl Iterator<Item = &'a [Taint]>) -> Vec<u32> {
    let mut known: HashMap<&[Taint], u32> = HashMap::new();
    let number = |list: &'a [Taint]| {
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        *known.entry(list).or_insert(next)
    };
    lists.map(number).collect()
}

/// Keeps equal rows once.
fn grouped(rows: &[u32], width: usize, count: usize, decisions: Vec<Decision>) -> Evaluations {
    let mut evaluations = Evaluations {
        decisions,
        ..Evaluations::default()
    };
    let mut known: HashMap<&[u32], u32> = HashMap::new();
    for index in 0..count {
        let row = &rows[index * width..(index + 1) * width];
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let number = *known.entry(row).or_insert_with(|| {
            evaluations.distinct.push(row.to_vec());
            next
        });
        evaluations.of_node.push(number);
    }
    evaluations
}

#[cfg(test)]
mod tests;
