//! Tests of plans for ReplicaSets: rules, scenarios, properties, names, explanations.
//!
//! `R-…` are the rules of docs/behaviour.md. "Scenario" and a number stand for the given and the expected that the test spells out.

mod claims;
mod creates;
mod explain;
mod names;
mod plan_cache;
mod properties;
mod report;
mod status;
mod support;
mod sync;
mod victims;
