//! Plans as a whole: scenarios with their outcome, properties, explanations and reports.
//!
//! `S-…` are numbered scenarios, `D-…` the requirements of docs/behaviour.md, `Q-…` the defects of upstream that a deviation
//! mends.

mod claims;
mod collisions;
mod deviations;
mod explain;
mod finished;
mod memory;
mod placement;
mod properties;
mod report;
mod rollout;
mod sentences;
mod slow_start;
mod status;
mod support;
mod surge;
mod sync;
