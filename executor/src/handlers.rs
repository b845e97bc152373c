//! The event handlers: which workloads a transition enqueues, and what it means for their expectations (section
//! Wake-ups of docs/behaviour.md).
//!
//! A pure function of the transition and of the cached DaemonSets.

use std::sync::Arc;
use std::time::Duration;

use nodewise_projection::{DaemonSet, Key, KeySet, Revision};
use nodewise_proto::v1;
use nodewise_runtime::queue::Urgency;

use crate::store::{Change, Store, Transition, target_node};

mod overlaps;

pub(crate) use overlaps::Overlaps;

/// Options of the event handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A replaced DaemonSet clears the own-write record of its old uid. Upstream clears the record of the new
    /// uid.
    pub clear_replaced_own_writes: bool,
    /// A deleted node enqueues the DaemonSets.
    pub wake_on_node_delete: bool,
    /// Each event of a pod that is being deleted counts as a deletion, as in upstream, not only the first one.
    pub count_repeated_deletions: bool,
    /// The controller that creates revisions and pods.
    pub revisions: Author,
}

/// The controller that writes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// This executor: its own writes are no reason to reconcile.
    Us,
    /// Another controller: a plan may have been made before its write was seen.
    Another,
}

/// A reaction to a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Enqueue this workload.
    Enqueue(Key),
    /// Enqueue this workload as urgent, before others: the workload is new, or a node is new to it.
    EnqueueFirst(Key),
    /// Enqueue every workload. This is one reaction because a first list of many nodes would otherwise make millions.
    /// It is urgent for a node that came, or that a workload may now run on: its network agents must not wait for a
    /// rollout.
    EnqueueAll(Urgency),
    /// Enqueue this workload after a delay.
    EnqueueAfter(Key, Duration),
    /// A pod of the workload, for this node, was created.
    ObserveCreate {
        /// The workload.
        key: Key,
        /// metadata.name of the pod.
        pod_name: String,
        /// Its (target) node; may be empty.
        node_name: String,
    },
    /// A pod of the workload is gone or being deleted.
    ObserveDeletion {
        /// The workload.
        key: Key,
        /// metadata.name of the pod.
        pod_name: String,
        /// metadata.uid of the pod.
        pod_uid: String,
    },
    /// A pod of the workload is gone: no new pod gets its name until another pod is seen on the node.
    RetireName {
        /// The workload.
        key: Key,
        /// metadata.uid of the workload.
        uid: Arc<str>,
        /// metadata.name of the pod.
        pod_name: String,
        /// Its (target) node; may be empty.
        node_name: String,
    },
    /// These DaemonSets of one namespace, ordered by name, select the same orphan: their selectors overlap.
    Overlap(Vec<Key>),
    /// Drop what is held for the workload. Also drop its own-write record if the record belongs to this uid.
    Forget {
        /// The workload.
        key: Key,
        /// The uid whose own-write record is cleared.
        own_writes_of: Arc<str>,
    },
}

impl Reaction {
    /// The workload that the reaction is about, unless it is about several.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::EnqueueAll(_) | Self::Overlap(_) => None,
            Self::Enqueue(key)
            | Self::EnqueueFirst(key)
            | Self::EnqueueAfter(key, _)
            | Self::ObserveCreate { key, .. }
            | Self::ObserveDeletion { key, .. }
            | Self::RetireName { key, .. }
            | Self::Forget { key, .. } => Some(key),
        }
    }

    /// The workload that the reaction enqueues, unless it enqueues all or none.
    #[must_use]
    pub fn woken(&self) -> Option<&Key> {
        match self {
            Self::Enqueue(key) | Self::EnqueueFirst(key) | Self::EnqueueAfter(key, _) => Some(key),
            _ => None,
        }
    }
}

/// The reactions to one transition, in order.
#[must_use]
pub fn react(store: &Store, transition: &Transition, rules: Rules) -> Vec<Reaction> {
    match transition {
        Transition::DaemonSet(change) => daemon_set(change, rules),
        Transition::Pod(namespace, change) => pod(store, namespace, change, rules),
        Transition::Node(change) => node(change, rules),
        Transition::Revision(change) => revision(store, change, rules),
    }
}

