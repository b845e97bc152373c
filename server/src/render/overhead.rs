//! Evaluations of nodes as messages.

use nodewise_planner::daemonset::overhead::{Decision, PodRequests, Sum};
use nodewise_proto::v1;

use super::explain::rule;
use crate::parse::overhead::About;

/// The evaluation of nodes as a message: the indices of its decisions, and the sum of the requests.
pub(crate) fn evaluation(decisions: Vec<u32>, sum: Sum) -> v1::NodeEvaluation {
    v1::NodeEvaluation {
        decisions,
        requests: quantities(sum.requests.into_iter()),
        is_incomplete: sum.is_incomplete,
    }
}

/// A decision as a message.
pub(crate) fn decision(decision: Decision) -> v1::DaemonSetDecision {
    v1::DaemonSetDecision {
        daemon_set: u32::try_from(decision.candidate).unwrap_or(u32::MAX),
        runs: decision.runs.unwrap_or_default(),
        rule: decision.rule.map_or(v1::Rule::Unspecified, rule).into(),
        message: decision.message,
        missing_labels: decision.missing_labels,
    }
}

/// What one pod of a DaemonSet requests as a message.
pub(crate) fn daemon_set_overhead(about: About, requests: Option<PodRequests>) -> v1::DaemonSetOverhead {
    let requests = requests.unwrap_or_default();
    let named = requests.iter().map(|(name, amount)| (name.to_owned(), amount));
    v1::DaemonSetOverhead {
        namespace: about.namespace,
        name: about.name,
        requests: quantities(named),
        error: about.error,
        notes: about.notes,
    }
}

fn quantities(named: impl Iterator<Item = (String, String)>) -> Vec<v1::ResourceQuantity> {
    named
        .map(|(name, quantity)| v1::ResourceQuantity { name, quantity })
        .collect()
}
