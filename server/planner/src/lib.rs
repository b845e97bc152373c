//! Plans the next actions for a workload: a pure function from a snapshot of the cluster to a plan.
//!
//! Each kind of workload has a module. Its function `plan` turns a [`snapshot::Snapshot`] of that kind into a [`plan::Plan`]:
//!
//! * [`daemonset::plan`] for DaemonSets. [`daemonset::explain()`] explains its decisions node by node.
//! * [`replicaset::plan`] for ReplicaSets. [`replicaset::explain()`] explains in which order pods would be deleted.
//! * [`deployment::plan`] for Deployments.
//!
//! [`rollout`] has the decisions about progressive rollouts of DaemonSets by a RolloutPolicy.
//!
//! For all kinds, [`report::fold`] and [`report::come_back`] process the outcomes of a plan.
//!
//! Such a function reads no clock, does no I/O, and never fails: every snapshot can be planned for, and equal snapshots give
//! equal plans. docs/behaviour.md lists the rules by number (`D-31`, `R-39`), with the module that implements each.
//!
//! What all kinds share (snapshot, plan, selectors, names, owners) is in the private module `core`, which imports no kind. A new
//! kind is a module beside [`daemonset`], and a variant of [`plan::Status`].
//!
//! # Example
//!
//! A new DaemonSet in a cluster with two nodes gets a revision, two pods and a status:
//!
//! ```
//! use jiff::Timestamp;
//! use nodewise_planner::{
//!     daemonset::{self, DaemonSet, RollingUpdate, RolloutInputs, Scheduling, UpdateStrategy},
//!     plan::{ActionKind, DaemonSetStatus, PhaseKind, Reason, Verdict},
//!     snapshot::{Bucket, Labels, Node, Options, Selector, Snapshot, State},
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
//!     status: DaemonSetStatus::default(),
//!     collision_count: None,
//!     rollout: RolloutInputs::default(),
//! };
//! let node = |name: &str| Node {
//!     name: name.into(),
//!     labels: Labels::default(),
//!     taints: vec![],
//!     unschedulable: false,
//!     ready: Some(true),
//!     ready_since: None,
//!     in_maintenance: false,
//! };
//! let snapshot = Snapshot {
//!     now: Timestamp::UNIX_EPOCH,
//!     workload: daemon_set,
//!     revisions: vec![],
//!     buckets: Bucket::divide(vec![node("node-a"), node("node-b")], vec![], 1, |_| 0),
//!     state: State::default(),
//!     own_writes: vec![],
//!     options: Options::default(),
//! };
//!
//! let plan = daemonset::plan(&snapshot);
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
pub mod daemonset;
pub mod deployment;
#[cfg(test)]
mod fixtures;
pub mod replicaset;
pub mod rollout;

pub use crate::core::{identities, json, plan, plan_cache, report, snapshot};
pub use crate::daemonset::manifest::HASH_LABEL;
