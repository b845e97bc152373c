//! All decisions about a DaemonSet. [`sync`] calls them in order; [`plan_builder`] turns them into a plan.

pub(crate) mod backoff;
pub(crate) mod bucket_summary;
pub(crate) mod cluster_view;
pub(crate) mod companion;
pub(crate) mod context;
pub(crate) mod eligibility;
pub mod explain;
pub(crate) mod held_names;
pub(crate) mod manifest;
pub mod overhead;
pub(crate) mod placement;
pub(crate) mod plan_builder;
pub mod plan_cache;
pub(crate) mod pod_changes;
pub(crate) mod pod_classifier;
pub(crate) mod policy;
pub(crate) mod policy_writes;
pub(crate) mod requeue;
pub(crate) mod revisions;
pub(crate) mod rollout;
pub(crate) mod slow_start;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod workload;

pub use explain::{explain, explain_each, explain_until};
pub use workload::{
    DaemonSet, NodeSelectorRequirement, NodeSelectorTerm, RollingUpdate, RolloutInputs, Scheduling,
    Toleration, UpdateStrategy,
};

use crate::core::{cancellation::Cancellation, plan::Plan, snapshot::Snapshot};
use plan_cache::PlanCache;

/// Plans for one DaemonSet.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn plan(snapshot: &Snapshot<DaemonSet>) -> Plan {
    plan_until(snapshot, &mut PlanCache::default(), &|| false).expect("nothing asks to stop")
}

/// Like [`plan()`], with a cache and a way to stop.
///
/// Results that `cache` holds from an earlier plan for the workload are not computed again. The plan is the same as without a
/// cache.
///
/// The function calls `stop` about every 64 nodes or pods and between steps, and returns `None` soon after `stop` returns true.
#[must_use]
pub fn plan_until(
    snapshot: &Snapshot<DaemonSet>,
    cache: &mut PlanCache,
    stop: &dyn Fn() -> bool,
) -> Option<Plan> {
    let plan = sync::plan(snapshot, cache, Cancellation::new(stop))?;
    Some(Plan {
        policy_uids: policy_writes::policy_uids(&snapshot.workload),
        ..plan
    })
}
