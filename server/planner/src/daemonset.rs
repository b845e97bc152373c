//! All decisions about a DaemonSet. [`sync`] calls them in order; [`plan_builder`] turns them into a plan.

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
pub(crate) mod placement;
pub(crate) mod plan_builder;
pub mod plan_cache;
pub(crate) mod pod_changes;
pub(crate) mod pod_classifier;
pub mod report;
pub(crate) mod requeue;
pub(crate) mod revisions;
pub(crate) mod rollout;
pub(crate) mod slow_start;
pub(crate) mod status;
pub(crate) mod sync;
