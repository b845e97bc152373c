//! Every decision about a DaemonSet. [`sync`] has their order; [`plan_builder`] makes a plan of them.

pub(crate) mod backoff;
pub(crate) mod bucket_summary;
pub(crate) mod cluster_view;
pub(crate) mod companion;
pub(crate) mod context;
pub(crate) mod eligibility;
pub(crate) mod expectations;
pub mod explain;
pub(crate) mod held_names;
pub(crate) mod manifest;
pub mod memory;
pub(crate) mod placement;
pub(crate) mod plan_builder;
pub(crate) mod pod_changes;
pub(crate) mod pod_classifier;
pub mod report;
pub(crate) mod requeue;
pub(crate) mod revisions;
pub(crate) mod rollout;
pub(crate) mod slow_start;
pub(crate) mod status;
pub(crate) mod sync;
