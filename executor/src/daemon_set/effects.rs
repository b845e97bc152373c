//! What a change of the caches means for DaemonSets (section Wake-ups of docs/behaviour.md).
//!
//! A pure function of the transition and of the cached DaemonSets.

use std::sync::Arc;
use std::time::Duration;

use nodewise_projection::{Key, KeySet, Revision, Workload};
use nodewise_proto::{v1, workload::DAEMON_SET};
use nodewise_runtime::queue::Urgency;

use nodewise_runtime::effects::{Author, Effects, Observation, Rules, Wake};
use nodewise_runtime::store::{Change, Store, Transition, target_node};

/// The effects of one transition.
pub(super) fn of(store: &Store, transition: &Transition, rules: Rules) -> Effects {
    let mut effects = Effects::default();
    match transition {
        Transition::Workload(change) => workload(change, rules, &mut effects),
        Transition::Pod(namespace, change) => {
            let pods = Pods {
                store,
                namespace,
                rules,
                effects: &mut effects,
            };
            pods.changed(change);
        }
        Transition::Node(change) => effects.wake_all = node(change, rules),
        Transition::Revision(change) => revision(store, change, rules, &mut effects),
    }
    effects
}

fn workload(change: &Change<Arc<Workload>>, rules: Rules, effects: &mut Effects) {
    let Some(any) = change.new.as_ref().or(change.old.as_ref()) else {
        return;
    };
    if any.key.kind != DAEMON_SET {
        return;
    }
    let key = any.key.clone();
    let gone = match (&change.old, &change.new) {
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
    effects.observations.extend(gone.map(|uid| Observation::Gone {
        key: key.clone(),
        own_writes_of: Arc::clone(uid),
    }));
    let urgency = if is_new { Urgency::Urgent } else { Urgency::Normal };
    effects.wakes.push(Wake::with(key, urgency));
}

/// The change of a pod of this namespace.
struct Pods<'a> {
    store: &'a Store,
    namespace: &'a str,
    rules: Rules,
    effects: &'a mut Effects,
}

impl Pods<'_> {
    fn changed(mut self, change: &Change<v1::Pod>) {
        match (&change.old, &change.new) {
            // Another pod has the name: the watch missed the deletion of the old one, and expectations must learn of it.
            (Some(old), Some(new)) if old.uid != new.uid => {
                self.gone(old);
                self.came(new);
            }
            (Some(old), Some(new)) if old == new && !self.rules.count_repeated_deletions => {}
            (None, Some(new)) => self.came(new),
            (Some(_), Some(new)) if new.deletion_time.is_some() => self.deleting(new),
            (Some(old), Some(new)) => self.updated(old, new),
            (Some(old), None) => self.gone(old),
            (None, None) => {}
        }
    }

    fn came(&mut self, new: &v1::Pod) {
        if new.deletion_time.is_some() {
            return self.deleting(new);
        }
        if new.controller.is_none() {
            return self.wake_matching(new);
        }
        let Some(owner) = self.owner(new.controller.as_ref()) else {
            return;
        };
        self.effects.observations.push(Observation::PodCreated {
            key: owner.key.clone(),
            pod_name: new.name.clone(),
            node_name: target_node(new).to_owned(),
        });
        self.effects.wakes.push(Wake::now(owner.key.clone()));
    }

    fn updated(&mut self, old: &v1::Pod, new: &v1::Pod) {
        wake_former_owner(
            self.store,
            self.namespace,
            old.controller.as_ref(),
            new.controller.as_ref(),
            self.effects,
        );
        if let Some(owner) = self.owner(new.controller.as_ref()) {
            self.effects.wakes.push(Wake::now(owner.key.clone()));
            let became_ready = !is_ready(old) && is_ready(new);
            if became_ready && owner.min_ready_seconds > 0 {
                // One second more than needed: the time of readiness comes from another clock and is in whole seconds.
                let delay = Duration::from_secs(u64::from(owner.min_ready_seconds) + 1);
                self.effects.wakes.push(Wake::after(owner.key.clone(), delay));
            }
        } else if new.controller.is_none() && (old.labels != new.labels || old.controller != new.controller) {
            self.wake_matching(new);
        }
    }

    /// The owner of the pod that is being deleted, or gone, has one pod less.
    fn deleting(&mut self, pod: &v1::Pod) {
        let Some(owner) = self.owner(pod.controller.as_ref()) else {
            return;
        };
        self.effects.observations.push(Observation::PodDeleted {
            key: owner.key.clone(),
            pod_name: pod.name.clone(),
            pod_uid: pod.uid.clone(),
        });
        self.effects.wakes.push(Wake::now(owner.key.clone()));
    }

    /// As long as a pod is in the cache, the snapshot contains it and the planner does not reuse its name. From now on
    /// the executor has to send the name. It does not do so if another controller creates the pods: no plan would ever
    /// release the name.
    fn gone(&mut self, pod: &v1::Pod) {
        self.deleting(pod);
        if self.rules.revisions == Author::Another {
            return;
        }
        let owner = self.owner(pod.controller.as_ref());
        // A pod without a node has no successor.
        let owner = owner.filter(|_| !target_node(pod).is_empty());
        let used = owner.map(|owner| Observation::NameUsed {
            key: owner.key.clone(),
            uid: Arc::clone(&owner.uid),
            pod_name: pod.name.clone(),
            node_name: target_node(pod).to_owned(),
        });
        self.effects.observations.extend(used);
    }

    fn owner(&self, controller: Option<&v1::ControllerReference>) -> Option<Arc<Workload>> {
        owner(self.store, self.namespace, controller).cloned()
    }

    fn wake_matching(&mut self, orphan: &v1::Pod) {
        let known = self.store.known(self.namespace, &orphan.name);
        wake_matching(self.store, self.namespace, &orphan.labels, known, self.effects);
    }
}

