//! Detects pods of workloads that somebody else deletes. The apiserver does not record who deletes an object. So a
//! delete counts if none of our plans deletes the pod, the pod was live, and its node and its workload still exist.
//!
//! Such deletes are logged, counted and reported in Events. They do not stop any work.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use nodewise_projection::{Key, OwnershipSelector, Strategy, Workload};
use nodewise_proto::v1;
use nodewise_runtime::{Delta, Resource, actuator::WorkloadEvent};
use tokio::time::Instant;

use nodewise_runtime::apply::removed_pod;
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::store::{Change, Store, is_live, target_node};

/// A delete counts after this delay. Many deletes are then reported together, and if they belong to the deletion of
/// their workload, it is gone by then.
pub(crate) const SETTLED: Duration = Duration::from_secs(5);
/// Minimum interval between two reports (log and Event) about one workload.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);
/// The reason of the Event.
pub(crate) const REASON: &str = "PodsDeletedByAnother";
/// Maximum number of pods, and of causes, in one message.
const NAMED: usize = 3;
/// The cause if a pod has no DisruptionTarget condition.
const UNKNOWN: &str = "the apiserver does not tell who";

/// Tracks deletes of pods, by our plans and by others.
#[derive(Debug)]
pub(crate) struct ForeignDeletes {
    /// The kind of the workloads.
    kind: &'static str,
    selection: OwnershipSelector,
    /// Pods that our plans delete and whose deletion no watch has shown yet: names by uid.
    own: HashMap<Key, HashMap<String, String>>,
    seen: HashMap<Key, DeletesByOthers>,
}

/// The deletes by others of the pods of one workload.
#[derive(Debug)]
struct DeletesByOthers {
    workload: Arc<Workload>,
    /// The time of the first delete that does not count yet, and how many there are.
    uncounted: Option<(Instant, u64)>,
    unreported: Unreported,
    /// Time of the last report.
    last_report: Option<Instant>,
}

/// Deletes that were not reported yet.
#[derive(Debug, Default)]
struct Unreported {
    count: u64,
    /// The first pods, by name.
    names: Vec<String>,
    causes: BTreeSet<String>,
}

impl Unreported {
    fn message(&self) -> String {
        let Self { count, names, causes } = self;
        let pods = if *count == 1 {
            "1 pod was"
        } else {
            &format!("{count} pods were")
        };
        let names = names.join(", ");
        let more = match count.saturating_sub(NAMED as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let causes = causes.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{pods} deleted by somebody else: {names}{more} ({causes})")
    }
}

/// Deletes that count now.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) key: Key,
    /// How many deletes were added.
    pub(crate) count: u64,
    /// The Event to send, if one is due.
    pub(crate) event: Option<WorkloadEvent>,
}

impl ForeignDeletes {
    /// Tracks the pods of the selected workloads of a kind.
    pub(crate) fn new(kind: &'static str, selection: OwnershipSelector) -> Self {
        Self {
            kind,
            selection,
            own: HashMap::new(),
            seen: HashMap::new(),
        }
    }

    /// Records the deletes of a plan. Call this before the plan's first write.
    pub(crate) fn expect(&mut self, store: &Store, key: &Key, plan: &v1::Plan) {
        let deleted = plan.actions().filter_map(removed_pod);
        let mut deleted = deleted
            .map(|(pod, _)| (pod.uid.clone(), pod.name.clone()))
            .peekable();
        if deleted.peek().is_none() {
            return;
        }
        let own = self.own.entry(key.clone()).or_default();
        own.extend(deleted);
        // For a pod that is gone already no further event will come.
        let is_there =
            |uid: &str, name: &str| store.pod(&key.namespace, name).is_some_and(|pod| pod.uid == uid);
        own.retain(|uid, name| is_there(uid, name));
    }

    /// Forgets the deletes that a plan did not carry out: somebody else may delete these pods.
    pub(crate) fn take_back(&mut self, key: &Key, plan: &v1::Plan, outcomes: &[v1::Outcome]) {
        let Some(own) = self.own.get_mut(key) else { return };
        for (action, outcome) in plan.actions().zip(outcomes) {
            let is_undone = matches!(
                outcome.result(),
                v1::Result::Failed | v1::Result::Skipped | v1::Result::Blocked
            );
            if let Some((pod, _)) = removed_pod(action).filter(|_| is_undone) {
                own.remove(&pod.uid);
            }
        }
    }

