//! The executor: watches the apiserver, asks the service for a plan, applies it and reports back.
//!
//! It decides nothing about workloads; every decision comes from the service over `nodewise.v1`.

pub mod actuator;
pub mod answer;
pub mod apply;
pub mod args;
mod buckets;
pub mod config;
pub mod connect;
pub mod controller;
mod divergence;
pub mod event;
pub mod events;
pub mod expectations;
mod foreign_deletes;
pub mod gate;
pub mod handlers;
pub mod lead;
pub mod list;
pub mod metrics;
pub mod obstacles;
mod other_owner;
mod plan_check;
pub mod project;
pub mod queue;
pub mod reconcile;
mod run;
mod seldom;
pub mod selection;
pub mod selector;
pub mod sim;
pub mod snapshot;
pub mod state;
pub mod store;
#[cfg(test)]
mod testing;
pub mod trace;
#[cfg(test)]
mod vectors;
pub mod watch;

pub use run::{RunError, run};
