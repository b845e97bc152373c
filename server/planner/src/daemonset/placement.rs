//! Placement: creates missing pods, and deletes excess and finished ones (D-30 to D-38).
//!
//! Upstream calls this step "manage". It does not depend on the revision of pods, except if an old and a new pod share a node
//! during a rollout with surge (D-34).

use std::collections::BTreeSet;

use crate::{
    core::{
        plan::Reason,
        pod_claims::is_adopted,
        snapshot::{Deviation, Options, PodPhase, PodView, Snapshot, Target},
    },
    daemonset::{
        backoff::{Backoffs, Wait},
        cluster_view::{ClusterView, NodeEntry},
        pod_changes::PodChanges,
        pod_classifier::OwnPod,
        rollout::limits,
        workload::DaemonSet,
    },
};

/// The result of placement.
#[derive(Debug, Default)]
pub(crate) struct Placement<'a> {
    /// Creates by node; deletes by node, then those of missing nodes. The burst is not applied yet.
    pub(crate) changes: PodChanges<'a>,
    /// Failed pods in back-off.
    pub(crate) waiting: Vec<Waiting<'a>>,
    /// The deviations that changed the result.
    pub(crate) deviations: BTreeSet<Deviation>,
}

/// A failed pod in back-off.
#[derive(Debug, Clone)]
pub(crate) struct Waiting<'a> {
    /// The pod.
    pub(crate) pod: PodView<'a>,
    /// Its node.
    pub(crate) node: &'a str,
    /// The delay.
    pub(crate) wait: Wait,
}

/// Decides about all nodes.
pub(crate) fn decide<'a>(
    snapshot: &Snapshot<DaemonSet>,
    view: &ClusterView<'a>,
    backoffs: &Backoffs,
) -> Placement<'a> {
    // With surge a node may have an old and a new pod for a while (D-37).
    let surge = limits::allows_surge(&snapshot.workload);
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
            for pod in own_first(pods).filter(|pod| !pod.pod.deleting()) {
                placement.changes.delete(entry, pod, Reason::NodeNotEligible);
            }
        } else if !matches!(pods, [only] if only.is_live()) {
            placement.decide_node(index, entry, pods, backoffs, surge, options);
        }
    }
    placement.delete_from_missing_nodes(view, options);
    placement
}

impl<'a> Placement<'a> {
    /// Decides about a node that may keep a pod and has pods (D-30).
    fn decide_node(
        &mut self,
        index: usize,
        entry: &NodeEntry<'a>,
        pods: &[OwnPod<'a>],
        backoffs: &Backoffs,
        surge: bool,
        options: &Options,
    ) {
        let waits = self.delete_finished(entry, pods, backoffs);
        let live: Vec<&OwnPod<'a>> = pods.iter().filter(|pod| pod.is_live()).collect();
        match live.as_slice() {
            // Without surge the replacement waits until no pod is left on the node (D-31).
            [] if surge && entry.fit.run => {
                if waits && options.deviates(Deviation::SurgeHonoursBackoff) {
                    self.deviations.insert(Deviation::SurgeHonoursBackoff);
                } else {
                    self.changes.create(index, Reason::NodeWithoutLivePod);
                }
            }
            [] | [_] => {}
            live if surge => self.delete_excess_with_surge(entry, live),
            [first, others @ ..] => {
                for pod in others {
                    self.changes.delete_beside(entry, pod, Reason::ExcessPod, first);
                }
            }
        }
    }

    /// Deletes failed and succeeded pods (D-95, D-96). Returns whether a failed pod is in back-off instead.
    fn delete_finished(&mut self, entry: &NodeEntry<'a>, pods: &[OwnPod<'a>], backoffs: &Backoffs) -> bool {
        let mut wait = backoffs.wait(entry.name);
        let mut waits = false;
        for pod in own_first(pods).filter(|pod| !pod.pod.deleting()) {
            match (pod.pod.phase(), wait) {
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
                    // The delete starts the next delay of the node. Its other failed pods must wait for that (D-98).
                    let whole = backoffs.next_delay(entry.name);
                    wait = Some(Wait { whole, left: whole });
                }
                (PodPhase::Succeeded, _) => self.changes.delete(entry, pod, Reason::PodSucceeded),
                _ => {}
            }
        }
        waits
    }

    /// Keeps the first pod of the current hash and the first other pod. Of the two, deletes the old one if it is not ready or if
    /// the new one is available (D-34).
    fn delete_excess_with_surge(&mut self, entry: &NodeEntry<'a>, live: &[&OwnPod<'a>]) {
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
        // This delete comes last, as in upstream: if the burst cuts the deletes, excess pods are deleted first.
        if !old.pod.ready() {
            self.changes
                .delete_beside(entry, old, Reason::SurgeOldNotReady, new);
        } else if new.available {
            self.changes
                .delete_beside(entry, old, Reason::SurgeNewAvailable, new);
        }
    }

    /// Deletes unbound pods that are meant for missing nodes. Bound ones are left to the pod garbage collector (D-36).
    fn delete_from_missing_nodes(&mut self, view: &ClusterView<'a>, options: &Options) {
        for entry in view.entries.iter().filter(|entry| entry.node.is_none()) {
            let mut meant: Vec<&OwnPod<'a>> = view
                .pods(entry)
                .iter()
                .filter(|pod| matches!(pod.pod.target(), Target::Meant(_)))
                .collect();
            meant.sort_by_key(|pod| (is_adopted(pod.pod), pod.pod.name()));
            for pod in meant {
                if pod.pod.deleting() && options.deviates(Deviation::SkipDeletingOnMissingNodes) {
                    self.deviations.insert(Deviation::SkipDeletingOnMissingNodes);
                } else {
                    self.changes.delete(entry, pod, Reason::NodeMissing);
                }
            }
        }
    }
}

/// The pods of a node, owned pods before adopted ones. Upstream decides in this order.
fn own_first<'p, 'a>(pods: &'p [OwnPod<'a>]) -> impl Iterator<Item = &'p OwnPod<'a>> {
    let adopted = pods.iter().filter(|pod| is_adopted(pod.pod));
    pods.iter().filter(|pod| !is_adopted(pod.pod)).chain(adopted)
}
