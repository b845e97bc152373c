//! Another controller that works on the same DaemonSets: pods that it creates for them, and the status that it writes. The managed fields
//! of an object name who wrote it.
//!
//! It is told, and nothing stops for it: whoever may create pods could then stop a rollout.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::actuator::{WRITER, WorkloadEvent};
use crate::event::{ClusterEvent, DaemonSet, Delta};
use crate::metrics::Metrics;
use crate::seldom::Seldom;
use crate::selection::Selection;
use crate::store::Store;

/// The reason of the Event.
pub(crate) const REASON: &str = "AnotherController";

/// What metrics call the kinds of [`Write`].
pub(crate) const WRITES: [&str; 2] = ["pod", "status"];

/// What another controller wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// A pod of the DaemonSet was created; its name.
    Pod(String),
    /// The DaemonSet's status.
    Status,
}

impl Write {
    fn name(&self) -> &'static str {
        let [pod, status] = WRITES;
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

/// The write of another controller that an event shows, with the DaemonSet and the name of the writer. To be asked before the store has
/// the event. A list shows what was there before, and tells nothing.
pub(crate) fn shown_by<'a>(
    store: &'a Store,
    event: &'a ClusterEvent,
) -> Option<(&'a DaemonSet, Write, &'a str)> {
    match event {
        ClusterEvent::Pods(Delta::Applied(pod)) => {
            let writer = pod.created_by.as_deref().filter(|writer| *writer != WRITER)?;
            let shown = &pod.projection;
            let owner = store.resolve(&pod.namespace, shown.controller.as_ref())?;
            let known = store.pod(&pod.namespace, &shown.name);
            let is_new = known.is_none_or(|known| known.uid != shown.uid);
            is_new.then(|| (&**owner, Write::Pod(shown.name.clone()), writer))
        }
        ClusterEvent::DaemonSets(Delta::Applied(new)) => {
            let other = new.other_status_writer.as_ref()?;
            let old = store.daemon_set(&new.key).filter(|old| old.uid == new.uid)?;
            let is_new = old.other_status_writer.as_ref() != Some(other);
            is_new.then_some((new, Write::Status, &*other.manager))
        }
        _ => None,
    }
}

/// Tells of other controllers: in the log and in Events, seldom; in a metric, each time.
pub(crate) struct OtherOwners {
    emit: Box<dyn Fn(WorkloadEvent) + Send + Sync>,
    metrics: Metrics,
    /// Of the DaemonSets outside of it nothing is told: they are another controller's.
    selection: Selection,
    /// The uids of the DaemonSets whose log and Events told it.
    told: Mutex<Seldom<String>>,
}

impl OtherOwners {
    pub(crate) fn new(
        emit: impl Fn(WorkloadEvent) + Send + Sync + 'static,
        metrics: Metrics,
        selection: Selection,
    ) -> Self {
        Self {
            emit: Box::new(emit),
            metrics,
            selection,
            told: Mutex::default(),
        }
    }

    /// Looks at an event before the store has it.
    pub(crate) fn look(&self, store: &Store, event: &ClusterEvent) {
        let Some((workload, write, writer)) = shown_by(store, event) else {
            return;
        };
        if !self.selection.owns(workload) {
            return;
        }
        let key = &workload.key;
        self.metrics.other_owner(key, write.name());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.is_due(workload.uid.to_string()) {
            return;
        }
        drop(told);
        let message = format!(
            "{writer:?} {write}: another controller works on this DaemonSet, too, and both replace each other's pods; stop one of them"
        );
        tracing::warn!(%key, "{message}");
        (self.emit)(WorkloadEvent {
            workload: workload.reference(),
            kind: "Warning".to_owned(),
            reason: REASON.to_owned(),
            message,
        });
    }
}

#[cfg(test)]
mod tests;
