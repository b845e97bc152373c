//! Pods of DaemonSets that somebody else deletes. The apiserver does not record who deletes an object: what none of our plans deletes
//! counts, as long as the pod lived and its node and its DaemonSet are there.
//!
//! It is told, and nothing stops for it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use nodewise_proto::v1;
use tokio::time::Instant;

use crate::actuator::WorkloadEvent;
use crate::event::{ClusterEvent, DaemonSet, Delta, Key};
use crate::selection::Selection;
use crate::store::{Change, Store, is_live, target_node};

/// A delete counts this much later: many at once are told together, and where they go with their DaemonSet it is gone by then.
pub(crate) const SETTLED: Duration = Duration::from_secs(5);
/// The log and the Events of a DaemonSet tell of deletes this often at most.
const PAUSE: Duration = Duration::from_mins(1);
/// The reason of the Event.
pub(crate) const REASON: &str = "PodsDeletedByAnother";
/// Pods, and causes, that are named.
const NAMED: usize = 3;
/// The cause where a pod shows none.
const UNKNOWN: &str = "the apiserver does not tell who";

/// Deletes of pods, ours and others'.
#[derive(Debug)]
pub(crate) struct ForeignDeletes {
    selection: Selection,
    /// Pods that our plans delete and that have not begun to go: names by uid.
    own: HashMap<Key, HashMap<String, String>>,
    seen: HashMap<Key, Seen>,
}

/// What others deleted of a workload.
#[derive(Debug)]
struct Seen {
    workload: Arc<DaemonSet>,
    /// Since when there are deletes that do not count yet, and how many.
    uncounted: Option<(Instant, u64)>,
    untold: Untold,
    /// When it was told of last.
    told: Option<Instant>,
}

/// Deletes of which nobody was told.
#[derive(Debug, Default)]
struct Untold {
    count: u64,
    /// The first of them.
    names: Vec<String>,
    causes: BTreeSet<String>,
}

impl Untold {
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

/// Deletes that count by now.
#[derive(Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) key: Key,
    /// How many more than before.
    pub(crate) count: u64,
    /// What people are told.
    pub(crate) event: Option<WorkloadEvent>,
}

impl ForeignDeletes {
    /// Looks at the pods of the DaemonSets that are selected.
    pub(crate) fn new(selection: Selection) -> Self {
        Self {
            selection,
            own: HashMap::new(),
            seen: HashMap::new(),
        }
    }

    /// A plan deletes pods. To be told before its first write.
    pub(crate) fn expect(&mut self, store: &Store, key: &Key, plan: &v1::Plan) {
        let deleted = plan.actions().filter_map(|action| match &action.kind {
            Some(v1::action::Kind::DeletePod(delete)) => delete.pod.as_ref(),
            _ => None,
        });
        let mut deleted = deleted.map(|pod| (pod.uid.clone(), pod.name.clone())).peekable();
        if deleted.peek().is_none() {
            return;
        }
        let own = self.own.entry(key.clone()).or_default();
        own.extend(deleted);
        // No event will tell of those that are gone already.
        let is_there =
            |uid: &str, name: &str| store.pod(&key.namespace, name).is_some_and(|pod| pod.uid == uid);
        own.retain(|uid, name| is_there(uid, name));
    }

    /// What a plan did not delete after all may be deleted by somebody else.
    pub(crate) fn take_back(&mut self, key: &Key, plan: &v1::Plan, outcomes: &[v1::Outcome]) {
        let Some(own) = self.own.get_mut(key) else { return };
        for (action, outcome) in plan.actions().zip(outcomes) {
            let is_undone = matches!(outcome.result(), v1::Result::Failed | v1::Result::Skipped);
            if let Some(v1::action::Kind::DeletePod(delete)) = &action.kind
                && let Some(pod) = delete.pod.as_ref().filter(|_| is_undone)
            {
                own.remove(&pod.uid);
            }
        }
    }

