//! Types and rules that do not depend on the kind of workload: snapshot, plan, selectors, names, owners, batches.

pub(crate) mod batches;
pub(crate) mod cancellation;
pub(crate) mod canonical;
pub(crate) mod claims;
pub mod identities;
pub mod json;
pub(crate) mod labels;
pub(crate) mod names;
pub(crate) mod outcome;
pub(crate) mod owner;
pub mod plan;
pub(crate) mod pod_claims;
pub(crate) mod pod_findings;
pub(crate) mod selector;
pub mod snapshot;
pub(crate) mod staleness;
pub(crate) mod status;
