//! Detects another controller that works on the same workloads: it creates pods for them, or writes their status. The
//! managed fields of an object name its writers.
//!
//! Such writes are logged, counted and reported in Events. They do not stop any work: otherwise anyone who may create pods
//! could stop a rollout.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::metrics::{Metrics, OTHER_WRITES};
use nodewise_projection::{OwnershipSelector, WRITER, Workload};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::store::Store;
use nodewise_runtime::{Delta, actuator::WorkloadEvent, log_limiter::LogLimiter};

/// The reason of the Event.
pub(crate) const REASON: &str = "AnotherController";

/// A write of another controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// It created a pod of the workload; the pod's name.
    Pod(String),
    /// It wrote the workload's status.
    Status,
}

impl Write {
    fn name(&self) -> &'static str {
        let [pod, status] = OTHER_WRITES;
        match self {
            Self::Pod(_) => pod,
            Self::Status => status,
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(name) => write!(f, "created pod {name}"),
            Self::Status => f.write_str("wrote the status"),
        }
    }
}

/// The write of another controller that an event shows, with the workload of this kind and the name of the writer. Call
/// this before the store has the event. Lists are ignored: they show writes of any age.
pub(crate) fn foreign_write<'a>(
    store: &'a Store,
    kind: &'static str,
    event: &'a ClusterEvent,
) -> Option<(&'a Workload, Write, &'a str)> {
    match event {
        ClusterEvent::Pods(Delta::Applied(pod)) => {
            let writer = pod.created_by.as_deref().filter(|writer| *writer != WRITER)?;
            let shown = &pod.projection;
            let owner = store.resolve(kind, &pod.namespace, shown.controller.as_ref())?;
            let known = store.pod(&pod.namespace, &shown.name);
            let is_new = known.is_none_or(|known| known.uid != shown.uid);
            is_new.then(|| (&**owner, Write::Pod(shown.name.clone()), writer))
        }
        ClusterEvent::Workloads(_, Delta::Applied(new)) if new.key.kind == kind => {
            let other = new.other_status_writer.as_ref()?;
            let old = store.workload(&new.key).filter(|old| old.uid == new.uid)?;
            let is_new = old.other_status_writer.as_ref() != Some(other);
            is_new.then_some((new, Write::Status, &*other.manager))
        }
        _ => None,
    }
}

/// Reports other controllers: each write is counted in a metric; log and Events are rate limited.
pub(crate) struct OtherOwners {
    emit: Box<dyn Fn(WorkloadEvent) + Send + Sync>,
    metrics: Metrics,
    /// The kind of the workloads.
    kind: &'static str,
    /// Only these workloads are reported. The others belong to another controller.
    selection: OwnershipSelector,
    /// Rate limit of log and Events, by the workload's uid.
    reported: Mutex<LogLimiter<String>>,
}

impl OtherOwners {
    pub(crate) fn new(
        kind: &'static str,
        emit: impl Fn(WorkloadEvent) + Send + Sync + 'static,
        metrics: Metrics,
        selection: OwnershipSelector,
    ) -> Self {
        Self {
            kind,
            emit: Box::new(emit),
            metrics,
            selection,
            reported: Mutex::default(),
        }
    }

    /// Handles an event, before the store has it.
    pub(crate) fn handle_event(&self, store: &Store, event: &ClusterEvent) {
        let Some((workload, write, writer)) = foreign_write(store, self.kind, event) else {
            return;
        };
        if !self.selection.owns(workload) {
            return;
        }
        let key = &workload.key;
        self.metrics.other_owner(key, write.name());
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if !reported.is_due(workload.uid.to_string()) {
            return;
        }
        drop(reported);
        let message = format!(
            "{writer:?} {write}: another controller works on this {}, too, and each undoes what the other one does; stop one of them",
            self.kind
        );
        tracing::warn!(%key, "{message}");
        (self.emit)(WorkloadEvent {
            workload: workload.reference(),
            kind: "Warning".to_owned(),
            reason: REASON.to_owned(),
            message,
            once: None,
        });
    }
}

#[cfg(test)]
mod tests;
