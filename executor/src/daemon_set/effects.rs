//! What a change of the caches means for DaemonSets (section Wake-ups of docs/behaviour.md).
//!
//! A pure function of the transition and of the cached DaemonSets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nodewise_projection::{Revision, RolloutPolicy, Workload};
use nodewise_proto::{v1, workload::DAEMON_SET};
use nodewise_runtime::effects::{Author, Effects, Rules, Wake};
use nodewise_runtime::queue::Urgency;
use nodewise_runtime::store::{Change, Store, Transition};

use crate::effects::{self, Controlled, Workloads, pods};

const PODS: pods::PodRules = pods::PodRules {
    is_per_node: true,
    // One second more than needed: the time of readiness comes from another clock and is in whole seconds.
    after_ready: Duration::from_secs(1),
    deletes_relabelled: false,
    restarts_matter: Store::has_policy,
};

/// The effects of one transition.
pub(super) fn of(store: &Store, transition: &Transition, rules: Rules) -> Effects {
    let mut effects = Effects::default();
    match transition {
        Transition::Workload(change) => {
            effects::workload(DAEMON_SET, change, rules, &mut effects);
            if let Some(old) = (change.old.as_ref()).filter(|old| may_be_let_go(old, change.new.as_deref())) {
                // Its entry leaves the statuses of its policies.
                let mut former = store.policies(old);
                former.retain(|policy| change.new.as_ref().is_none_or(|new| !policy.may_target(new)));
                let others = former.iter().flat_map(|policy| store.targets(DAEMON_SET, policy));
                wake_each(others, &mut effects);
            }
        }
        Transition::Pod(namespace, change) => {
            let pods = pods::Pods {
                workloads: daemon_sets(store, namespace),
                kind: PODS,
                rules,
                effects: &mut effects,
            };
            pods.changed(change);
        }
        Transition::Node(change) => {
            effects.wake_all = node(change, rules);
            if effects.wake_all.is_none() && is_news_for_policies(change) {
                let governed = store.with_policies(DAEMON_SET);
                wake_each(governed, &mut effects);
            }
        }
        Transition::Revision(change) => revision(store, change, rules, &mut effects),
        Transition::Policy(change) => policy(store, change, &mut effects),
    }
    effects
}

fn daemon_sets<'a>(store: &'a Store, namespace: &'a str) -> Workloads<'a> {
    Workloads {
        store,
        kind: DAEMON_SET,
        namespace,
    }
}

fn revision(store: &Store, change: &Change<Arc<Revision>>, rules: Rules, effects: &mut Effects) {
    let [old, new] = [&change.old, &change.new].map(|revision| revision.as_deref());
    let Some(any) = new.or(old) else { return };
    let change = (old.map(Controlled::from), new.map(Controlled::from));
    let ignores_new = rules.revisions == Author::Us;
    daemon_sets(store, &any.namespace).controlled_object(change, ignores_new, effects);
}

/// A policy enqueues the DaemonSets that it targets, and those that it targeted before. Also after a status that this executor
/// wrote: the plan that follows has nothing to write.
fn policy(store: &Store, change: &Change<Arc<RolloutPolicy>>, effects: &mut Effects) {
    let sides = [&change.old, &change.new].into_iter().flatten();
    wake_each(
        sides.flat_map(|policy| store.targets(DAEMON_SET, policy)),
        effects,
    );
}

/// Whether policies may not target a DaemonSet any more: it is gone, or a selector may not select it any more.
fn may_be_let_go(old: &Workload, new: Option<&Workload>) -> bool {
    new.is_none_or(|new| new.labels != old.labels)
}

/// Enqueues workloads, each once.
fn wake_each<'a>(workloads: impl Iterator<Item = &'a Arc<Workload>>, effects: &mut Effects) {
    let keys: BTreeSet<_> = workloads.map(|workload| &workload.key).collect();
    let wakes = keys.into_iter().cloned().map(Wake::now);
    effects.wakes.extend(wakes);
}

/// Whether a node has changed in what only rollouts with a policy read (L-20 to L-23).
fn is_news_for_policies(change: &Change<v1::Node>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return false;
    };
    let read = |node: &v1::Node| {
        let readiness = (node.ready, node.ready_transition_time);
        (readiness, node.unschedulable, node.maintenance_in_progress)
    };
    read(old) != read(new)
}

/// A node event enqueues every DaemonSet; the service decides which of them the node concerns. That is more than
/// upstream enqueues (D-105), and costs at most a plan without actions.
fn node(change: &Change<v1::Node>, rules: Rules) -> Option<Urgency> {
    match (&change.old, &change.new) {
        (None, Some(_)) => Some(Urgency::Urgent),
        (Some(old), Some(new)) => {
            (old.labels != new.labels || old.taints != new.taints).then_some(Urgency::Urgent)
        }
        (Some(_), None) => rules.wake_on_node_delete.then_some(Urgency::Normal),
        (None, None) => None,
    }
}
