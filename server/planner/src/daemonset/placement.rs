//! What happens on each node (chapter 4): who gets a pod, which of several stays, what becomes of finished ones.
//!
//! Upstream calls this step "manage". The template's revision plays no part in it, except where two generations of a pod
//! share a node during a rollout with surge (D-34).

use std::collections::BTreeSet;

use crate::{
    core::{
        plan::Reason,
        pod_claims::is_adopted,
        snapshot::{Deviation, Options, Pod, PodPhase, Snapshot, Target},
    },
    daemonset::{
        backoff::{Backoffs, Wait},
        cluster_view::{ClusterView, NodeEntry},
        pod_changes::PodChanges,
        pod_classifier::OwnPod,
        rollout::limits,
    },
};

/// What placement asks for.
#[derive(Debug, Default)]
pub(crate) struct Placement<'a> {
    /// Creates by node; deletes by node, then those of missing nodes. Not cut yet.
    pub(crate) changes: PodChanges<'a>,
    /// Failed pods that wait.
    pub(crate) waiting: Vec<Waiting<'a>>,
    /// The deviations that made a difference.
    pub(crate) deviations: BTreeSet<Deviation>,
}

/// A failed pod in back-off.
#[derive(Debug, Clone)]
pub(crate) struct Waiting<'a> {
    /// The pod.
    pub(crate) pod: &'a Pod,
    /// Its node.
    pub(crate) node: &'a str,
    /// How long.
    pub(crate) wait: Wait,
}

/// Decides about every node.
pub(crate) fn decide<'a>(snapshot: &Snapshot, view: &ClusterView<'a>, backoffs: &Backoffs) -> Placement<'a> {
    // A rollout may run two pods on a node for a while (D-37).
    let surge = limits::allows_surge(&snapshot.daemon_set);
    let options = &snapshot.options;
    let mut placement = Placement::default();
    for (index, entry) in view
        .entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.node.is_some())
    {
        let pods = view.pods(entry);
        if pods.is_empty() {
            if entry.fit.run {
                placement.changes.create(index, Reason::NodeWithoutPod);
            }
        } else if !entry.fit.keep {
            for pod in own_first(pods).filter(|pod| !pod.pod.deleting) {
                placement.changes.delete(entry, pod, Reason::NodeNotEligible);
            }
        } else if !matches!(pods, [only] if only.is_live()) {
            placement.tend(index, entry, pods, backoffs, surge, options);
        }
    }
    placement.sweep_missing_nodes(view, options);
    placement
}

impl<'a> Placement<'a> {
    /// A node that may keep its pod and has some (row B, D-30).
    fn tend(
        &mut self,
        index: usize,
        entry: &NodeEntry<'a>,
        pods: &[OwnPod<'a>],
        backoffs: &Backoffs,
        surge: bool,
        options: &Options,
    ) {
        let waits = self.clear_finished(entry, pods, backoffs);
        let live: Vec<&OwnPod<'a>> = pods.iter().filter(|pod| pod.is_live()).collect();
        match live.as_slice() {
            // Without surge the replacement waits until the entry is gone (D-31).
            [] if surge && entry.fit.run => {
                if waits && options.deviates(Deviation::SurgeHonoursBackoff) {
                    self.deviations.insert(Deviation::SurgeHonoursBackoff);
                } else {
                    self.changes.create(index, Reason::NodeWithoutLivePod);
                }
            }
            [] | [_] => {}
            live if surge => self.thin_out(entry, live),
            [first, others @ ..] => {
                for pod in others {
                    self.changes.delete_beside(entry, pod, Reason::ExcessPod, first);
                }
            }
        }
    }

    /// Deletes failed and succeeded pods (D-95, D-96). Returns whether a failed one has to wait instead.
    fn clear_finished(&mut self, entry: &NodeEntry<'a>, pods: &[OwnPod<'a>], backoffs: &Backoffs) -> bool {
        let mut wait = backoffs.wait(entry.name);
        let mut waits = false;
        for pod in own_first(pods).filter(|pod| !pod.pod.deleting) {
            match (pod.pod.phase, wait) {
                (PodPhase::Failed, Some(wait)) => {
                    self.waiting.push(Waiting {
                        pod: pod.pod,
                        node: entry.name,
                        wait,
                    });
                    waits = true;
                }
                (PodPhase::Failed, None) => {
                    self.changes.delete(entry, pod, Reason::PodFailed);
                    // The delete starts the node's next delay, which holds for the other failed pods there (D-98).
                    let whole = backoffs.next_delay(entry.name);
                    wait = Some(Wait { whole, left: whole });
                }
                (PodPhase::Succeeded, _) => self.changes.delete(entry, pod, Reason::PodSucceeded),
                _ => {}
            }
        }
        waits
    }

    /// Leaves at most one pod of the current hash and one other, and of the two only what is needed (D-34).
    fn thin_out(&mut self, entry: &NodeEntry<'a>, live: &[&OwnPod<'a>]) {
        let new = live.iter().position(|pod| pod.hash_new());
        let old = live.iter().position(|pod| !pod.hash_new());
        for (index, pod) in live.iter().enumerate() {
            if Some(index) != new && Some(index) != old {
                let kept = if pod.hash_new() { new } else { old };
                self.changes
                    .delete_beside(entry, pod, Reason::ExcessPod, live[kept.unwrap_or(0)]);
            }
        }
        let (Some(new), Some(old)) = (new.map(|new| live[new]), old.map(|old| live[old])) else {
            return;
        };
        // Last, since upstream decides it last: a cut at the burst leaves it rather than an excess pod.
        if !old.pod.ready {
            self.changes
                .delete_beside(entry, old, Reason::SurgeOldNotReady, new);
        } else if new.available {
            self.changes
                .delete_beside(entry, old, Reason::SurgeNewAvailable, new);
        }
    }

    /// Deletes pods that wait for a node that does not exist; bound ones are the pod garbage collector's (D-36).
    fn sweep_missing_nodes(&mut self, view: &ClusterView<'a>, options: &Options) {
        for entry in view.entries.iter().filter(|entry| entry.node.is_none()) {
            let mut meant: Vec<&OwnPod<'a>> = view
                .pods(entry)
                .iter()
                .filter(|pod| matches!(pod.pod.target, Target::Meant(_)))
                .collect();
            meant.sort_by_key(|pod| (is_adopted(pod.pod), &pod.pod.name));
            for pod in meant {
                if pod.pod.deleting && options.deviates(Deviation::SkipDeletingOnMissingNodes) {
                    self.deviations.insert(Deviation::SkipDeletingOnMissingNodes);
                } else {
                    self.changes.delete(entry, pod, Reason::NodeMissing);
                }
            }
        }
    }
}

/// The pods of a node in the order in which they are decided about one by one: upstream has its own before those that it
/// has adopted just now.
fn own_first<'p, 'a>(pods: &'p [OwnPod<'a>]) -> impl Iterator<Item = &'p OwnPod<'a>> {
    let adopted = pods.iter().filter(|pod| is_adopted(pod.pod));
    pods.iter().filter(|pod| !is_adopted(pod.pod)).chain(adopted)
}
