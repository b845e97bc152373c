//! What must happen next for a workload: the decisions, pure and synchronous.
//!
//! [`plan`] turns a [`snapshot::Snapshot`] into a [`plan::Plan`]. There is no clock, no I/O and no
//! error type here: a snapshot that exists can be planned for, and equal snapshots give equal plans. The modules follow the
//! chapters of the behaviour that they implement (docs/behaviour.md lists it by number).

mod alike;
mod backoff;
mod batches;
mod canonical;
mod claims;
mod companion;
mod draft;
mod eligibility;
mod expectations;
pub mod explain;
#[cfg(test)]
mod fixtures;
mod gate;
mod held_names;
pub mod identities;
pub mod json;
mod manifest;
pub mod memory;
mod moves;
mod names;
mod patience;
mod picture;
mod placement;
pub mod plan;
mod pods;
mod ramp;
pub mod report;
mod requeue;
mod revisions;
mod rollout;
mod selector;
mod sketch;
pub mod snapshot;
mod status;
mod surge;
mod sync;

pub use explain::{explain, explain_each, explain_until};
pub use manifest::HASH_LABEL;

use crate::{memory::Memory, patience::Patience, plan::Plan, snapshot::Snapshot};

/// Plans for one workload.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn plan(snapshot: &Snapshot) -> Plan {
    plan_until(snapshot, &mut Memory::default(), &|| false).expect("nothing asks to stop")
}

/// As [`plan`], but does not find out again what `memory` holds of an earlier plan for the workload; and gives up with `None`
/// soon after `stop` turns true. It is asked every thousand nodes or pods and between the steps.
#[must_use]
pub fn plan_until(snapshot: &Snapshot, memory: &mut Memory, stop: &dyn Fn() -> bool) -> Option<Plan> {
    sync::plan(snapshot, memory, Patience::new(stop))
}
