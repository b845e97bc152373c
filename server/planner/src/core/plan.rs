//! The answer: what must happen next, and why.

use std::{collections::BTreeSet, time::Duration};

use crate::core::snapshot::{Deviation, State, Status};

/// What must happen next for one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In one word.
    pub verdict: Verdict,
    /// The steps, in order.
    pub phases: Vec<Phase>,
    /// The manifest of every pod to create; `None` when nothing is created.
    pub pod_manifest: Option<PodManifest>,
    /// What the executor must hold from before its first write on.
    pub state: State,
    /// Plan again after this time.
    pub requeue: Option<RequeueAfter>,
    /// The error that upstream's sync would end with.
    pub error: Option<String>,
    /// Computed from the snapshot; `None` where nothing was counted.
    pub status: Option<Status>,
    /// Where the rollout stands; `None` where nothing was decided.
    pub rollout: Option<Rollout>,
    /// Deviations that changed this plan.
    pub deviations: BTreeSet<Deviation>,
}

/// A plan in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Apply it.
    Apply,
    /// Expectations are outstanding.
    StatusOnly,
    /// The snapshot is older than own writes.
    Stale,
    /// Nothing to do.
    Noop,
}

/// Plan again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequeueAfter {
    /// After this time.
    pub delay: Duration,
    /// Why, for people.
    pub reason: String,
}

/// The manifest of the pods to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodManifest {
    /// A v1 Pod as JSON.
    pub json: Vec<u8>,
    /// JSON pointers to the strings that are replaced by the node's name.
    pub node_name_pointers: Vec<String>,
}

/// A step whose actions serve one purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// The purpose.
    pub kind: PhaseKind,
    /// Never empty; run one after the other.
    pub batches: Vec<Batch>,
}

/// The purpose of a phase. A plan has them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseKind {
    /// Revisions.
    Revisions,
    /// Adoption and release of pods.
    Claims,
    /// Events about decisions.
    Events,
    /// Pod creates.
    Creates,
    /// Pod deletes.
    Deletes,
    /// History limit.
    Cleanup,
    /// Status.
    Status,
}

impl PhaseKind {
    /// A failure in such a phase ends the plan.
    #[must_use]
    pub fn aborts_on_failure(self) -> bool {
        matches!(self, Self::Revisions | Self::Claims)
    }

    /// Such a phase is skipped when an earlier one had a failure.
    #[must_use]
    pub fn requires_success(self) -> bool {
        matches!(self, Self::Cleanup)
    }
}

/// Actions that may run concurrently.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Never empty.
    pub actions: Vec<Action>,
    /// Read the workload live first: same uid, not being deleted.
    pub confirm_workload: bool,
}

/// One write. Its id is its place in the plan, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
    /// What.
    pub kind: ActionKind,
}

/// Identifies an object of the workload's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRef {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

/// What an action writes. The fields are those of the protocol's messages of the same names.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "documented once, in proto/nodewise/v1/plan.proto")]
pub enum ActionKind {
    /// Create a ControllerRevision; the manifest is JSON.
    CreateRevision { name: String, manifest: Vec<u8> },
    /// JSON merge patch of a ControllerRevision; `number` when the patch changes it.
    UpdateRevision {
        revision: ObjectRef,
        patch: Vec<u8>,
        number: Option<i64>,
    },
    /// Delete a ControllerRevision.
    DeleteRevision { revision: ObjectRef, number: i64 },
    /// Strategic merge patch that adds the controller reference.
    AdoptRevision { revision: ObjectRef, patch: Vec<u8> },
    /// Strategic merge patch that removes the controller reference.
    ReleaseRevision { revision: ObjectRef, patch: Vec<u8> },
    /// Strategic merge patch that adds the controller reference.
    AdoptPod { pod: ObjectRef, patch: Vec<u8> },
    /// Strategic merge patch that removes the controller reference.
    ReleasePod { pod: ObjectRef, patch: Vec<u8> },
    /// JSON merge patch of the hash label.
    RelabelPod { pod: ObjectRef, patch: Vec<u8> },
    /// Create a pod from the plan's manifest; an empty name is chosen by the apiserver.
    CreatePod { pod_name: String, node_name: String },
    /// Delete a pod.
    DeletePod {
        pod: ObjectRef,
        node_name: String,
        uid_precondition: bool,
    },
    /// Write the status; with `collision` also the collision count.
    UpdateStatus {
        status: Status,
        collision: Option<Collision>,
        uid_precondition: bool,
    },
    /// Emit an Event about the workload.
    EmitEvent {
        event_type: EventType,
        reason: &'static str,
        message: String,
    },
}

/// A raised collision count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collision {
    /// The new count.
    pub count: i32,
    /// The count in the snapshot; the live one must equal it.
    pub expected: Option<i32>,
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// `Normal`.
    Normal,
    /// `Warning`.
    Warning,
}

/// Where the rollout of the current template stands. Counts are of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollout {
    /// The current revision's hash label.
    pub current_hash: String,
    /// Its number after this plan.
    pub current_revision: i64,
    /// Nodes that should run a pod.
    pub desired: u32,
    /// maxUnavailable scaled.
    pub max_unavailable: u32,
    /// maxSurge scaled.
    pub max_surge: u32,
    /// Used of maxUnavailable before this plan.
    pub unavailable: u32,
    /// Used of maxSurge before this plan.
    pub surging: u32,
    /// The nodes that should run a pod, by what they have.
    pub nodes: NodeCounts,
}

/// Nodes that should run a pod. Each is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeCounts {
    /// No pod.
    pub without_pod: u32,
    /// Pods, none of the current template.
    pub outdated: u32,
    /// A pod of the current template, and none that is available.
    pub updated_unavailable: u32,
    /// An available pod of the current template.
    pub updated_available: u32,
}

/// Why an action is in a plan. The variants are those of the protocol's `Reason`, which documents them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "documented once, in proto/nodewise/v1/plan.proto")]
pub enum Reason {
    NodeWithoutPod,
    NodeWithoutLivePod,
    SurgeOldUnavailable,
    SurgeWithinBudget,
    NodeNotEligible,
    ExcessPod,
    PodFailed,
    PodSucceeded,
    SurgeOldNotReady,
    SurgeNewAvailable,
    NodeMissing,
    RolloutOldUnavailable,
    RolloutWithinBudget,
    RolloutNodeSunset,
    SelectorMatches,
    SelectorDoesNotMatch,
    NewTemplate,
    Rollback,
    HashLabelMissing,
    DuplicateRevision,
    HistoryLimit,
    StatusChanged,
    GenerationObserved,
    RevisionNameCollision,
    SelectingAll,
    StatusRewritten,
    InvalidAnnotation,
}
