//! The plan: the result of planning for one workload.

use std::{collections::BTreeSet, time::Duration};

pub use crate::core::status::{Condition, DaemonSetStatus, DeploymentStatus, ReplicaSetStatus, Status};

use crate::core::{
    measurement::MeasurementRequest,
    snapshot::{Deviation, Snapshot, State},
};

/// The next actions for one workload, with the state that the executor keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The result in one word.
    pub verdict: Verdict,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// The manifest of every pod to create; `None` when nothing is created.
    pub pod_manifest: Option<PodManifest>,
    /// The state that the executor must store before its first write and send with the next snapshot.
    pub state: State,
    /// When to plan again without a watch event; `None` if there is no need.
    pub requeue: Option<RequeueAfter>,
    /// The error with which upstream's sync would end.
    pub error: Option<String>,
    /// The status computed from the snapshot; `None` if it was not computed.
    pub status: Option<Status>,
    /// The progress of the rollout; `None` if nothing was decided.
    pub rollout: Option<Rollout>,
    /// Deviations that changed this plan.
    pub deviations: BTreeSet<Deviation>,
    /// The uids of the RolloutPolicies that this plan heeds: all those of the snapshot.
    pub policy_uids: Vec<String>,
}

impl Plan {
    /// A plan without actions that keeps the state.
    pub(crate) fn nothing<W>(snapshot: &Snapshot<W>, verdict: Verdict) -> Self {
        Self {
            verdict,
            phases: Vec::new(),
            pod_manifest: None,
            state: snapshot.state.clone(),
            requeue: None,
            error: None,
            status: None,
            rollout: None,
            deviations: BTreeSet::new(),
            policy_uids: Vec::new(),
        }
    }
}

/// The result of planning in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The executor must apply the plan.
    Apply,
    /// Expectations are outstanding: only revisions, claims and the status are planned.
    StatusOnly,
    /// The snapshot does not show the executor's own writes yet: nothing is planned.
    Stale,
    /// There is nothing to do.
    Noop,
}

/// A request to plan again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequeueAfter {
    /// The delay from now.
    pub delay: Duration,
    /// Why, for people.
    pub reason: String,
}

/// The manifest of the pods to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodManifest {
    /// A v1 Pod as JSON.
    pub json: Vec<u8>,
    /// JSON pointers to the strings that the executor replaces with the node's name.
    pub node_name_pointers: Vec<String>,
}

/// Actions of one purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// The purpose.
    pub kind: PhaseKind,
    /// The batches; never empty. The executor runs them one after the other.
    pub batches: Vec<Batch>,
    /// After which outcomes of earlier phases the executor runs this one.
    pub when: When,
    /// A failure in this phase does not count.
    pub ignores_failure: bool,
}

impl Phase {
    /// A phase that runs as its kind usually does.
    #[must_use]
    pub fn new(kind: PhaseKind, batches: Vec<Batch>) -> Self {
        let when = match kind {
            PhaseKind::Cleanup => When::AfterSuccess,
            PhaseKind::Failure => When::AfterFailure,
            _ => When::Always,
        };
        Self {
            kind,
            batches,
            when,
            ignores_failure: false,
        }
    }
}

/// After which outcomes of earlier phases a phase runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After any.
    Always,
    /// Only if no action failed.
    AfterSuccess,
    /// Only if an action failed.
    AfterFailure,
}

/// The purpose of a phase. A plan has them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseKind {
    /// Claims and writes of ControllerRevisions.
    Revisions,
    /// Adoption and release of pods or ReplicaSets.
    Claims,
    /// Events about failed and succeeded pods, or about a workload that cannot be planned for.
    Events,
    /// Statuses of RolloutPolicies. What the plan does to pods by a rollout depends on them.
    RolloutPolicies,
    /// A rollback of a Deployment.
    Rollback,
    /// Creates of pods, or of a ReplicaSet.
    Creates,
    /// Sizes and annotations of a Deployment's ReplicaSets.
    ReplicaSets,
    /// Sizes of a Deployment's old ReplicaSets in a rolling update.
    OldReplicaSets,
    /// Pod deletes.
    Deletes,
    /// Deletes of revisions or old ReplicaSets beyond the history limit.
    Cleanup,
    /// A status that says why this plan failed.
    Failure,
    /// The write of the status.
    Status,
    /// Measurements for the analysis of a rollout.
    Analysis,
}

