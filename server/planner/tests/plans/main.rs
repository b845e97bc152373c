//! Tests of whole plans: scenarios, properties, explanations and reports.
//!
//! `D-…` are requirements of docs/behaviour.md, `Q-…` are differences of docs/upstream-differences.md.

mod claims;
mod collisions;
mod deviations;
mod explain;
mod finished;
mod placement;
mod plan_cache;
mod policies;
mod properties;
mod report;
mod rollout;
mod sentences;
mod slow_start;
mod status;
mod support;
mod surge;
mod sync;
