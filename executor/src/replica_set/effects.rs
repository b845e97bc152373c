//! What a change of the caches means for ReplicaSets.
//!
//! A pure function of the transition and of the cached ReplicaSets.

use std::time::Duration;

use nodewise_proto::workload::REPLICA_SET;
use nodewise_runtime::effects::{Effects, Rules};
use nodewise_runtime::store::{Store, Transition};

use crate::effects::{self, Workloads, pods};

const PODS: pods::PodRules = pods::PodRules {
    is_per_node: false,
    after_ready: Duration::ZERO,
    deletes_relabelled: true,
    restarts_matter: |_, _| true,
};

/// The effects of one transition.
pub(super) fn of(store: &Store, transition: &Transition, rules: Rules) -> Effects {
    let mut effects = Effects::default();
    match transition {
        Transition::Workload(change) => effects::workload(REPLICA_SET, change, rules, &mut effects),
        Transition::Pod(namespace, change) => {
            let workloads = Workloads {
                store,
                kind: REPLICA_SET,
                namespace,
            };
            let pods = pods::Pods {
                workloads,
                kind: PODS,
                rules,
                effects: &mut effects,
            };
            pods.changed(change);
        }
        Transition::Node(_) | Transition::Revision(_) | Transition::Policy(_) => {}
    }
    effects
}
