//! Plans the next actions for a DaemonSet: a pure function from a snapshot of the cluster to a plan.
//!
//! [`plan()`] turns a [`snapshot::Snapshot`] into a [`plan::Plan`]. It reads no clock, does no I/O, and never fails: every snapshot
//! can be planned for, and equal snapshots give equal plans. [`explain()`] explains the decisions node by node.
//! [`report::fold`] and [`report::come_back`] process the outcomes of a plan. docs/behaviour.md lists the rules by number
//! (`D-31`), with the module that implements each.
//!
//! # Example
//!
//! A new DaemonSet in a cluster with two nodes gets a revision, two pods and a status:
//!
//! ```
//! use jiff::Timestamp;
//! use nodewise_planner::{
//!     plan,
//!     plan::{ActionKind, PhaseKind, Reason, Verdict},
//!     snapshot::{
//!         Bucket, DaemonSet, Labels, Node, Options, RollingUpdate, Scheduling, Selector, Snapshot, State, Status,
//!         UpdateStrategy,
//!     },
//! };
//! use serde_json::json;
//!
//! let daemon_set = DaemonSet {
//!     name: "agent".into(),
//!     namespace: "default".into(),
//!     uid: "5b6f2a34".into(),
//!     resource_version: "1".into(),
//!     generation: 1,
//!     deleting: false,
//!     annotations: vec![],
//!     selector: Some(Selector {
//!         match_labels: Some(vec![("app".into(), "agent".into())]),
//!         match_expressions: None,
//!     }),
//!     template: json!({
//!         "metadata": {"labels": {"app": "agent"}},
//!         "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
//!     })
//!     .into(),
//!     scheduling: Scheduling::default(),
//!     strategy: UpdateStrategy::RollingUpdate(Some(RollingUpdate::default())),
//!     min_ready_seconds: 0,
//!     revision_history_limit: Some(10),
//!     status: Status::default(),
//!     collision_count: None,
//! };
//! let node = |name: &str| Node {
//!     name: name.into(),
//!     labels: Labels::default(),
//!     taints: vec![],
//!     unschedulable: false,
//!     ready: Some(true),
//! };
//! let snapshot = Snapshot {
//!     now: Timestamp::UNIX_EPOCH,
//!     daemon_set,
//!     revisions: vec![],
//!     buckets: Bucket::divide(vec![node("node-a"), node("node-b")], vec![], 1, |_| 0),
//!     state: State::default(),
//!     own_writes: vec![],
//!     options: Options::default(),
//! };
//!
//! let plan = plan(&snapshot);
//! assert_eq!(plan.verdict, Verdict::Apply);
//! let kinds: Vec<_> = plan.phases.iter().map(|phase| phase.kind).collect();
//! assert_eq!(kinds, [PhaseKind::Revisions, PhaseKind::Creates, PhaseKind::Status]);
//!
//! let create = &plan.phases[1].batches[0].actions[0];
//! assert_eq!(create.reason, Reason::NodeWithoutPod);
//! assert_eq!(create.message, "node-a has no pod of this workload");
//! assert!(matches!(&create.kind, ActionKind::CreatePod { node_name, .. } if node_name == "node-a"));
//! ```

mod core;
mod daemonset;
#[cfg(test)]
mod fixtures;

pub use crate::core::{identities, json, plan, snapshot};
pub use crate::daemonset::explain::{explain, explain_each, explain_until};
pub use crate::daemonset::manifest::HASH_LABEL;
pub use crate::daemonset::{explain, plan_cache, report};

use crate::core::{cancellation::Cancellation, plan::Plan, snapshot::Snapshot};
use crate::daemonset::{plan_cache::PlanCache, sync};

/// Plans for one workload.
///
/// # Panics
///
/// Never.
#[must_use]
pub fn plan(snapshot: &Snapshot) -> Plan {
    plan_until(snapshot, &mut PlanCache::default(), &|| false).expect("nothing asks to stop")
}

/// Like [`plan()`], with a cache and a way to stop.
///
/// Results that `cache` holds from an earlier plan for the workload are not computed again. The plan is the same as without a
/// cache.
///
/// The function calls `stop` about every 64 nodes or pods and between steps, and returns `None` soon after `stop` returns true.
#[must_use]
pub fn plan_until(snapshot: &Snapshot, cache: &mut PlanCache, stop: &dyn Fn() -> bool) -> Option<Plan> {
    sync::plan(snapshot, cache, Cancellation::new(stop))
}
