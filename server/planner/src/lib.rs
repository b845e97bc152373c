//! What must happen next for a workload: the decisions, pure and synchronous.
//!
//! [`plan`] turns a [`snapshot::Snapshot`] into a [`plan::Plan`]. There is no clock, no I/O and no
//! error type here: a snapshot that exists can be planned for, and equal snapshots give equal plans. The modules follow the
//! chapters of the behaviour that they implement (docs/behaviour.md lists it by number).

mod core;
mod daemonset;
#[cfg(test)]
mod fixtures;

pub use crate::core::{identities, json, plan, snapshot};
pub use crate::daemonset::explain::{explain, explain_each, explain_until};
pub use crate::daemonset::manifest::HASH_LABEL;
pub use crate::daemonset::{explain, memory, report};

use crate::core::{cancellation::Cancellation, plan::Plan, snapshot::Snapshot};
use crate::daemonset::{memory::Memory, sync};

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
    sync::plan(snapshot, memory, Cancellation::new(stop))
}
