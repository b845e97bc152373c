//! How far the rollouts of workloads are, and what holds them up: for the log, for Events and for a metric.
//!
//! The status of a rollout is computed by the crate nodewise-status, as for every other view. It is computed after a plan, when pods
//! became ready or are not ready for another reason, and when a pod becomes late; but of each workload at most once in [`INTERVAL`].
//! The cost depends on the number of pods that are not ready, and not on the size of the workload.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use nodewise_projection::{Key, Workload};
use nodewise_proto::v1;
use nodewise_runtime::actuator::WorkloadEvent;
use nodewise_runtime::store::Store;
use tokio::{sync::Notify, time::Instant};

mod news;
mod tally;
mod tracker;

pub(crate) use news::News;
use tally::Tally;
use tracker::Tracker;

/// The shortest time between two statuses of one workload.
const INTERVAL: Duration = Duration::from_secs(1);

/// The rollouts of all workloads that have a plan.
#[derive(Debug, Default)]
pub(crate) struct Rollouts {
    entries: HashMap<Key, Entry>,
    /// The workload that a controller of pods, by its uid, belongs to.
    by_controller: HashMap<Arc<str>, Key>,
    /// When which statuses are to be computed.
    due: BTreeSet<(Instant, Key)>,
    /// Tells whoever waits for the first of these times that another one is the first. Workers take plans while the manager waits.
    is_due_sooner: Arc<Notify>,
}

#[derive(Debug)]
struct Entry {
    workload: Arc<Workload>,
    tally: Tally,
    tracker: Tracker,
    /// When the status was computed last, and when it is to be computed again.
    computed: Option<Instant>,
    due: Option<Instant>,
}

/// What is to be told about a workload.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) key: Key,
    /// What has happened since the last report, in order.
    pub(crate) news: Vec<News>,
    /// The blocked units by reason.
    pub(crate) blocked: Vec<(String, u32)>,
    /// Whether the rollout is stuck, and pods of older templates are left.
    pub(crate) is_stuck: bool,
}

impl Rollouts {
    /// Takes what a plan says about its workload. A ReplicaSet of a Deployment has no rollout of its own.
    pub(crate) fn planned(&mut self, store: &Store, workload: &Arc<Workload>, plan: &v1::Plan, now: Instant) {
        let key = &workload.key;
        if store
            .owner(&key.namespace, workload.controller.as_ref())
            .is_some()
        {
            self.forget(key);
            return;
        }
        let Some(mut tally) = tally::of(store, workload, plan) else {
            return;
        };
        let known = self
            .entries
            .get_mut(key)
            .filter(|known| known.workload.uid == workload.uid);
        let Some(known) = known else {
            self.forget(key);
            self.know_controllers(key, &tally);
            let entry = Entry {
                workload: Arc::clone(workload),
                tally,
                tracker: Tracker::default(),
                computed: None,
                due: None,
            };
            self.entries.insert(key.clone(), entry);
            self.wake(key, now);
            return;
        };
        if tally.controlled.refusal.is_none() && tally.controlled.missing > 0 {
            tally.controlled.refusal = known.tally.controlled.refusal.take();
        }
        known.workload = Arc::clone(workload);
        if known.tally == tally {
            return;
        }
        let former = std::mem::replace(&mut known.tally, tally.clone());
        if former.controllers != tally.controllers {
            former
                .controllers
                .iter()
                .for_each(|(uid, _)| _ = self.by_controller.remove(uid));
            self.know_controllers(key, &tally);
        }
        self.wake(key, now);
    }

    fn know_controllers(&mut self, key: &Key, tally: &Tally) {
        let uids = tally.controllers.iter().map(|(uid, _)| Arc::clone(uid));
        self.by_controller.extend(uids.map(|uid| (uid, key.clone())));
    }

    /// Takes the outcomes of a plan: whether the apiserver refuses to create pods.
    pub(crate) fn applied(
        &mut self,
        key: &Key,
        plan: &v1::Plan,
        outcomes: &[v1::Outcome],
        at: Timestamp,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let before = entry.tally.controlled.refusal.clone();
        tally::take_outcomes(&mut entry.tally.controlled.refusal, plan, outcomes, at);
        let told =
            |refusal: &Option<v1::Refusal>| refusal.as_ref().map(|one| (one.message.clone(), one.since));
        if told(&entry.tally.controlled.refusal) != told(&before) {
            self.wake(key, now);
        }
    }

