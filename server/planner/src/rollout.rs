//! Progressive rollouts: what a RolloutPolicy lets a workload replace now, and what its status says next.
//!
//! This module knows policies, stages, nodes and revisions. It does not know how a DaemonSet is planned: [`crate::daemonset`] asks
//! it which nodes are admitted to the update revision, and restricts its own decisions accordingly. Without a policy nothing of
//! this module is used.
//!
//! docs/rollouts.md describes policies for their users. The rules have the numbers from `L-1` on in docs/behaviour.md.

pub mod analysis;
pub(crate) mod decide;
pub(crate) mod decision;
pub(crate) mod governing;
mod hold;
pub(crate) mod nodes;
pub mod policy;
mod requests;
pub(crate) mod selection;
mod stage;
pub(crate) mod stages;
pub mod status;
#[cfg(test)]
mod tests;
pub mod window;
pub(crate) mod write;

pub use crate::core::measurement;
pub use policy::{
    Disruption, InMaintenance, MOST_STAGES, NotReady, OnFailure, Order, Pace, Policy, Requests, Spec, Stage,
    Targets, Unadmitted,
};
pub use window::Window;
