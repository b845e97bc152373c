//! What a kind of workload adds to a controller.

use crate::Resource;
use nodewise_projection::{ProjectError, Workload, buckets::Placement};
use nodewise_proto::v1;

use crate::effects::{Effects, Rules};
use crate::store::{CachedKind, Store, Transition};

/// A kind of workload. A type without values stands for it.
pub trait Kind: Send + Sync + 'static {
    /// The kind of the workloads that workloads of this kind control, and from which their plans are made. `Self` if there is
    /// none.
    type Controls: Kind;

    /// The resource of the workloads.
    const RESOURCE: Resource;
    /// The resources of [`Resource::INPUTS`] from which snapshots are made, or that wake workloads.
    const READS: &'static [Resource];
    /// Into which buckets of its snapshot the pods are divided that a workload controls or may adopt. `None` if snapshots of
    /// this kind contain no pods.
    const PODS: Option<Placement>;
    /// The source component of Events about the workloads.
    const EVENT_SOURCE: &'static str;
    /// The name of the work queue in the metrics `workqueue_*`.
    const QUEUE: &'static str;
    /// How many times in a row a failed workload is retried before it waits for the next event. `None`: any number of times.
    const MAX_RETRIES: Option<u32> = None;
    /// Whether upstream counts the deletions of pods of this kind, instead of tracking them by uid.
    const COUNTS_DELETIONS: bool = false;

    /// Reads a workload from the JSON that the apiserver sent.
    fn read(json: &str) -> Result<Workload, ProjectError>;

    /// The workload as a part of its snapshot, with what only this kind needs. `live` are workloads of the kind
    /// [`Self::Controls`] that were read live, because their names were taken. They replace the cached ones of their names.
    fn message(store: &mut Store, workload: &Workload, live: &[Workload]) -> v1::workload::Kind;

    /// For each ready pod that a plan chose to delete from among others: its age, divided by the age of the youngest ready pod
    /// . Empty for kinds that do not choose.
    #[must_use]
    fn deletion_age_ratios(_: &Store, _: &Workload, _: &v1::Plan, _now: jiff::Timestamp) -> Vec<f64> {
        Vec::new()
    }

    /// What a change of the caches means for the workloads of this kind.
    fn effects(store: &Store, transition: &Transition, rules: Rules) -> Effects;
}

/// The kinds of workload that have to be cached for the plans of this kind: it, and the one that its workloads control.
#[must_use]
pub fn cached_kinds<K: Kind>() -> Vec<CachedKind> {
    let mut kinds = vec![cached::<K>()];
    if K::Controls::RESOURCE != K::RESOURCE {
        kinds.push(CachedKind {
            // Its own plans are not made here.
            reads: &[],
            ..cached::<K::Controls>()
        });
    }
    kinds
}

/// The resources that must have been listed before plans of this kind are made.
pub fn needed<K: Kind>() -> impl Iterator<Item = Resource> {
    let of_workloads = [K::RESOURCE, K::Controls::RESOURCE];
    of_workloads.into_iter().chain(K::READS.iter().copied())
}

fn cached<K: Kind>() -> CachedKind {
    CachedKind {
        resource: K::RESOURCE,
        reads: K::READS,
        pods: K::PODS,
    }
}
