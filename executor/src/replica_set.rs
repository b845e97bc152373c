//! The kind ReplicaSet.

use nodewise_projection::{ProjectError, Workload, buckets::Placement};
use nodewise_proto::{v1, workload::REPLICA_SET};
use nodewise_runtime::Resource;

use nodewise_runtime::effects::{Effects, Rules};
use nodewise_runtime::kind::Kind;
use nodewise_runtime::store::{Store, Transition};

mod deletion_ages;
mod effects;

/// The resource of ReplicaSets.
pub const REPLICA_SETS: Resource = Resource {
    group: "apps",
    version: "v1",
    plural: "replicasets",
    kind: REPLICA_SET,
    is_namespaced: true,
    is_kept_as_served: true,
    page_size: 250,
};

/// apps/v1 ReplicaSets.
#[derive(Debug)]
pub enum ReplicaSets {}

impl Kind for ReplicaSets {
    type Controls = Self;

    const RESOURCE: Resource = REPLICA_SETS;
    const READS: &'static [Resource] = &[Resource::PODS];
    const PODS: Option<Placement> = Some(Placement::Name);
    // The name of the built-in controller, which people and tools look for.
    const EVENT_SOURCE: &'static str = "replicaset-controller";
    const QUEUE: &'static str = "replicaset";

    fn read(json: &str) -> Result<Workload, ProjectError> {
        Workload::replica_set_from_text(json)
    }

    fn message(store: &mut Store, workload: &Workload, _: &[Workload]) -> v1::workload::Kind {
        v1::workload::Kind::ReplicaSet(v1::ReplicaSet {
            object: workload.object.clone(),
            related_pods: store.related_pods(workload),
        })
    }

    fn deletion_age_ratios(
        store: &Store,
        workload: &Workload,
        plan: &v1::Plan,
        now: jiff::Timestamp,
    ) -> Vec<f64> {
        deletion_ages::ratios(store, workload, plan, now)
    }

    fn effects(store: &Store, transition: &Transition, rules: Rules) -> Effects {
        effects::of(store, transition, rules)
    }
}

#[cfg(test)]
mod tests;
