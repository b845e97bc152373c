//! Tests of plans for Deployments: rules, scenarios, whole rollouts, properties and explanations.
//!
//! `P-…` are rules of docs/behaviour.md. `PS-…` are the numbers of scenarios, and `G-…` of whole rollouts: what the controller of
//! Kubernetes v1.36 was seen to do. Each is defined by the table row that has it. PS-83 is a
//! rule of executors.

mod cleanup;
mod creation;
mod explain;
mod golden;
mod identity;
mod pause;
mod properties;
mod recreate;
mod revision;
mod rollback;
mod rolling;
mod scaling;
mod status;
mod support;
