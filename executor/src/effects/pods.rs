//! The effects of a change of a pod, for the kinds of workload that control pods.

use std::sync::Arc;
use std::time::Duration;

use nodewise_projection::Workload;
use nodewise_proto::v1;
use nodewise_runtime::effects::{Author, Effects, Observation, Rules, Wake};
use nodewise_runtime::store::{Change, Store, target_node};

use super::Workloads;

/// How a kind differs from others.
#[derive(Clone, Copy)]
pub(crate) struct PodRules {
    /// Whether each pod is for one node.
    pub(crate) is_per_node: bool,
    /// How much later than after minReadySeconds a workload is enqueued whose pod became ready.
    pub(crate) after_ready: Duration,
    /// If a pod gets other labels and a deletion time at once, its state before counts as deleted, too.
    pub(crate) deletes_relabelled: bool,
    /// Whether plans for a workload read how often the containers of its pods have restarted.
    pub(crate) restarts_matter: fn(&Store, &Workload) -> bool,
}

/// Collects the effects of a change of a pod.
pub(crate) struct Pods<'a> {
    pub(crate) workloads: Workloads<'a>,
    pub(crate) kind: PodRules,
    pub(crate) rules: Rules,
    pub(crate) effects: &'a mut Effects,
}

impl Pods<'_> {
    pub(crate) fn changed(mut self, change: &Change<v1::Pod>) {
        match (&change.old, &change.new) {
            // Another pod has the name: the watch missed the deletion of the old one, and expectations must learn of it.
            (Some(old), Some(new)) if old.uid != new.uid => {
                self.gone(old);
                self.came(new);
            }
            (Some(old), Some(new)) if old == new && !self.rules.count_repeated_deletions => {}
            (None, Some(new)) => self.came(new),
            (Some(old), Some(new)) if new.deletion_time.is_some() => {
                self.deleting(new);
                if self.kind.deletes_relabelled && old.labels != new.labels {
                    self.deleting(old);
                }
            }
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
        let Some(owner) = self.owner(new) else {
            return;
        };
        self.effects.observations.push(Observation::PodCreated {
            key: owner.key.clone(),
            pod_name: new.name.clone(),
            node_name: self.node(new).to_owned(),
        });
        self.effects.wakes.push(Wake::now(owner.key.clone()));
    }

    fn updated(&mut self, old: &v1::Pod, new: &v1::Pod) {
        self.workloads
            .wake_former_owner(old.controller.as_ref(), new.controller.as_ref(), self.effects);
        if let Some(owner) = self.owner(new) {
            let store = self.workloads.store;
            if is_restart(old, new) && !(self.kind.restarts_matter)(store, &owner) {
                return;
            }
            self.effects.wakes.push(Wake::now(owner.key.clone()));
            let became_ready = !is_ready(old) && is_ready(new);
            if became_ready && owner.min_ready_seconds > 0 {
                let delay = Duration::from_secs(owner.min_ready_seconds.into()) + self.kind.after_ready;
                self.effects.wakes.push(Wake::after(owner.key.clone(), delay));
            }
        } else if new.controller.is_none() && (old.labels != new.labels || old.controller != new.controller) {
            self.wake_matching(new);
        }
    }

    /// The owner of the pod that is being deleted, or gone, has one pod less.
    fn deleting(&mut self, pod: &v1::Pod) {
        let Some(owner) = self.owner(pod) else {
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
        let node_name = self.node(pod);
        // A pod without a node has no successor, if each pod is for a node.
        let owner = self
            .owner(pod)
            .filter(|_| !self.kind.is_per_node || !node_name.is_empty());
        let used = owner.map(|owner| Observation::NameUsed {
            key: owner.key.clone(),
            uid: Arc::clone(&owner.uid),
            pod_name: pod.name.clone(),
            node_name: node_name.to_owned(),
        });
        self.effects.observations.extend(used);
    }

    fn owner(&self, pod: &v1::Pod) -> Option<Arc<Workload>> {
        self.workloads.owner(pod.controller.as_ref()).cloned()
    }

    /// The node that expectations and used names of the pod belong to. Empty if pods are not for nodes.
    fn node<'p>(&self, pod: &'p v1::Pod) -> &'p str {
        if self.kind.is_per_node {
            target_node(pod)
        } else {
            ""
        }
    }

    fn wake_matching(&mut self, orphan: &v1::Pod) {
        let Workloads { store, namespace, .. } = self.workloads;
        let known = store.known(namespace, &orphan.name);
        self.workloads.wake_matching(&orphan.labels, known, self.effects);
    }
}

/// Whether nothing has changed but the number of restarts.
fn is_restart(old: &v1::Pod, new: &v1::Pod) -> bool {
    let restarts = new.restarts;
    old.restarts != restarts
        && v1::Pod {
            restarts,
            ..old.clone()
        } == *new
}

fn is_ready(pod: &v1::Pod) -> bool {
    pod.ready() == v1::ConditionStatus::True
}
