//! All decisions about a Deployment. [`sync`] calls them in order; [`plan_builder`] turns them into a plan.
//!
//! A Deployment decides about its ReplicaSets: which of them has the present template, how many replicas each has, and which of the
//! old ones are deleted. Their pods are the business of the ReplicaSets.

pub(crate) mod annotations;
pub(crate) mod cleanup;
pub(crate) mod conditions;
pub mod explain;
pub(crate) mod fenceposts;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod lookup;
pub(crate) mod new_set;
pub(crate) mod numbers;
pub(crate) mod pause;
pub(crate) mod plan_builder;
pub(crate) mod progress;
pub(crate) mod recreate;
pub(crate) mod revision;
pub(crate) mod rollback;
pub(crate) mod rolling;
pub(crate) mod scaling;
pub(crate) mod set_write;
pub(crate) mod sets;
pub(crate) mod status;
pub(crate) mod status_write;
pub(crate) mod sync;
pub(crate) mod template;
pub(crate) mod workload;

pub use explain::{explain, explain_until};
pub use workload::{Deployment, RollingUpdate, Set, Strategy};

use crate::core::{cancellation::Cancellation, plan::Plan, snapshot::Snapshot};
use fenceposts::Fenceposts;
use numbers::Numbers;

/// What the strategy of a Deployment allows, as numbers of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many of spec.replicas may be unavailable. With the strategy `Recreate`: all.
    pub max_unavailable: u32,
    /// How many pods more than spec.replicas there may be.
    pub max_surge: u32,
}

/// The limits of a Deployment (P-30).
#[must_use]
pub fn limits(deployment: &Deployment) -> Limits {
    let number = |number: i32| u32::try_from(number).unwrap_or_default();
    let fenceposts = Fenceposts::of(deployment, &Numbers::new(true));
    Limits {
        max_unavailable: if deployment.strategy == Strategy::Recreate {
            number(deployment.replicas)
        } else {
            number(fenceposts.unavailable)
        },
        max_surge: number(fenceposts.surge),
    }
}

/// Plans for one Deployment.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn plan(snapshot: &Snapshot<Deployment>) -> Plan {
    plan_until(snapshot, &|| false).expect("nothing asks to stop")
}

/// Like [`plan()`], with a way to stop.
///
/// The function calls `stop` about every 64 ReplicaSets, and returns `None` soon after `stop` returns true.
#[must_use]
pub fn plan_until(snapshot: &Snapshot<Deployment>, stop: &dyn Fn() -> bool) -> Option<Plan> {
    sync::plan(snapshot, Cancellation::new(stop))
}