fn daemon_set(change: &Change<Arc<DaemonSet>>, rules: Rules) -> Vec<Reaction> {
    let Some(any) = change.new.as_ref().or(change.old.as_ref()) else {
        return Vec::new();
    };
    let key = any.key.clone();
    let forget = match (&change.old, &change.new) {
        (Some(old), None) => Some(&old.uid),
        (Some(old), Some(new)) if old.uid != new.uid => Some(if rules.clear_replaced_own_writes {
            &old.uid
        } else {
            &new.uid
        }),
        _ => None,
    };
    let is_new = match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.uid != new.uid,
        (old, _) => old.is_none(),
    };
    let forget = forget.map(|uid| Reaction::Forget {
        key: key.clone(),
        own_writes_of: Arc::clone(uid),
    });
    let enqueue = if is_new {
        Reaction::EnqueueFirst
    } else {
        Reaction::Enqueue
    };
    forget.into_iter().chain([enqueue(key)]).collect()
}

fn pod(store: &Store, namespace: &str, change: &Change<v1::Pod>, rules: Rules) -> Vec<Reaction> {
    match (&change.old, &change.new) {
        // Another pod has the name: the watch missed the deletion of the old one, and expectations must learn of it.
        (Some(old), Some(new)) if old.uid != new.uid => {
            let mut reactions = pod_gone(store, namespace, old, rules);
            let came = Change {
                old: None,
                new: Some(new.clone()),
            };
            reactions.extend(pod(store, namespace, &came, rules));
            reactions
        }
        (Some(old), Some(new)) if old == new && !rules.count_repeated_deletions => Vec::new(),
        (_, Some(new)) if new.deletion_time.is_some() => pod_going(store, namespace, new),
        (None, Some(new)) => pod_added(store, namespace, new),
        (Some(old), Some(new)) => pod_updated(store, namespace, old, new),
        (Some(old), None) => pod_gone(store, namespace, old, rules),
        (None, None) => Vec::new(),
    }
}

fn pod_added(store: &Store, namespace: &str, new: &v1::Pod) -> Vec<Reaction> {
    if new.controller.is_none() {
        return wake_matching(store, namespace, &new.labels, store.known(namespace, &new.name));
    }
    let Some(owner) = store.resolve(namespace, new.controller.as_ref()) else {
        return Vec::new();
    };
    vec![
        Reaction::ObserveCreate {
            key: owner.key.clone(),
            pod_name: new.name.clone(),
            node_name: target_node(new).to_owned(),
        },
        Reaction::Enqueue(owner.key.clone()),
    ]
}

fn pod_updated(store: &Store, namespace: &str, old: &v1::Pod, new: &v1::Pod) -> Vec<Reaction> {
    let mut reactions = former_owner(store, namespace, old.controller.as_ref(), new.controller.as_ref());
    if let Some(owner) = store.resolve(namespace, new.controller.as_ref()) {
        reactions.push(Reaction::Enqueue(owner.key.clone()));
        let became_ready = !is_ready(old) && is_ready(new);
        if became_ready && owner.min_ready_seconds > 0 {
            // One second more than needed: the time of readiness comes from another clock and is in whole seconds.
            let delay = Duration::from_secs(u64::from(owner.min_ready_seconds) + 1);
            reactions.push(Reaction::EnqueueAfter(owner.key.clone(), delay));
        }
    } else if new.controller.is_none() && (old.labels != new.labels || old.controller != new.controller) {
        reactions.extend(wake_matching(
            store,
            namespace,
            &new.labels,
            store.known(namespace, &new.name),
        ));
    }
    reactions
}

fn pod_going(store: &Store, namespace: &str, pod: &v1::Pod) -> Vec<Reaction> {
    let Some(owner) = store.resolve(namespace, pod.controller.as_ref()) else {
        return Vec::new();
    };
    vec![
        Reaction::ObserveDeletion {
            key: owner.key.clone(),
            pod_name: pod.name.clone(),
            pod_uid: pod.uid.clone(),
        },
        Reaction::Enqueue(owner.key.clone()),
    ]
}

