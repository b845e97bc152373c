//! The labels of the metric families. `kind` is the kind of the workload.

use nodewise_projection::Key;
use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Verdict {
    pub(super) kind: &'static str,
    pub(super) verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Code {
    pub(super) kind: &'static str,
    pub(super) code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) kind: &'static str,
    pub(super) outcome: &'static str,
}

/// The kind of the workload alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OfKind {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ActionLabels {
    pub(super) kind: &'static str,
    pub(super) action: &'static str,
    pub(super) reason: &'static str,
    pub(super) result: &'static str,
}

/// Labels of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WorkloadLabels {
    kind: &'static str,
    namespace: String,
    name: String,
}

impl WorkloadLabels {
    pub(super) fn of(key: &Key) -> Self {
        Self {
            kind: key.kind,
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
        }
    }
}

/// Labels of a workload and a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StateLabels {
    #[prometheus(flatten)]
    workload: WorkloadLabels,
    state: &'static str,
}

impl StateLabels {
    pub(super) fn of(key: &Key, state: &'static str) -> Self {
        let workload = WorkloadLabels::of(key);
        Self { workload, state }
    }
}

/// Labels of a budget: `max_unavailable` or `max_surge` of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BudgetLabels {
    #[prometheus(flatten)]
    workload: WorkloadLabels,
    budget: &'static str,
}

impl BudgetLabels {
    pub(super) fn of(key: &Key, budget: &'static str) -> Self {
        let workload = WorkloadLabels::of(key);
        Self { workload, budget }
    }
}

/// Labels of writes by another controller: `pod` or `status` of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OtherWriteLabels {
    #[prometheus(flatten)]
    workload: WorkloadLabels,
    write: &'static str,
}

impl OtherWriteLabels {
    pub(super) fn of(key: &Key, write: &'static str) -> Self {
        let workload = WorkloadLabels::of(key);
        Self { workload, write }
    }
}