    /// Pods of these controllers became ready, or are not ready for another reason.
    pub(crate) fn pods_changed(&mut self, controllers: impl IntoIterator<Item = Arc<str>>, now: Instant) {
        for uid in controllers {
            if let Some(key) = self.by_controller.get(&uid).cloned() {
                self.wake(&key, now);
            }
        }
    }

    /// Has the status of a workload computed soon.
    fn wake(&mut self, key: &Key, now: Instant) {
        let Some(entry) = self.entries.get(key) else {
            return;
        };
        let at = entry
            .computed
            .map_or(now, |computed| now.max(computed + INTERVAL));
        self.wake_at(key, at);
    }

    /// Has the status of a workload computed at this time, unless that is done sooner.
    fn wake_at(&mut self, key: &Key, at: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.due.is_some_and(|due| due <= at) {
            return;
        }
        if let Some(due) = entry.due.replace(at) {
            self.due.remove(&(due, key.clone()));
        }
        self.due.insert((at, key.clone()));
        if self.due.first().is_some_and(|(_, first)| first == key) {
            self.is_due_sooner.notify_one();
        }
    }

    /// Tells whenever [`Self::next_due`] has become sooner.
    pub(crate) fn is_due_sooner(&self) -> Arc<Notify> {
        Arc::clone(&self.is_due_sooner)
    }

    /// When to call [`Self::take_due`], if there is anything to compute.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Computes the statuses that are due. `now` and `at` are the same time.
    pub(crate) fn take_due(&mut self, store: &Store, now: Instant, at: Timestamp) -> Vec<Report> {
        let mut reports = Vec::new();
        while let Some((due, key)) = self.due.pop_first() {
            if due > now {
                self.due.insert((due, key));
                break;
            }
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            (entry.due, entry.computed) = (None, Some(now));
            let (report, again) = entry.compute(store, at);
            reports.push(report);
            if let Some(again) = again {
                let delay = again.duration_since(at).try_into().unwrap_or(INTERVAL);
                self.wake_at(&key, now + delay.max(INTERVAL));
            }
        }
        reports
    }

    /// Forgets a workload that is gone or not owned any more.
    pub(crate) fn forget(&mut self, key: &Key) {
        let Some(entry) = self.entries.remove(key) else {
            return;
        };
        if let Some(due) = entry.due {
            self.due.remove(&(due, key.clone()));
        }
        for (uid, _) in &entry.tally.controllers {
            self.by_controller.remove(uid);
        }
    }
}

impl Entry {
    /// Computes the status. Also returns when to do so again although nothing happens.
    fn compute(&mut self, store: &Store, at: Timestamp) -> (Report, Option<Timestamp>) {
        let Self {
            workload,
            tally,
            tracker,
            ..
        } = self;
        let unready = tally.unready(store, &workload.key.namespace);
        let (status, changes) = nodewise_status::of_controller(&tally.controlled, &unready, at);
        let began = || tally::began(store, workload, &tally.revision).unwrap_or(at);
        let has_older = tally.controlled.outdated > 0 || tally.controlled.surplus > 0;
        let (news, announces) = tracker.observe(&status, &tally.revision, has_older, began, at);
        let blocked = status.causes.iter().map(|cause| {
            let named = u32::try_from(cause.units.len()).unwrap_or(u32::MAX);
            let count = match named.saturating_add(cause.more_units) {
                // Pods that cannot be created have no names.
                0 => tally.controlled.missing,
                count => count,
            };
            (cause.reason.clone(), count)
        });
        let report = Report {
            key: workload.key.clone(),
            news,
            blocked: blocked.collect(),
            is_stuck: has_older && tracker.is_stuck(),
        };
        let again = [changes, announces].into_iter().flatten().min();
        (report, again)
    }
}

impl Rollouts {
    /// The Event about news of a workload, if it has one.
    pub(crate) fn event(&self, key: &Key, news: &News) -> Option<WorkloadEvent> {
        let entry = self.entries.get(key)?;
        news.event(entry.workload.reference())
    }
}

#[cfg(test)]
mod tests;