    /// Handles an event of a single pod, before the store has it: the last state of a deleted pod may differ from its
    /// last live state, which the store has.
    pub(crate) fn handle_event(&mut self, store: &Store, event: &ClusterEvent) {
        let pod = match event {
            ClusterEvent::Pods(Delta::Deleted(pod)) => pod,
            ClusterEvent::Pods(Delta::Applied(pod)) if pod.projection.deletion_time.is_some() => pod,
            _ => return,
        };
        let shown = &pod.projection;
        let known = store.pod(&pod.namespace, &shown.name);
        if let Some(known) = known.filter(|known| known.uid == shown.uid) {
            self.deletion_began(store, &pod.namespace, &known, pod.disruption.as_deref());
        }
    }

    /// Handles a change by a list. Pods that are being deleted in the first list are ignored.
    pub(crate) fn handle_list_change(&mut self, store: &Store, namespace: &str, change: &Change<v1::Pod>) {
        let Some(old) = &change.old else { return };
        let stays = |new: &v1::Pod| new.uid == old.uid && new.deletion_time.is_none();
        if !change.new.as_ref().is_some_and(stays) {
            self.deletion_began(store, namespace, old, None);
        }
    }

    fn deletion_began(&mut self, store: &Store, namespace: &str, pod: &v1::Pod, cause: Option<&str>) {
        let workload = store.resolve(self.kind, namespace, pod.controller.as_ref());
        let Some(workload) = workload.filter(|workload| self.selection.owns(workload)) else {
            return;
        };
        let own = self.own.get_mut(&workload.key);
        let is_own = own.is_some_and(|own| own.remove(&pod.uid).is_some());
        // With OnDelete, people are expected to delete pods.
        // Pods of a node that is gone are deleted by the garbage collector.
        let node = target_node(pod);
        let lost_its_node =
            store.inputs().contains(&Resource::NODES) && !node.is_empty() && !store.has_node(node);
        if is_own || workload.strategy == Strategy::OnDelete || !is_live(pod) || lost_its_node {
            return;
        }
        let seen = self
            .seen
            .entry(workload.key.clone())
            .or_insert_with(|| DeletesByOthers {
                workload: Arc::clone(workload),
                uncounted: None,
                unreported: Unreported::default(),
                last_report: None,
            });
        seen.uncounted.get_or_insert((Instant::now(), 0)).1 += 1;
        seen.unreported.count += 1;
        if seen.unreported.names.len() < NAMED {
            seen.unreported.names.push(pod.name.clone());
        }
        if seen.unreported.causes.len() < NAMED {
            seen.unreported.causes.insert(cause.unwrap_or(UNKNOWN).to_owned());
        }
    }

    /// When to call [`Self::take_due`], if deletes are pending.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = self.seen.values().filter_map(DeletesByOthers::due);
        due.min()
    }

    /// Returns the deletes that count now, and the Events that are due.
    pub(crate) fn take_due(&mut self, store: &Store) -> Vec<Found> {
        let now = Instant::now();
        let is_there = |seen: &DeletesByOthers| {
            let workload = store.workload(&seen.workload.key);
            workload.is_some_and(|there| there.uid == seen.workload.uid && !there.deleting)
        };
        self.seen.retain(|_, seen| is_there(seen));
        let is_due = |seen: &&mut DeletesByOthers| seen.due().is_some_and(|due| due <= now);
        let found = self.seen.values_mut().filter(is_due).map(|seen| Found {
            key: seen.workload.key.clone(),
            count: seen.count(now),
            event: seen.report(now),
        });
        let found = found.collect();
        self.seen.retain(|_, seen| {
            seen.due().is_some()
                || seen
                    .last_report
                    .is_some_and(|last_report| now < last_report + REPORT_INTERVAL)
        });
        found
    }

    /// Forgets a workload that is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.own.remove(key);
        self.seen.remove(key);
    }
}

impl DeletesByOthers {
    /// When deletes begin to count or, if all of them count, when the next report may be sent.
    fn due(&self) -> Option<Instant> {
        let next_report = self.last_report.filter(|_| self.unreported.count > 0);
        let next_report = next_report.map(|last_report| last_report + REPORT_INTERVAL);
        self.uncounted.map(|(since, _)| since + SETTLED).or(next_report)
    }

    fn count(&mut self, now: Instant) -> u64 {
        let settled = self.uncounted.take_if(|(since, _)| *since + SETTLED <= now);
        settled.map_or(0, |(_, count)| count)
    }

    fn report(&mut self, now: Instant) -> Option<WorkloadEvent> {
        let may_report = self
            .last_report
            .is_none_or(|last_report| last_report + REPORT_INTERVAL <= now);
        if !may_report || self.unreported.count == 0 || self.uncounted.is_some() {
            return None;
        }
        self.last_report = Some(now);
        Some(WorkloadEvent {
            workload: self.workload.reference(),
            kind: "Normal".to_owned(),
            reason: REASON.to_owned(),
            message: std::mem::take(&mut self.unreported).message(),
            once: None,
        })
    }
}

#[cfg(test)]
mod tests;
