//! The parts of a Kubernetes controller that do not depend on the kind of workload.
//!
//! This crate owns:
//! - [`kind`]: the trait of a kind of workload, and [`effects`], what a change means for the workloads of a kind.
//! - [`watch`]: list-and-watch loops that send changes to the controller, and [`list`], which reads lists in bounded pages.
//! - [`store`]: the caches, to which each [`event`] is applied, and [`snapshot`], which is made from them for a plan.
//! - [`queue`]: the work queue, with delays, back-off and priorities.
//! - [`lead`]: leader election with a Lease.
//! - [`gate`]: the own-write gate. It delays a plan until the caches show the executor's own writes.
//! - [`expectations`]: creates and deletes that no watch has shown yet, and the other state that plans return.
//! - [`apply`]: carries out plans, with [`actuator`] and [`events`] for the writes and the Kubernetes Events.
//! - [`measurements`]: starts the measurements that plans ask for, and holds their results.
//! - [`metrics`] and [`trace`]: Prometheus metrics, and spans of batches and of calls to the apiserver.
//!
//! It does not own the reconcile loop or the rules of any kind of workload; these are in `nodewise-executor`. It decides
//! nothing about pods; the service does.
//!
//! ```
//! use std::time::Duration;
//!
//! use nodewise_runtime::Metrics;
//! use nodewise_runtime::queue::{KeyFilter, RateLimits, Urgency, WorkQueue};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let metrics = Metrics::new("nodewise-executor").queue("workloads");
//! let queue = WorkQueue::new(RateLimits::default(), Duration::ZERO, metrics);
//! queue.add(&"kube-system/agent", Urgency::Normal);
//! queue.add(&"kube-system/agent", Urgency::Normal); // Merged: the key is queued already.
//! queue.shut_down();
//!
//! // A worker takes a key, reconciles the workload, and reports the end of the work.
//! while let Some(taken) = queue.take(KeyFilter::All).await {
//!     assert_eq!(taken.key, "kube-system/agent");
//!     queue.forget(&taken.key); // It succeeded: reset the back-off.
//!     queue.done(&taken.key);
//! }
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod actuator;
pub mod admission;
pub mod apply;
pub mod connect;
mod delta;
pub mod effects;
mod encoding;
pub mod event;
pub mod events;
pub mod expectations;
pub mod gate;
pub mod kind;
pub mod lead;
pub mod list;
pub mod log_limiter;
pub mod measurements;
pub mod metrics;
mod object;
mod protobuf;
pub mod queue;
mod resource;
pub mod response;
pub mod snapshot;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trace;
pub mod watch;

pub use delta::Delta;
pub use metrics::Metrics;
pub use resource::Resource;
