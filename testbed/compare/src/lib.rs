//! Compares Nodewise with upstream's controllers of DaemonSets, ReplicaSets and Deployments: one sync of the same cluster
//! with each.
//!
//! [`generate`] makes a [`case`]. [`upstream`] runs upstream's own code on it (the Go program in `testbed/upstream`).
//! [`nodewise`] runs the real executor and server engine with a fake API for a DaemonSet, and the planner with a small
//! executor for the other kinds. Both return an [`outcome`].

mod api;
pub mod case;
pub mod compare;
pub mod coverage;
mod design;
pub mod deviations;
pub mod effects;
pub mod generate;
pub mod nodewise;
pub mod outcome;
pub mod problem;
pub mod profile;
pub mod run;
pub mod shrink;
pub mod upstream;
mod workloads;
