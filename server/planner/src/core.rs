//! Types and rules that do not depend on the kind of workload: snapshot, plan, selectors, names, owners, batches.

pub(crate) mod availability;
pub(crate) mod batches;
pub(crate) mod cancellation;
pub(crate) mod canonical;
pub(crate) mod claims;
pub(crate) mod expectations;
pub mod identities;
pub mod json;
pub(crate) mod labels;
pub(crate) mod names;
pub(crate) mod outcome;
pub(crate) mod owner;
pub mod plan;
pub mod plan_cache;
pub(crate) mod pod_claims;
pub(crate) mod pod_findings;
pub(crate) mod pod_requests;
pub(crate) mod pod_template;
pub(crate) mod quantity;
pub mod report;
pub(crate) mod requeue;
pub(crate) mod selector;
pub(crate) mod slow_start;
pub mod snapshot;
pub(crate) mod staleness;
pub(crate) mod status;
