//! The labels of the metric families.

use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Verdict {
    pub(super) verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Code {
    pub(super) code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ActionLabels {
    pub(super) action: &'static str,
    pub(super) reason: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfWorkload {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) state: &'static str,
}

impl OfWorkload {
    pub(super) fn new(namespace: &str, name: &str, state: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            state,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Workload {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Workload {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// Labels of a budget: `max_unavailable` or `max_surge` of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfBudget {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) budget: &'static str,
}

impl OfBudget {
    pub(super) fn new(namespace: &str, name: &str, budget: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            budget,
        }
    }
}

/// Labels of writes by another controller: `pod` or `status` of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OtherWrite {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) write: &'static str,
}

impl OtherWrite {
    pub(super) fn of(namespace: &str, name: &str, write: &'static str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            write,
        }
    }
}