/// As long as a pod is in the cache, the snapshot contains it and the planner does not reuse its name. From now on the
/// executor has to send the name. It does not do so if another controller creates the pods: no plan would ever release
/// the name.
fn pod_gone(store: &Store, namespace: &str, pod: &v1::Pod, rules: Rules) -> Vec<Reaction> {
    let mut reactions = pod_going(store, namespace, pod);
    if rules.revisions == Author::Another {
        return reactions;
    }
    let owner = store.resolve(namespace, pod.controller.as_ref());
    // A pod without a node has no successor.
    let owner = owner.filter(|_| !target_node(pod).is_empty());
    reactions.extend(owner.map(|owner| Reaction::RetireName {
        key: owner.key.clone(),
        uid: Arc::clone(&owner.uid),
        pod_name: pod.name.clone(),
        node_name: target_node(pod).to_owned(),
    }));
    reactions
}

fn revision(store: &Store, change: &Change<Arc<Revision>>, rules: Rules) -> Vec<Reaction> {
    match (&change.old, &change.new) {
        (None, Some(new)) if new.deleting => wake_owner(store, new),
        (None, Some(new)) if new.controller.is_some() => match rules.revisions {
            Author::Us => Vec::new(),
            Author::Another => wake_owner(store, new),
        },
        (None, Some(new)) => wake_matching(store, &new.namespace, &new.labels, new.known.as_deref()),
        (Some(old), Some(new)) => revision_updated(store, old, new),
        (Some(old), None) => wake_owner(store, old),
        (None, None) => Vec::new(),
    }
}

fn revision_updated(store: &Store, old: &Revision, new: &Revision) -> Vec<Reaction> {
    let namespace = &new.namespace;
    let mut reactions = former_owner(store, namespace, old.controller.as_ref(), new.controller.as_ref());
    if let Some(owner) = store.resolve(namespace, new.controller.as_ref()) {
        reactions.push(Reaction::Enqueue(owner.key.clone()));
    } else if new.controller.is_none() && (old.labels != new.labels || old.controller != new.controller) {
        reactions.extend(wake_matching(store, namespace, &new.labels, new.known.as_deref()));
    }
    reactions
}

fn wake_owner(store: &Store, revision: &Revision) -> Vec<Reaction> {
    let owner = store.resolve(&revision.namespace, revision.controller.as_ref());
    owner
        .map(|owner| Reaction::Enqueue(owner.key.clone()))
        .into_iter()
        .collect()
}

/// A node event enqueues every DaemonSet; the service decides which of them the node concerns. That is more than
/// upstream enqueues (D-105), and costs at most a plan without actions.
fn node(change: &Change<v1::Node>, rules: Rules) -> Vec<Reaction> {
    let urgency = match (&change.old, &change.new) {
        (None, Some(_)) => Some(Urgency::Urgent),
        (Some(old), Some(new)) => {
            (old.labels != new.labels || old.taints != new.taints).then_some(Urgency::Urgent)
        }
        (Some(_), None) => rules.wake_on_node_delete.then_some(Urgency::Normal),
        (None, None) => None,
    };
    urgency.map(Reaction::EnqueueAll).into_iter().collect()
}

fn former_owner(
    store: &Store,
    namespace: &str,
    old: Option<&v1::ControllerReference>,
    new: Option<&v1::ControllerReference>,
) -> Vec<Reaction> {
    let former = (old != new).then(|| store.resolve(namespace, old)).flatten();
    former
        .map(|owner| Reaction::Enqueue(owner.key.clone()))
        .into_iter()
        .collect()
}

fn wake_matching(
    store: &Store,
    namespace: &str,
    labels: &[v1::Label],
    known: Option<&KeySet>,
) -> Vec<Reaction> {
    let matching = store.matching(namespace, labels, known);
    let keys = || matching.iter().map(|daemon_set| daemon_set.key.clone());
    let overlap = (matching.len() > 1).then(|| Reaction::Overlap(keys().collect()));
    keys().map(Reaction::Enqueue).chain(overlap).collect()
}

fn is_ready(pod: &v1::Pod) -> bool {
    pod.ready() == v1::ConditionStatus::True
}

#[cfg(test)]
mod tests;
