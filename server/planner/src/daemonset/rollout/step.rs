//! The result of one step of a rollout.

use std::collections::BTreeSet;

use crate::{
    core::snapshot::Deviation,
    daemonset::{pod_changes::PodChanges, rollout::limits::Limits},
};

/// One step of a rollout: its changes, and the state of its budget.
#[derive(Debug, Default)]
pub(crate) struct Step<'a> {
    /// The limits; zero if there are none or if they are invalid.
    pub(crate) limits: Limits,
    /// The number of nodes that count against maxUnavailable; only without surge.
    pub(crate) unavailable: i64,
    /// The number of nodes that count against maxSurge; only with surge.
    pub(crate) surging: i64,
    /// The creates and deletes. The burst is not applied yet.
    pub(crate) changes: PodChanges<'a>,
    /// The error, if the step cannot be decided.
    pub(crate) error: Option<String>,
    /// The deviations that changed the result.
    pub(crate) deviations: BTreeSet<Deviation>,
}
