//! How far each workload's pods are.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Instant,
};

use nodewise_proto::v1;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::families::OfWorkload;
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Workload {
    namespace: String,
    name: String,
}

/// What was last seen of a workload, and since when that has been so.
struct Progress {
    generation: i64,
    status: DaemonSetStatus,
    since: Instant,
}

impl Progress {
    /// Every node has an available pod of the current template.
    fn is_complete(&self) -> bool {
        let DaemonSetStatus {
            desired_number_scheduled: desired,
            current_number_scheduled: current,
            updated_number_scheduled: updated,
            number_available: available,
        } = self.status;
        [current, updated, available]
            .iter()
            .all(|count| *count >= desired)
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
        let workload_name = Workload {
            namespace: key.namespace.to_string(),
            name: key.name.to_string(),
        };
        let now = Progress {
            generation: workload.generation,
            status,
            since: Instant::now(),
        };
        let mut progress = self.progress();
        match progress.get_mut(&workload_name) {
            Some(before) if before.generation == now.generation && before.status == now.status => {}
            Some(before) => *before = now,
            None => _ = progress.insert(workload_name, now),
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
        let workload = Workload {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.progress().remove(&workload);
        self.since_progress.remove(&workload);
    }

    /// Brings the times since the last progress up to date.
    pub(super) fn observe_ages(&self) {
        for (workload, progress) in self.progress().iter() {
            let age = if progress.is_complete() {
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
