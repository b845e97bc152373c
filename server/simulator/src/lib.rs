//! A cluster in memory under virtual time: an apiserver, a scheduler and kubelets, as far as controllers of workloads need them.
//!
//! The simulator is pure. It does no I/O, reads no clock and draws no random numbers: the caller passes the time, and equal calls
//! give equal clusters. It knows neither plans nor the executor. The executor runs against it through `nodewise_executor::sim`,
//! which adds watches and an actuator; the planner's property tests apply plans to it directly.
//!
//! * `objects` is the storage of the apiserver: objects as JSON, resourceVersions, uids, and the history of changes.
//! * `apiserver` answers the calls: create, patch, delete, replace the status. It refuses what an apiserver refuses.
//! * `scheduler` binds pods, and `kubelet` starts, stops and fails them. Nothing of that happens by itself: [`Cluster::tick`]
//!   runs one step of everything, and functions such as [`Cluster::bind_pods`] run one part of it.
//! * `forward` loads a cluster that exists, and moves the time from one change to the next: [`Cluster::skip`].
//! * `users` changes the cluster as people and cloud providers do: workloads and nodes come, change and go.
//! * [`WatchCache`] is what a client has seen so far. It lags behind the cluster until it catches up.
//! * [`WorkloadCounts`] counts the pods of DaemonSets on nodes, and those of Deployments, independently of any plan.
//!
//! New faults belong into the module of the component that has them.
//!
//! # Example
//!
//! A pod that a DaemonSet controls is bound, becomes ready, and is deleted:
//!
//! ```
//! use jiff::Timestamp;
//! use nodewise_simulator::{Cluster, Config, Resource, WatchCache};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), nodewise_simulator::Refusal> {
//! let now = Timestamp::UNIX_EPOCH;
//! let mut cluster = Cluster::new(Config { start_ticks: 1, stop_ticks: 1 }, now);
//! cluster.add_node("node-a", &[("zone", "a")]);
//! let daemon_set = cluster.create_daemon_set(json!({
//!     "metadata": {"name": "agent", "namespace": "default"},
//!     "spec": {
//!         "selector": {"matchLabels": {"app": "agent"}},
//!         "template": {
//!             "metadata": {"labels": {"app": "agent"}},
//!             "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
//!         },
//!     },
//! }))?;
//! let uid = cluster.read(&daemon_set)?["metadata"]["uid"].clone();
//!
//! let in_terms = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]);
//! let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": in_terms}});
//! let pod = cluster.create(Resource::Pods, "default", json!({
//!     "metadata": {
//!         "generateName": "agent-",
//!         "ownerReferences": [{"kind": "DaemonSet", "name": "agent", "uid": uid, "controller": true}],
//!     },
//!     "spec": {
//!         "affinity": {"nodeAffinity": required},
//!         "containers": [{"name": "agent", "image": "agent:1"}],
//!     },
//! }))?;
//! let mut cache = WatchCache::list(&cluster, Resource::Pods);
//!
//! // The first tick binds the pod, the second one makes it ready.
//! cluster.tick(now);
//! cluster.tick(now);
//! let counts = cluster.counts(&daemon_set);
//! assert_eq!((counts.nodes, counts.pods, counts.available), (1, 1, 1));
//!
//! // A client's cache shows changes only after it has caught up.
//! assert_eq!(cache.objects().next().expect("a pod")["status"]["phase"], "Pending");
//! cache.catch_up(&cluster, cluster.version());
//! assert_eq!(cache.objects().next().expect("a pod")["status"]["phase"], "Running");
//!
//! cluster.delete(&pod, None)?;
//! cluster.tick(now);
//! assert_eq!(cluster.list(Resource::Pods).count(), 0);
//! # Ok(())
//! # }
//! ```

mod apiserver;
mod cluster;
mod counts;
mod forward;
mod kubelet;
mod objects;
mod patch;
pub mod pod;
mod refusal;
mod replica_counts;
mod resource;
mod scheduler;
mod users;
mod watch_cache;
mod workload_counts;

pub use apiserver::Patch;
pub use cluster::{Cluster, Config, Validate};
pub use objects::Change;
pub use refusal::{Reason, Refusal};
pub use resource::{ObjectKey, Resource};
pub use watch_cache::WatchCache;
pub use workload_counts::WorkloadCounts;
