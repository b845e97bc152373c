//! What a kind of workload adds to a controller.

use crate::Resource;
use nodewise_projection::{ProjectError, Workload};
use nodewise_proto::v1;

use crate::effects::{Effects, Rules};
use crate::store::{Store, Transition};

/// A kind of workload. A type without values stands for it.
pub trait Kind: Send + Sync + 'static {
    /// The resource of the workloads.
    const RESOURCE: Resource;
    /// The resources from which snapshots are made, besides the workloads.
    const READS: &'static [Resource];
    /// The source component of Events about the workloads.
    const EVENT_SOURCE: &'static str;
    /// The name of the work queue in the metrics `workqueue_*`.
    const QUEUE: &'static str;

    /// Reads a workload from the JSON that the apiserver sent.
    fn read(json: &str) -> Result<Workload, ProjectError>;

    /// The workload as a part of its snapshot.
    fn message(workload: &Workload) -> v1::workload::Kind;

    /// What a change of the caches means for the workloads of this kind.
    fn effects(store: &Store, transition: &Transition, rules: Rules) -> Effects;
}
