//! The executor: watches the apiserver, asks the service for a plan, applies it and reports back.
//!
//! It decides nothing about workloads; every decision comes from the service over `nodewise.v1`.

pub mod actuator;
pub mod apply;
pub mod event;
pub mod http;
pub mod metrics;
pub mod project;
pub mod selector;
