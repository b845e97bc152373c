//! The same cluster through upstream's DaemonSet controller and through Nodewise, one sync each, and what differs.
//!
//! [`generate`] draws a [`case`]; `upstream` puts it to upstream's own code (the Go program of `testbed/upstream`),
//! [`nodewise`] to the real executor and the real engine over a fake API; both tell what they did as an [`outcome`].

mod api;
pub mod case;
pub mod compare;
pub mod coverage;
pub mod deviations;
pub mod effects;
pub mod found;
pub mod generate;
pub mod nodewise;
pub mod outcome;
pub mod run;
pub mod shrink;
pub mod upstream;
