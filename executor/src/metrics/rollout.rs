//! How far each workload's pods are.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Instant,
};

use nodewise_proto::v1;
use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::families::{OfWorkload, Workload};
use crate::event::{DaemonSet, DaemonSetStatus};

/// From the plan.
const PLANNED: [&str; 4] = ["desired", "outdated", "unavailable", "surging"];
/// From the status.
const OBSERVED: [&str; 3] = ["current", "updated", "available"];

/// The families.
#[derive(Default)]
pub(super) struct Rollouts {
    nodes: Family<OfWorkload, Gauge>,
    since_progress: Family<Workload, Gauge<f64, AtomicU64>>,
    progress: Mutex<HashMap<Workload, Progress>>,
}

/// How close a workload has come to its end, and since when it has not come closer.
struct Progress {
    generation: i64,
    desired: i64,
    /// The most nodes so far that had a pod, one of the current template, and an available one.
    best: [i64; 3],
    complete: bool,
    since: Instant,
}

impl Progress {
    fn of(workload: &DaemonSet) -> Self {
        let DaemonSetStatus {
            observed_generation,
            desired_number_scheduled: desired,
            current_number_scheduled: current,
            updated_number_scheduled: updated,
            number_available: available,
        } = workload.status;
        // Who replaces pods by deleting them need not do so.
        let updated_enough = workload.updates_on_delete || updated >= desired;
        Self {
            generation: workload.generation,
            desired,
            best: [current, updated, available],
            complete: observed_generation >= workload.generation
                && updated_enough
                && current >= desired
                && available >= desired,
            since: Instant::now(),
        }
    }

    /// What is known after `now` was seen. Going back and forth is no progress.
    fn advance(&mut self, now: Self) {
        let is_other = now.generation != self.generation || now.desired != self.desired;
        let is_closer = now.best.iter().zip(&self.best).any(|(now, best)| now > best);
        if is_other || now.complete != self.complete {
            *self = now;
        } else if is_closer {
            self.since = now.since;
            for (best, now) in self.best.iter_mut().zip(now.best) {
                *best = now.max(*best);
            }
        }
    }
}

impl Rollouts {
    /// What a plan says.
    pub(super) fn plan(&self, workload: &v1::WorkloadReference, rollout: &v1::Rollout) {
        let counts = [
            rollout.desired,
            rollout.outdated,
            rollout.unavailable,
            rollout.surging,
        ];
        let counts = PLANNED.into_iter().zip(counts.map(i64::from));
        self.set(&workload.namespace, &workload.name, counts);
    }

    /// What a status says.
    pub(super) fn status(&self, workload: &DaemonSet) {
        let (key, status) = (&workload.key, workload.status);
        let counts = [
            status.current_number_scheduled,
            status.updated_number_scheduled,
            status.number_available,
        ];
        self.set(&key.namespace, &key.name, OBSERVED.into_iter().zip(counts));
        let now = Progress::of(workload);
        match self.progress().entry(Workload::new(&key.namespace, &key.name)) {
            Entry::Occupied(mut before) => before.get_mut().advance(now),
            Entry::Vacant(first) => _ = first.insert(now),
        }
    }

    fn set(&self, namespace: &str, name: &str, counts: impl Iterator<Item = (&'static str, i64)>) {
        for (state, count) in counts {
            let labels = OfWorkload::new(namespace, name, state);
            self.nodes.get_or_create(&labels).set(count);
        }
    }

    /// A workload is gone.
    pub(super) fn forget(&self, namespace: &str, name: &str) {
        for state in PLANNED.into_iter().chain(OBSERVED) {
            self.nodes.remove(&OfWorkload::new(namespace, name, state));
        }
        let workload = Workload::new(namespace, name);
        self.progress().remove(&workload);
        self.since_progress.remove(&workload);
    }

    /// Every workload is gone.
    pub(super) fn forget_all(&self) {
        self.progress().clear();
        self.nodes.clear();
        self.since_progress.clear();
    }

    /// Brings the times since the last progress up to date.
    pub(super) fn observe_ages(&self) {
        for (workload, progress) in self.progress().iter() {
            let age = if progress.complete {
                0.0
            } else {
                progress.since.elapsed().as_secs_f64()
            };
            self.since_progress.get_or_create(workload).set(age);
        }
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<Workload, Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(&self, own: &mut Registry) {
        let help = "Nodes of a workload: by the last plan desired, outdated, unavailable and surging, by its status current, \
                    updated and available";
        own.register("rollout_nodes", help, self.nodes.clone());
        let help = "How long a workload has not come closer to an available pod of the current template on every node; 0 where \
                    that is so";
        own.register(
            "rollout_since_progress_seconds",
            help,
            self.since_progress.clone(),
        );
    }
}
