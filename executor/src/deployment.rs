//! The kind Deployment.

use std::cmp::Reverse;
use std::sync::Arc;

use nodewise_projection::{ProjectError, Strategy, Workload, buckets::Placement};
use nodewise_proto::{
    v1,
    workload::{DEPLOYMENT, REPLICA_SET},
};
use nodewise_runtime::Resource;
use nodewise_runtime::effects::{Effects, Rules};
use nodewise_runtime::kind::Kind;
use nodewise_runtime::snapshot::{Room, fitting};
use nodewise_runtime::store::{Store, Transition, is_finished};

use crate::replica_set::{REPLICA_SETS, ReplicaSets};

mod effects;

/// The resource of Deployments.
pub const DEPLOYMENTS: Resource = Resource {
    plural: "deployments",
    kind: DEPLOYMENT,
    ..REPLICA_SETS
};

/// apps/v1 Deployments.
#[derive(Debug)]
pub enum Deployments {}

impl Kind for Deployments {
    type Controls = ReplicaSets;

    const RESOURCE: Resource = DEPLOYMENTS;
    const READS: &'static [Resource] = &[Resource::PODS];
    const PODS: Option<Placement> = None;
    // The name of the built-in controller, which people and tools look for.
    const EVENT_SOURCE: &'static str = "deployment-controller";
    const QUEUE: &'static str = "deployment";
    // P-63.
    const MAX_RETRIES: Option<u32> = Some(15);

    fn read(json: &str) -> Result<Workload, ProjectError> {
        Workload::deployment_from_text(json)
    }

    fn message(store: &mut Store, workload: &Workload, live: &[Workload]) -> v1::workload::Kind {
        let (replica_sets, left_out) = replica_sets(store, workload, live);
        if left_out > 0 && store.too_many.is_due(workload.key.clone()) {
            tracing::warn!(key = %workload.key, left_out, "the Deployment has more ReplicaSets than fit into a request");
        }
        v1::workload::Kind::Deployment(v1::Deployment {
            object: workload.object.clone(),
            replica_sets,
        })
    }

    fn effects(store: &Store, transition: &Transition, rules: Rules) -> Effects {
        effects::of(store, transition, rules)
    }
}

/// The ReplicaSets that a Deployment controls, those without a controller that its selector matches, and those that were read
/// live. If they do not fit into a request, orphans and then the oldest empty ones are left out. Also returns how many are.
fn replica_sets(
    store: &Store,
    deployment: &Workload,
    live: &[Workload],
) -> (Vec<v1::DeploymentReplicaSet>, usize) {
    let is_live = |set: &&Arc<Workload>| live.iter().any(|live| live.key == set.key);
    let cached: Vec<&Workload> = store
        .controlled(REPLICA_SET, deployment)
        .chain(store.orphans(REPLICA_SET, deployment))
        .filter(|set| !is_live(set))
        .map(|set| &**set)
        .collect();
    let room = Room::beside(live.iter().map(|set| set.object.len()));
    let fit = fitting(&cached, room, |set| {
        let created = set.created.map(|time| (time.seconds, time.nanos));
        let rank = (
            set.controller.is_none(),
            set.replicas == Some(0),
            Reverse(created),
        );
        (set.object.len(), rank)
    });
    let left_out = cached.len() - fit.len();
    let message = |set: &Workload, read_after_name_collision| v1::DeploymentReplicaSet {
        object: set.object.clone(),
        // Only a plan for this strategy waits for pods to finish.
        unfinished_pods: if deployment.strategy == Strategy::Recreate {
            unfinished_pods(store, set)
        } else {
            0
        },
        read_after_name_collision,
    };
    let cached = fit.into_iter().map(|set| message(set, false));
    let sent = cached.chain(live.iter().map(|set| message(set, true)));
    (sent.collect(), left_out)
}

fn unfinished_pods(store: &Store, set: &Workload) -> u32 {
    let pods = store.controlled_pods(set).filter(|pod| !is_finished(pod));
    pods.count().try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