impl PhaseKind {
    /// Whether a failure in this phase ends the plan.
    #[must_use]
    pub fn aborts_on_failure(self) -> bool {
        matches!(
            self,
            Self::Revisions | Self::Claims | Self::RolloutPolicies | Self::Rollback | Self::ReplicaSets
        )
    }
}

/// Actions that the executor may run concurrently.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The actions; never empty.
    pub actions: Vec<Action>,
    /// Whether the executor must first read the workload from the apiserver and check that it has the same uid and is not being
    /// deleted. If not, adoptions fail, and creates fail and end the plan.
    pub confirm_workload: bool,
}

/// One write. Its id is its position in the plan, from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
    /// The write.
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
    /// Evict a pod through the Eviction API.
    EvictPod { pod: ObjectRef, node_name: String },
    /// Measure for a check of a RolloutPolicy.
    Measure(Box<MeasurementRequest>),
    /// Write the status of a DaemonSet; with `collision` also the collision count.
    UpdateStatus {
        status: DaemonSetStatus,
        collision: Option<Collision>,
        uid_precondition: bool,
    },
    /// Emit an Event about the workload.
    EmitEvent {
        event_type: EventType,
        reason: &'static str,
        message: String,
    },
    /// Create an object; the manifest is JSON.
    CreateObject {
        resource: Resource,
        name: String,
        manifest: Vec<u8>,
        events: Box<WriteEvents>,
    },
    /// Patch an object. The patch has its uid, and its resourceVersion if the write depends on its state.
    PatchObject {
        resource: Resource,
        object: ObjectRef,
        subresource: Subresource,
        patch_type: PatchType,
        patch: Vec<u8>,
        /// JSON pointer to the string in the patch to which the executor appends the first error, without a separator; empty for
        /// none.
        failure_pointer: String,
        claim: Option<ObjectClaim>,
        events: Box<WriteEvents>,
    },
    /// Delete an object.
    DeleteObject {
        resource: Resource,
        object: ObjectRef,
        resource_version: String,
    },
}

/// A resource, of the API group and version `apps/v1` if nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// replicasets.
    ReplicaSets,
    /// deployments.
    Deployments,
    /// rolloutpolicies of `nodewise.dev/v1alpha1`.
    RolloutPolicies,
}

/// The part of an object that a patch changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself, without its status.
    None,
    /// status, and the annotations.
    Status,
}

/// The format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// JSON merge patch.
    Merge,
    /// Strategic merge patch.
    StrategicMerge,
}

/// What a patch does with the ownership of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectClaim {
    /// The workload becomes its controller.
    Adopt,
    /// The workload is no longer its controller.
    Release,
}

/// The Events about the workload that follow a write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteEvents {
    /// After it succeeded.
    pub success: Vec<Event>,
    /// After it failed. The executor appends a colon, a space and the error to the message.
    pub failure: Option<Event>,
}

/// An Event about the workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The type.
    pub event_type: EventType,
    /// The reason, for programs.
    pub reason: &'static str,
    /// The message, for people.
    pub message: String,
}

/// A raised collision count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collision {
    /// The new count.
    pub count: i32,
    /// The count in the snapshot. The executor writes only if the live count equals it.
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

/// The progress of the rollout of the current template. All counts are of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rollout {
    /// The current revision's hash label.
    pub current_hash: String,
    /// The current revision's number after this plan.
    pub current_revision: i64,
    /// Nodes that should run a pod.
    pub desired: u32,
    /// maxUnavailable, as a number of nodes.
    pub max_unavailable: u32,
    /// maxSurge, as a number of nodes.
    pub max_surge: u32,
    /// How much of maxUnavailable is in use before this plan.
    pub unavailable: u32,
    /// How much of maxSurge is in use before this plan.
    pub surging: u32,
    /// The nodes that should run a pod, by the pods that they have.
    pub nodes: NodeCounts,
}

/// The nodes that should run a pod, by the pods that they have. Each node is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeCounts {
    /// Nodes without a pod.
    pub without_pod: u32,
    /// Nodes with pods, but none of the current template.
    pub outdated: u32,
    /// Nodes with a pod of the current template, but none that is available.
    pub updated_unavailable: u32,
    /// Nodes with an available pod of the current template.
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
    TooFewPods,
    TooManyPods,
    ReplicasChanged,
    ScaleUpNew,
    ScaleDownNew,
    ScaleDownUnhealthy,
    ScaleDownOld,
    Recreate,
    MetadataChanged,
    ConditionChanged,
    WritesFailed,
    RollbackRequested,
    PolicyStatusChanged,
    AnalysisDue,
    RevisionRejected,
}
