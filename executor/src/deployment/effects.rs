//! What a change of the caches means for Deployments (P-5 to P-9).
//!
//! A pure function of the transition and of the cached Deployments, ReplicaSets and pods.

use std::sync::Arc;

use nodewise_projection::{Strategy, Workload};
use nodewise_proto::{
    v1,
    workload::{DEPLOYMENT, REPLICA_SET},
};
use nodewise_runtime::effects::{Effects, Rules, Wake};
use nodewise_runtime::store::{Change, Store, Transition};

use crate::effects::{self, Controlled, Workloads};

/// The effects of one transition.
pub(super) fn of(store: &Store, transition: &Transition, rules: Rules) -> Effects {
    let mut effects = Effects::default();
    match transition {
        Transition::Workload(change) => {
            effects::workload(DEPLOYMENT, change, rules, &mut effects);
            replica_set(store, change, &mut effects);
        }
        Transition::Pod(namespace, change) => {
            if let Some(old) = gone(change) {
                let all_gone = with_last_pod(store, namespace, old);
                effects
                    .wakes
                    .extend(all_gone.map(|deployment| Wake::now(deployment.key.clone())));
            }
        }
        Transition::Node(_) | Transition::Revision(_) | Transition::Policy(_) => {}
    }
    effects
}

/// P-6 and P-7.
fn replica_set(store: &Store, change: &Change<Arc<Workload>>, effects: &mut Effects) {
    let [old, new] = [&change.old, &change.new].map(|set| set.as_deref());
    let Some(any) = new.or(old).filter(|any| any.key.kind == REPLICA_SET) else {
        return;
    };
    let version = |set: &Workload| (Arc::clone(&set.uid), set.resource_version.clone());
    if old.map(version) == new.map(version) {
        return;
    }
    let deployments = Workloads {
        store,
        kind: DEPLOYMENT,
        namespace: &any.key.namespace,
    };
    let change = (old.map(Controlled::from), new.map(Controlled::from));
    deployments.controlled_object(change, false, effects);
}

/// The pod that is gone; `None` if the change is another one.
fn gone(change: &Change<v1::Pod>) -> Option<&v1::Pod> {
    let old = change.old.as_ref()?;
    let is_gone = change.new.as_ref().is_none_or(|new| new.uid != old.uid);
    is_gone.then_some(old)
}

/// The Deployment with strategy Recreate whose last pod is gone (P-8). Upstream reads its ReplicaSets from the apiserver at this
/// point. Here the cached ones count: if the cache lacks a ReplicaSet or its pods, their events will follow, and a plan is
/// made from the cache in any case.
fn with_last_pod<'a>(store: &'a Store, namespace: &str, pod: &v1::Pod) -> Option<&'a Arc<Workload>> {
    let set = store.resolve(REPLICA_SET, namespace, pod.controller.as_ref())?;
    let deployment = store.resolve(DEPLOYMENT, namespace, set.controller.as_ref())?;
    let mut sets = store
        .controlled(REPLICA_SET, deployment)
        .filter(|set| deployment.selector.selects(&set.labels));
    let all_gone = deployment.strategy == Strategy::Recreate
        && sets.all(|set| store.controlled_pods(set).next().is_none());
    all_gone.then_some(deployment)
}
