//! Compares Nodewise with upstream's DaemonSet controller: one sync of the same cluster with each.
//!
//! [`generate`] makes a [`case`]. [`upstream`] runs upstream's own code on it (the Go program in `testbed/upstream`),
//! and [`nodewise`] runs the real executor and server engine with a fake API. Both return an [`outcome`].

mod api;
pub mod case;
pub mod compare;
pub mod coverage;
pub mod deviations;
pub mod effects;
pub mod generate;
pub mod nodewise;
pub mod outcome;
pub mod problem;
pub mod run;
pub mod shrink;
pub mod upstream;
