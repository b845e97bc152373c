//! A plan and the request that it answers.

use std::sync::Arc;

use nodewise_projection::{RolloutPolicy, Workload};
use nodewise_proto::v1;
use nodewise_runtime::actuator::ObjectKey;

/// A plan and the request that it answers.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: v1::Plan,
    pub(crate) workload: Arc<Workload>,
    /// The state in the request.
    pub(crate) sent: v1::ReconcileState,
    /// The number of the last cache change that the snapshot contains.
    pub(crate) as_of: u64,
    /// The RolloutPolicies of the snapshot.
    pub(crate) policies: Vec<Arc<RolloutPolicy>>,
    /// The measurements of the snapshot.
    pub(crate) measured: Vec<v1::MeasurementId>,
}

/// What a request was made from.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) workload: Arc<Workload>,
    pub(super) sent: v1::ReconcileState,
    pub(super) as_of: u64,
    pub(super) policies: Vec<Arc<RolloutPolicy>>,
    pub(super) measured: Vec<v1::MeasurementId>,
    /// An object of which it was not known whether it belongs in the snapshot.
    pub(super) undecided: Option<ObjectKey>,
}

impl Inputs {
    /// The plan that answers the request.
    pub(super) fn planned(self, plan: v1::Plan) -> Planned {
        Planned {
            plan,
            workload: self.workload,
            sent: self.sent,
            as_of: self.as_of,
            policies: self.policies,
            measured: self.measured,
        }
    }
}
