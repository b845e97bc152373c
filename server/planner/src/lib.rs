//! What must happen next for a workload: the decisions, pure and synchronous.
//!
//! [`plan`] turns a [`Snapshot`] into a [`Plan`]; [`explain`] tells why, node by node. There is no clock, no I/O and no
//! error type here: a snapshot that exists can be planned for, and equal snapshots give equal plans. The modules follow the
//! chapters of the behaviour that they implement (docs/behaviour.md lists it by number).

mod canonical;
mod claims;
mod eligibility;
#[cfg(test)]
mod fixtures;
mod manifest;
mod names;
pub mod plan;
mod revisions;
mod selector;
pub mod snapshot;
