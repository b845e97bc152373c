//! Benchmarks Nodewise and upstream's controllers side by side, and writes `docs/benchmarks.md`.
//!
//! Each section measures one topic and returns a [`report::Finding`]: a table, goals and charts.

pub mod calls;
pub mod chart;
pub mod cluster;
pub mod cores;
pub mod decode;
pub mod document;
mod figure;
pub mod generator;
pub mod machine;
pub mod measure;
pub mod objects;
pub mod overhead;
pub mod plan;
pub mod policies;
pub mod programs;
pub mod questions;
pub mod record;
pub mod replica;
pub mod replicas;
pub mod report;
mod samples;
pub mod scale;
pub mod tracing;
