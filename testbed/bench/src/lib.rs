//! Nodewise and upstream's DaemonSet controller, measured side by side in one run, and told in `docs/benchmarks.md`.
//!
//! Each section measures one thing and gives a [`report::Finding`]: a table, what was to be reached, and charts.

pub mod calls;
pub mod chart;
pub mod cluster;
pub mod cores;
pub mod document;
pub mod generator;
pub mod machine;
pub mod measure;
pub mod objects;
pub mod plan;
pub mod programs;
pub mod questions;
pub mod record;
pub mod replica;
pub mod replicas;
pub mod report;
pub mod tracing;
