//! The metric of blocked nodes and pods, by reason.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use nodewise_projection::Key;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::labels::WorkloadLabels;

/// The label value of every reason that is not in [`REASONS`]. Anyone who writes the status of a pod may write any reason.
const OTHER: &str = "Other";

/// The reasons that are label values: those of the kubelet, of the scheduler, and of Nodewise.
const REASONS: [&str; 36] = [
    "CrashLoopBackOff",
    "Error",
    "OOMKilled",
    "Completed",
    "ContainerCannotRun",
    "DeadlineExceeded",
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "RegistryUnavailable",
    "ImageInspectError",
    "SignatureValidationFailed",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreStartHookError",
    "PostStartHookError",
    "ContainerCreating",
    "PodInitializing",
    "StartupProbe",
    "ReadinessProbe",
    "ContainersNotReady",
    "ReadinessGatesNotReady",
    "NotReady",
    "NotStarted",
    "NotScheduled",
    "Unschedulable",
    "SchedulingGated",
    "NodeAffinity",
    "UnexpectedAdmissionError",
    "Evicted",
    "NodeLost",
    "Failed",
    "CreateRefused",
    "DeletionStuck",
];

/// Labels of a workload and a reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    #[prometheus(flatten)]
    workload: WorkloadLabels,
    reason: &'static str,
}

/// The metric families of what holds up rollouts. A workload that nothing holds up has no series.
#[derive(Default)]
pub(super) struct Blocked {
    counts: Family<ReasonLabels, Gauge>,
    stuck: Family<WorkloadLabels, Gauge>,
    /// The reasons of each workload that has series.
    reasons: Mutex<HashMap<Key, Vec<&'static str>>>,
}

impl Blocked {
    /// Sets whether the rollout of a workload is stuck while pods of older templates are left.
    pub(super) fn set_stuck(&self, key: &Key, is_stuck: bool) {
        let labels = WorkloadLabels::of(key);
        if is_stuck {
            self.stuck.get_or_create(&labels).set(1);
        } else {
            self.stuck.remove(&labels);
        }
    }

    /// Sets the counts of a workload.
    pub(super) fn set(&self, key: &Key, blocked: &[(String, u32)]) {
        let mut counts = BTreeMap::<&'static str, i64>::new();
        for (reason, count) in blocked {
            *counts.entry(label(reason)).or_default() += i64::from(*count);
        }
        let mut all = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let reasons: Vec<_> = counts.keys().copied().collect();
        let before = if reasons.is_empty() {
            all.remove(key)
        } else {
            all.insert(key.clone(), reasons)
        };
        let of = |reason| ReasonLabels {
            workload: WorkloadLabels::of(key),
            reason,
        };
        for reason in before.unwrap_or_default() {
            if !counts.contains_key(reason) {
                self.counts.remove(&of(reason));
            }
        }
        for (reason, count) in counts {
            self.counts.get_or_create(&of(reason)).set(count);
        }
    }

    /// Removes the series of every workload.
    pub(super) fn forget_all(&self) {
        self.reasons
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.counts.clear();
        self.stuck.clear();
    }

    pub(super) fn register(&self, own: &mut Registry) {
        let help = "Nodes of a DaemonSet, or pods of a ReplicaSet or Deployment, that hold up the rollout until someone removes the cause, \
                    by reason as Kubernetes names it; Other: any other reason. A workload without such nodes or pods has no series";
        own.register("blocked_nodes", help, self.counts.clone());
        let help = "1 while the rollout of a workload is stuck and pods of older templates are left: from when the executor says so in its log \
                    and in an Event until a node or pod is gained. Otherwise there is no series";
        own.register("rollout_stuck", help, self.stuck.clone());
    }
}

fn label(reason: &str) -> &'static str {
    let known = REASONS.into_iter().find(|known| *known == reason);
    known.unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use nodewise_proto::workload::DAEMON_SET;
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn only_present_reasons_have_series() {
        let (blocked, key) = (Blocked::default(), Key::new(DAEMON_SET, "a", "agent"));
        let mut registry = Registry::default();
        blocked.register(&mut registry);
        let series = || {
            let mut encoded = String::new();
            text::encode(&mut encoded, &registry).expect("writing to a string");
            let lines = encoded.lines().filter(|line| line.starts_with("blocked_nodes{"));
            let of = |line: &str| line.split_once("reason=").map(|(_, rest)| rest.to_owned());
            let mut series: Vec<_> = lines.filter_map(of).collect();
            series.sort();
            series
        };
        let steps = [
            (vec![("ErrImagePull", 3)], vec!["\"ErrImagePull\"} 3"]),
            (
                vec![("ImagePullBackOff", 2), ("x", 1), ("y", 4)],
                vec!["\"ImagePullBackOff\"} 2", "\"Other\"} 5"],
            ),
            (vec![("ImagePullBackOff", 1)], vec!["\"ImagePullBackOff\"} 1"]),
            (vec![], vec![]),
        ];
        for (counts, expected) in steps {
            let counts: Vec<_> = counts
                .iter()
                .map(|(reason, count)| ((*reason).to_owned(), *count))
                .collect();
            blocked.set(&key, &counts);
            assert_eq!(series(), expected, "{counts:?}");
        }
        blocked.set(&key, &[("Error".to_owned(), 1)]);
        blocked.forget_all();
        assert_eq!(series(), [""; 0]);
    }
}
