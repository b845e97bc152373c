//! The workload's ControllerRevisions: which one is current, and what must be written so that it is.

use std::collections::BTreeSet;

use crate::{
    plan::{Action, Batch},
    snapshot::{Deviation, Pod, Revision, Snapshot},
};

/// What the revisions say, once `batches` are applied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolution<'a> {
    /// The value of the hash label of the current revision; may be empty for a revision that is used as it is.
    pub(crate) current_hash: String,
    /// The number of the current revision.
    pub(crate) current_number: i64,
    /// The batches of phase Revisions, in order; empty when there is nothing to write or on a halt.
    pub(crate) batches: Vec<Batch>,
    /// The claimed revisions of other templates, ascending by (number, creation, name).
    pub(crate) old: Vec<&'a Revision>,
    /// Uids of pods that `batches` relabel: they count as carrying `current_hash` in this plan.
    pub(crate) relabelled: BTreeSet<&'a str>,
    /// Set when nothing else may be planned.
    pub(crate) halt: Option<Halt>,
    /// The deviations that made a difference here.
    pub(crate) deviations: BTreeSet<Deviation>,
}

/// The name of the revision to be created is taken by another template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Halt {
    /// The one action of the plan, for phase Status: it raises the collision count.
    pub(crate) action: Action,
    /// The plan's error.
    pub(crate) error: String,
}

/// Resolves the revisions of a snapshot. `owned_pods` are the pods that are claimed, adopted ones included.
pub(crate) fn resolve<'a>(_snapshot: &'a Snapshot, _owned_pods: &[&'a Pod]) -> Resolution<'a> {
    todo!()
}

/// The deletes of phase Cleanup. `live_hashes` are those that pods carry; `limit` is spec.revisionHistoryLimit.
pub(crate) fn cleanup(
    _resolution: &Resolution<'_>,
    _live_hashes: &BTreeSet<&str>,
    _limit: Option<i32>,
) -> Vec<Action> {
    todo!()
}
