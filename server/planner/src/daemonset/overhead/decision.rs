//! Decisions about one DaemonSet, with their explanations.

use std::collections::HashMap;

use crate::{
    core::snapshot::{NodeView, Nodes},
    daemonset::{eligibility::Eligibility, explain::Rule},
};

/// The most labels that a decision names as missing.
const MOST_LABELS: usize = 32;
/// The bytes that all explanations may take, before the first node.
const TEXT: usize = 1 << 20;
/// Each byte of a node raises that limit by this many bytes.
const TIMES: usize = 2;
/// What is said if nothing prevents a pod.
const ELIGIBLE: &str = "all constraints are met";

/// Whether a DaemonSet would run on some nodes, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The index of the candidate.
    pub candidate: usize,
    /// Whether the controller would create a pod; `None` if that is not known.
    pub runs: Option<bool>,
    /// The rule that decides; `None` if that is not known.
    pub rule: Option<Rule>,
    /// One sentence for people. Empty beyond a limit for all explanations together.
    pub message: String,
    /// The labels that a node lacks and that could turn the decision around, sorted.
    pub missing_labels: Vec<String>,
}

impl Decision {
    /// The decision about a candidate that could not be read.
    pub(super) fn unknown(candidate: usize) -> Self {
        Self {
            candidate,
            runs: None,
            rule: None,
            message: "the DaemonSet cannot be read".to_owned(),
            missing_labels: Vec::new(),
        }
    }

    /// The decision about a candidate that gets no pods on any node.
    pub(super) fn inactive(candidate: usize, why: &str) -> Self {
        Self {
            candidate,
            runs: Some(false),
            rule: Some(Rule::WorkloadInactive),
            message: why.to_owned(),
            missing_labels: Vec::new(),
        }
    }

    /// Bytes of the explanation.
    fn text(&self) -> usize {
        let labels = self
            .missing_labels
            .iter()
            .map(|key| key.len() + size_of::<String>());
        self.message.len() + labels.sum::<usize>()
    }
}

/// Decides about one candidate.
pub(super) struct Decider<'a> {
    candidate: usize,
    eligibility: &'a Eligibility,
}

impl<'a> Decider<'a> {
    pub(super) fn new(candidate: usize, eligibility: &'a Eligibility) -> Self {
        Self {
            candidate,
            eligibility,
        }
    }

    /// The decision about a node without pods (D-8).
    pub(super) fn decide(&self, node: NodeView<'_>) -> Decision {
        let missing = self.eligibility.missing_labels(node).into_iter();
        let missing_labels = missing.take(MOST_LABELS).map(ToOwned::to_owned).collect();
        let (runs, rule, message) = if self.eligibility.evaluate(node).run {
            (true, Rule::Eligible, ELIGIBLE.to_owned())
        } else {
            let decision = self.eligibility.decide(node);
            (false, decision.constraint.into(), decision.message)
        };
        Decision {
            candidate: self.candidate,
            runs: Some(runs),
            rule: Some(rule),
            message,
            missing_labels,
        }
    }
}

/// The most bytes that the explanations of all decisions about these nodes take together.
#[must_use]
pub fn most_text(nodes: &Nodes) -> usize {
    let bytes = |node: NodeView<'_>| {
        let taints = node
            .taints()
            .iter()
            .map(|taint| taint.key.len() + taint.value.len());
        let labels = node.labels().iter().map(|(key, value)| key.len() + value.len());
        node.name().len() + taints.chain(labels).sum::<usize>()
    };
    TEXT + TIMES * nodes.iter().map(bytes).sum::<usize>()
}

/// The distinct decisions so far.
pub(super) struct Decisions {
    list: Vec<Decision>,
    /// Those about the present candidate, with their index.
    known: HashMap<Decision, u32>,
    /// The bytes that further explanations may take.
    text: usize,
}

impl Decisions {
    pub(super) fn new(nodes: &Nodes) -> Self {
        Self {
            list: Vec::new(),
            known: HashMap::new(),
            text: most_text(nodes),
        }
    }

    /// The index of a decision.
    pub(super) fn add(&mut self, mut decision: Decision) -> u32 {
        if let Some(index) = self.known.get(&decision) {
            return *index;
        }
        if let Some(left) = self.text.checked_sub(decision.text()) {
            self.text = left;
        } else {
            (decision.message, decision.missing_labels) = (String::new(), Vec::new());
            if let Some(index) = self.known.get(&decision) {
                return *index;
            }
        }
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(decision.clone());
        self.known.insert(decision, index);
        index
    }

    /// Goes on to the next candidate, whose decisions are others.
    pub(super) fn next_candidate(&mut self) {
        self.known.clear();
    }

    pub(super) fn into_list(self) -> Vec<Decision> {
        self.list
    }
}
