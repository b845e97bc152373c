//! The kind DaemonSet.

use nodewise_projection::{ProjectError, Workload, buckets::Placement};
use nodewise_proto::{v1, workload::DAEMON_SET};
use nodewise_runtime::Resource;

use nodewise_runtime::effects::{Effects, Rules};
use nodewise_runtime::kind::Kind;
use nodewise_runtime::store::{Store, Transition};

mod effects;

/// The resource of DaemonSets.
pub const DAEMON_SETS: Resource = Resource {
    group: "apps",
    version: "v1",
    plural: "daemonsets",
    kind: DAEMON_SET,
    is_namespaced: true,
    is_kept_as_served: true,
    page_size: 250,
};

/// apps/v1 DaemonSets.
#[derive(Debug)]
pub enum DaemonSets {}

impl Kind for DaemonSets {
    type Controls = Self;

    const RESOURCE: Resource = DAEMON_SETS;
    const READS: &'static [Resource] = &Resource::INPUTS;
    const PODS: Option<Placement> = Some(Placement::Node);
    const COUNTS_DELETIONS: bool = true;
    // The name of the built-in controller, which people and tools look for.
    const EVENT_SOURCE: &'static str = "daemonset-controller";
    const QUEUE: &'static str = "daemonset";

    fn read(json: &str) -> Result<Workload, ProjectError> {
        Workload::daemon_set_from_text(json)
    }

    fn message(store: &mut Store, workload: &Workload, _: &[Workload]) -> v1::workload::Kind {
        let policies = store.policies(workload).into_iter();
        let policies = policies.map(|policy| v1::RolloutPolicy {
            object: policy.object.clone(),
            former_target_uids: store.former_targets(DAEMON_SET, &policy),
        });
        v1::workload::Kind::DaemonSet(v1::DaemonSet {
            object: workload.object.clone(),
            rollout_policies: policies.collect(),
            ..v1::DaemonSet::default()
        })
    }

    fn effects(store: &Store, transition: &Transition, rules: Rules) -> Effects {
        effects::of(store, transition, rules)
    }
}

#[cfg(test)]
mod tests;
