//! What must happen next for a workload: the decisions, pure and synchronous.
//!
//! [`plan`] turns a [`snapshot::Snapshot`] into a [`plan::Plan`]. There is no clock, no I/O and no
//! error type here: a snapshot that exists can be planned for, and equal snapshots give equal plans. The modules follow the
//! chapters of the behaviour that they implement (docs/behaviour.md lists it by number).

mod backoff;
mod batches;
mod canonical;
mod claims;
mod draft;
mod eligibility;
mod expectations;
pub mod explain;
#[cfg(test)]
mod fixtures;
mod gate;
pub mod json;
mod manifest;
mod moves;
mod names;
mod patience;
mod placement;
pub mod plan;
mod pods;
pub mod report;
mod requeue;
mod revisions;
mod rollout;
mod selector;
pub mod snapshot;
mod status;
mod surge;
mod sync;

pub use explain::{explain, explain_until};
pub use manifest::HASH_LABEL;

use crate::{patience::Patience, plan::Plan, snapshot::Snapshot};

/// Plans for one workload.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn plan(snapshot: &Snapshot) -> Plan {
    plan_until(snapshot, &|| false).expect("nothing asks to stop")
}

/// As [`plan`], but gives up with `None` soon after `stop` turns true. It is asked every thousand nodes or pods and between
/// the steps.
#[must_use]
pub fn plan_until(snapshot: &Snapshot, stop: &dyn Fn() -> bool) -> Option<Plan> {
    sync::plan(snapshot, Patience::new(stop))
}