    /// Looks at an event of a single pod before the store has it: the last state of a pod that is gone need not be that of a live one.
    pub(crate) fn look(&mut self, store: &Store, event: &ClusterEvent) {
        let pod = match event {
            ClusterEvent::Pods(Delta::Deleted(pod)) => pod,
            ClusterEvent::Pods(Delta::Applied(pod)) if pod.projection.deletion_time.is_some() => pod,
            _ => return,
        };
        let shown = &pod.projection;
        let known = store.pod(&pod.namespace, &shown.name);
        if let Some(known) = known.filter(|known| known.uid == shown.uid) {
            self.begins_to_go(store, &pod.namespace, &known, pod.disruption.as_deref());
        }
    }

    /// Looks at what a list, the first one or one after a gap, changed. What was deleting in the first one tells nothing.
    pub(crate) fn look_at_list(&mut self, store: &Store, namespace: &str, change: &Change<v1::Pod>) {
        let Some(old) = &change.old else { return };
        let stays = |new: &v1::Pod| new.uid == old.uid && new.deletion_time.is_none();
        if !change.new.as_ref().is_some_and(stays) {
            self.begins_to_go(store, namespace, old, None);
        }
    }

    fn begins_to_go(&mut self, store: &Store, namespace: &str, pod: &v1::Pod, cause: Option<&str>) {
        let workload = store.resolve(namespace, pod.controller.as_ref());
        let Some(workload) = workload.filter(|workload| self.selection.owns(workload)) else {
            return;
        };
        let own = self.own.get_mut(&workload.key);
        let is_own = own.is_some_and(|own| own.remove(&pod.uid).is_some());
        // With OnDelete it is for people to delete pods.
        if is_own || workload.updates_on_delete || !is_live(pod) || !store.has_node(target_node(pod)) {
            return;
        }
        let seen = self.seen.entry(workload.key.clone()).or_insert_with(|| Seen {
            workload: Arc::clone(workload),
            uncounted: None,
            untold: Untold::default(),
            told: None,
        });
        seen.uncounted.get_or_insert((Instant::now(), 0)).1 += 1;
        seen.untold.count += 1;
        if seen.untold.names.len() < NAMED {
            seen.untold.names.push(pod.name.clone());
        }
        if seen.untold.causes.len() < NAMED {
            seen.untold.causes.insert(cause.unwrap_or(UNKNOWN).to_owned());
        }
    }

    /// When to call [`Self::take_due`], if at all.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let due = self.seen.values().filter_map(Seen::due);
        due.min()
    }

    /// What counts, and what is to be told, by now.
    pub(crate) fn take_due(&mut self, store: &Store) -> Vec<Found> {
        let now = Instant::now();
        let is_there = |seen: &Seen| {
            let workload = store.daemon_set(&seen.workload.key);
            workload.is_some_and(|there| there.uid == seen.workload.uid && !there.deleting)
        };
        self.seen.retain(|_, seen| is_there(seen));
        let is_due = |seen: &&mut Seen| seen.due().is_some_and(|due| due <= now);
        let found = self.seen.values_mut().filter(is_due).map(|seen| Found {
            key: seen.workload.key.clone(),
            count: seen.count(now),
            event: seen.tell(now),
        });
        let found = found.collect();
        self.seen
            .retain(|_, seen| seen.due().is_some() || seen.told.is_some_and(|told| now < told + PAUSE));
        found
    }

    /// The workload is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.own.remove(key);
        self.seen.remove(key);
    }
}

impl Seen {
    /// When something counts or, if all of it does, may be told of.
    fn due(&self) -> Option<Instant> {
        let tells = self.told.filter(|_| self.untold.count > 0);
        let tells = tells.map(|told| told + PAUSE);
        self.uncounted.map(|(since, _)| since + SETTLED).or(tells)
    }

    fn count(&mut self, now: Instant) -> u64 {
        let settled = self.uncounted.take_if(|(since, _)| *since + SETTLED <= now);
        settled.map_or(0, |(_, count)| count)
    }

    fn tell(&mut self, now: Instant) -> Option<WorkloadEvent> {
        let may_tell = self.told.is_none_or(|told| told + PAUSE <= now);
        if !may_tell || self.untold.count == 0 || self.uncounted.is_some() {
            return None;
        }
        self.told = Some(now);
        Some(WorkloadEvent {
            workload: self.workload.reference(),
            kind: "Normal".to_owned(),
            reason: REASON.to_owned(),
            message: std::mem::take(&mut self.untold).message(),
        })
    }
}

#[cfg(test)]
mod tests;