fn revision(store: &Store, change: &Change<Arc<Revision>>, rules: Rules, effects: &mut Effects) {
    match (&change.old, &change.new) {
        (None, Some(new)) if new.deleting => wake_owner(store, new, effects),
        (None, Some(new)) if new.controller.is_some() => {
            if rules.revisions == Author::Another {
                wake_owner(store, new, effects);
            }
        }
        (None, Some(new)) => {
            wake_matching(store, &new.namespace, &new.labels, new.known.as_deref(), effects);
        }
        (Some(old), Some(new)) => revision_updated(store, old, new, effects),
        (Some(old), None) => wake_owner(store, old, effects),
        (None, None) => {}
    }
}

fn revision_updated(store: &Store, old: &Revision, new: &Revision, effects: &mut Effects) {
    let namespace = &new.namespace;
    wake_former_owner(
        store,
        namespace,
        old.controller.as_ref(),
        new.controller.as_ref(),
        effects,
    );
    if let Some(owner) = owner(store, namespace, new.controller.as_ref()) {
        effects.wakes.push(Wake::now(owner.key.clone()));
    } else if new.controller.is_none() && (old.labels != new.labels || old.controller != new.controller) {
        wake_matching(store, namespace, &new.labels, new.known.as_deref(), effects);
    }
}

fn wake_owner(store: &Store, revision: &Revision, effects: &mut Effects) {
    let owner = owner(store, &revision.namespace, revision.controller.as_ref());
    effects
        .wakes
        .extend(owner.map(|owner| Wake::now(owner.key.clone())));
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

/// The DaemonSet that controls an object.
fn owner<'a>(
    store: &'a Store,
    namespace: &str,
    controller: Option<&v1::ControllerReference>,
) -> Option<&'a Arc<Workload>> {
    store.resolve(DAEMON_SET, namespace, controller)
}

fn wake_former_owner(
    store: &Store,
    namespace: &str,
    old: Option<&v1::ControllerReference>,
    new: Option<&v1::ControllerReference>,
    effects: &mut Effects,
) {
    let former = (old != new).then(|| owner(store, namespace, old)).flatten();
    effects
        .wakes
        .extend(former.map(|owner| Wake::now(owner.key.clone())));
}

fn wake_matching(
    store: &Store,
    namespace: &str,
    labels: &[v1::Label],
    known: Option<&KeySet>,
    effects: &mut Effects,
) {
    let matching = store.matching(DAEMON_SET, namespace, labels, known);
    let keys: Vec<Key> = matching.iter().map(|workload| workload.key.clone()).collect();
    effects.wakes.extend(keys.iter().cloned().map(Wake::now));
    if keys.len() > 1 {
        effects.observations.push(Observation::Overlap(keys));
    }
}

fn is_ready(pod: &v1::Pod) -> bool {
    pod.ready() == v1::ConditionStatus::True
}
