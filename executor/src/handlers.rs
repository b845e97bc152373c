//! Who is woken by what a watch showed, and what it tells about expectations: chapter 15 of the behaviour, row by row.
//!
//! A pure function of the transition and of the DaemonSets that are known.

use std::sync::Arc;
use std::time::Duration;

use nodewise_proto::v1;

use crate::event::{DaemonSet, Key, Revision};
use crate::project::KeySet;
use crate::queue::Urgency;
use crate::store::{Change, Store, Transition, target_node};

mod overlaps;

pub(crate) use overlaps::Overlaps;

/// Options that concern wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A replaced DaemonSet clears the own-write record of its old uid; upstream clears that of the new one.
    pub clear_replaced_own_writes: bool,
    /// A deleted node wakes the DaemonSets.
    pub wake_on_node_delete: bool,
    /// Each event of a pod that is being deleted counts as a deletion, as with upstream, not only the first.
    pub count_repeated_deletions: bool,
    /// Who creates revisions, and pods.
    pub revisions: Author,
}

/// Who writes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// This executor: what comes is its own, and no news.
    Us,
    /// Another controller: a plan may have been made before what it wrote is seen.
    Another,
}

/// What is to be done about a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Look at this workload.
    Enqueue(Key),
    /// Look at this workload before others: it is new.
    EnqueueFirst(Key),
    /// Look at every workload. One reaction for all of them: a first list of many nodes would make millions. A node that came,
    /// or may do so for a workload, must not wait for its network behind a rollout.
    EnqueueAll(Urgency),
    /// Look at it again after this time.
    EnqueueAfter(Key, Duration),
    /// A pod of it, for this node, was created.
    ObserveCreate {
        /// The workload.
        key: Key,
        /// metadata.name of the pod.
        pod_name: String,
        /// Its (target) node; may be empty.
        node_name: String,
    },
    /// A pod of it is gone or being deleted.
    ObserveDeletion {
        /// The workload.
        key: Key,
        /// metadata.name of the pod.
        pod_name: String,
        /// metadata.uid of the pod.
        pod_uid: String,
    },
    /// A pod of it is gone: no new pod gets its name before another pod is seen on the node.
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
    /// Drop what is held for it, and its own-write record if that is of this uid.
    Forget {
        /// The workload.
        key: Key,
        /// The uid whose own-write record is cleared.
        own_writes_of: Arc<str>,
    },
}

impl Reaction {
    /// The one workload that it is about, if so.
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

    /// The one workload that is to be looked at, if so.
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
        // Another pod of that name: its predecessor went while nobody watched, and whoever waits for that must hear of it.
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
            // A second more than needed: readiness is stamped by another clock, in whole seconds.
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

/// While a pod is in the cache the snapshot has it, and the planner gives no pod its name. From here on the executor has to tell, unless
/// another controller creates the pods: no plan would ever say that a name is not needed any more.
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

/// Nodes wake every DaemonSet: the service decides which of them care. That is more than upstream wakes (D-105), and costs
/// a plan that says so.
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
