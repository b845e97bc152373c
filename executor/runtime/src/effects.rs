//! What a change of the caches means: which workloads to enqueue, and what it shows about their pods.

use std::sync::Arc;
use std::time::Duration;

use crate::queue::Urgency;
use nodewise_projection::Key;

/// What a change of the caches means for the workloads of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Workloads to enqueue, in order.
    pub wakes: Vec<Wake>,
    /// Enqueue every workload of the kind. This is one value because a first list of many nodes would otherwise cause
    /// millions of [`Wake`]s. It is urgent for a node that came, or that a workload may now run on: its network agents
    /// must not wait for a rollout.
    pub wake_all: Option<Urgency>,
    /// What the change shows, in order.
    pub observations: Vec<Observation>,
}

/// A workload to enqueue, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The workload.
    pub key: Key,
    /// When.
    pub when: When,
}

/// When to enqueue a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Now. Urgent if the workload is new, or a node was added for it.
    Now(Urgency),
    /// After a delay.
    After(Duration),
}

impl Wake {
    /// Enqueues a workload now.
    #[must_use]
    pub fn now(key: Key) -> Self {
        Self::with(key, Urgency::Normal)
    }

    /// Enqueues a workload now, before others.
    #[must_use]
    pub fn urgent(key: Key) -> Self {
        Self::with(key, Urgency::Urgent)
    }

    /// Enqueues a workload now, with this urgency.
    #[must_use]
    pub fn with(key: Key, urgency: Urgency) -> Self {
        let when = When::Now(urgency);
        Self { key, when }
    }

    /// Enqueues a workload after a delay.
    #[must_use]
    pub fn after(key: Key, delay: Duration) -> Self {
        let when = When::After(delay);
        Self { key, when }
    }
}

/// What a change shows about a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A pod of the workload, for this node, was created.
    PodCreated {
        /// The workload.
        key: Key,
        /// metadata.name of the pod.
        pod_name: String,
        /// Its (target) node; may be empty.
        node_name: String,
    },
    /// A pod of the workload is gone or being deleted.
    PodDeleted {
        /// The workload.
        key: Key,
        /// metadata.name of the pod.
        pod_name: String,
        /// metadata.uid of the pod.
        pod_uid: String,
    },
    /// A pod of the workload is gone: no new pod gets its name until another pod is seen on the node.
    NameUsed {
        /// The workload.
        key: Key,
        /// metadata.uid of the workload.
        uid: Arc<str>,
        /// metadata.name of the pod.
        pod_name: String,
        /// Its (target) node; may be empty.
        node_name: String,
    },
    /// These workloads of one namespace, ordered by name, select the same orphan: their selectors overlap.
    Overlap(Vec<Key>),
    /// The workload of this uid is gone. What is held for the workload is dropped, and its own-write record if the
    /// record belongs to `own_writes_of`.
    Gone {
        /// The workload.
        key: Key,
        /// The uid whose own-write record is cleared.
        own_writes_of: Arc<str>,
    },
}

impl Observation {
    /// The workload that the observation is about; `None` if it is about several.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Overlap(_) => None,
            Self::PodCreated { key, .. }
            | Self::PodDeleted { key, .. }
            | Self::NameUsed { key, .. }
            | Self::Gone { key, .. } => Some(key),
        }
    }
}

/// Options for [`Kind::effects`](crate::kind::Kind::effects).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A replaced workload clears the own-write record of its old uid. Upstream clears the record of the new uid.
    pub clear_replaced_own_writes: bool,
    /// A deleted node enqueues the workloads.
    pub wake_on_node_delete: bool,
    /// Each event of a pod that is being deleted counts as a deletion, as in upstream, not only the first one.
    pub count_repeated_deletions: bool,
    /// The controller that creates revisions and pods.
    pub revisions: Author,
}

/// The controller that writes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// This executor: its own writes are no reason to reconcile.
    Us,
    /// Another controller: a plan may have been made before its write was seen.
    Another,
}
