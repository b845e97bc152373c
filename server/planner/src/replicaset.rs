//! All decisions about a ReplicaSet. [`sync`] calls them in order; [`plan_builder`] turns them into a plan.

pub(crate) mod bucket_summary;
pub mod explain;
pub(crate) mod manifest;
pub(crate) mod plan_builder;
pub mod plan_cache;
pub(crate) mod pod_names;
pub(crate) mod scale;
pub(crate) mod set_view;
pub(crate) mod status;
pub(crate) mod sync;
pub(crate) mod used_names;
pub(crate) mod victims;
pub(crate) mod workload;

pub use explain::{explain, explain_until};
pub use workload::ReplicaSet;

use crate::core::{cancellation::Cancellation, plan::Plan, snapshot::Snapshot};
use plan_cache::PlanCache;

/// Plans for one ReplicaSet.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn plan(snapshot: &Snapshot<ReplicaSet>) -> Plan {
    plan_until(snapshot, &mut PlanCache::default(), &|| false).expect("nothing asks to stop")
}

/// Like [`plan()`], with a cache and a way to stop.
///
/// Results that `cache` holds from an earlier plan for the workload are not computed again. The plan is the same as without a
/// cache.
///
/// The function calls `stop` about every 64 pods and between steps, and returns `None` soon after `stop` returns true.
#[must_use]
pub fn plan_until(
    snapshot: &Snapshot<ReplicaSet>,
    cache: &mut PlanCache,
    stop: &dyn Fn() -> bool,
) -> Option<Plan> {
    sync::plan(snapshot, cache, Cancellation::new(stop))
}
