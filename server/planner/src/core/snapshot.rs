//! The snapshot: everything that a plan depends on.
//!
//! The types rule out most invalid snapshots. The code that builds a snapshot (the server's parser) guarantees the rest: names and
//! uids are unique, and lists of labels and annotations are sorted.

mod bucket;
mod list;
mod nodes;
mod pod;
mod pods;
#[cfg(test)]
mod tests;
mod times;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::core::json::Json;
pub use crate::core::{
    labels::{
        LabelView, Labels,
        classes::{ClassIndex, LabelIndex},
    },
    selector::{Selector, SelectorOperator, SelectorRequirement},
};
pub use bucket::Bucket;
pub use list::{Digest, List, Table};
pub use nodes::{NodeFields, NodeView, Nodes, NodesBuilder};
pub use pods::{KindIndex, PodFields, PodView, Pods, PodsBuilder};

/// Everything that a plan for a workload of kind `W` depends on.
#[derive(Debug, Clone)]
pub struct Snapshot<W> {
    /// The time of the executor's clock.
    pub now: Timestamp,
    /// The workload.
    pub workload: W,
    /// The revisions that the workload controls, and those without a controller, in any order.
    pub revisions: Vec<Revision>,
    /// All nodes of the cluster, the pods that the workload controls, and the pods without a controller. Each pod of a
    /// DaemonSet is in the bucket of the node that it is on or meant for.
    pub buckets: Vec<Bucket>,
    /// The state of the last plan, updated by its outcomes.
    pub state: State,
    /// The newest own writes, compared with the caches.
    pub own_writes: Vec<OwnWrite>,
    /// The options.
    pub options: Options,
}

impl<W> Snapshot<W> {
    /// The same snapshot, of another workload.
    #[must_use]
    pub fn with<V>(self, workload: V) -> Snapshot<V> {
        Snapshot {
            now: self.now,
            workload,
            revisions: self.revisions,
            buckets: self.buckets,
            state: self.state,
            own_writes: self.own_writes,
            options: self.options,
        }
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.buckets.iter().flat_map(|bucket| bucket.nodes.iter())
    }

    /// Every pod.
    pub fn pods(&self) -> impl Iterator<Item = PodView<'_>> {
        self.buckets.iter().flat_map(|bucket| bucket.pods.iter())
    }
}

/// Options of planning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The deviations from upstream that are on.
    pub deviations: BTreeSet<Deviation>,
    /// Tolerations may use the operators `Gt` and `Lt` (feature gate TaintTolerationComparisonOperators).
    pub toleration_comparison_operators: bool,
    /// Pods of a lower deletion cost are deleted first (feature gate PodDeletionCost).
    pub pod_deletion_cost: bool,
    /// A status says how many pods are being deleted (feature gate DeploymentReplicaSetTerminatingReplicas).
    pub terminating_replicas: bool,
    /// The most creates of one plan, and the most deletes.
    pub burst: usize,
    /// The decisions that Nodewise makes.
    pub scope: Scope,
}

/// The decisions that Nodewise makes for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All decisions.
    #[default]
    Workload,
    /// Only rollouts. Another controller makes all other decisions.
    Rollouts,
}

impl Options {
    /// Upstream's burst for DaemonSets.
    pub const DEFAULT_BURST: usize = 250;
    /// Upstream's burst for ReplicaSets.
    pub const REPLICA_SET_BURST: usize = 500;

    /// The least and the greatest value of [`Self::claims_per_plan`].
    const CLAIMS: (usize, usize) = (1_000, 10_000);

    /// The most writes of a plan before its creates (adoptions, releases, relabels, writes of revisions), and the most old
    /// revisions that it deletes. This is the burst, but at least 1,000: a small burst is meant for creates of pods. At most
    /// 10,000.
    #[must_use]
    pub fn claims_per_plan(&self) -> usize {
        let (least, most) = Self::CLAIMS;
        self.burst.clamp(least, most)
    }

    /// Whether a deviation is on.
    #[must_use]
    pub fn deviates(&self, deviation: Deviation) -> bool {
        self.deviations.contains(&deviation)
    }

    /// No deviation at all.
    #[must_use]
    pub fn upstream_strict() -> Self {
        Self {
            deviations: BTreeSet::new(),
            ..Self::default()
        }
    }
}

impl Default for Options {
    /// The default profile, with upstream's burst.
    fn default() -> Self {
        Self {
            deviations: Deviation::ALL
                .into_iter()
                .filter(|deviation| deviation.on_by_default())
                .collect(),
            toleration_comparison_operators: false,
            pod_deletion_cost: true,
            terminating_replicas: true,
            burst: Self::DEFAULT_BURST,
            scope: Scope::Workload,
        }
    }
}

/// A defect of upstream that Nodewise does not have. docs/upstream-differences.md lists them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deviation {
    /// Pod names are derived, not generated by the apiserver.
    IdempotentCreates,
    /// Q-2, in the executor: when a DaemonSet is replaced, clear the own-write record of the old uid.
    ClearReplacedOwnWrites,
    /// de-duplication relabels only the pods of the duplicates.
    RelabelDuplicatesOnly,
    /// Q-5, in the executor: expected deletions are tracked by uid.
    DeletionsByUid,
    /// do not delete pods of missing nodes again that are being deleted.
    SkipDeletingOnMissingNodes,
    /// an old pod on a missing node does not fail a rollout with surge.
    SurgeIgnoresMissingNodes,
    /// with surge, create no pod on a node whose failed pod is in back-off. Off by default.
    SurgeHonoursBackoff,
    /// events and back-off only for deletes that are in the plan.
    DecideAfterCut,
    /// revision names are shortened to the longest object name.
    ShortenRevisionNames,
    /// deletes of pods have the uid as a precondition.
    DeleteWithUid,
    /// a selector without requirements is empty.
    EmptySelectorByMeaning,
    /// requeue at the earliest time at which something changes.
    EarliestRequeue,
    /// Q-19, in the executor: the deletion of a node enqueues the workloads.
    WakeOnNodeDelete,
    /// a create that a terminating namespace rejects is no longer expected.
    LowerOnNamespaceTerminating,
    /// do not write a status that would not change.
    SkipEqualStatusWrites,
    /// In the executor: a status is written only if the workload still has the uid of the snapshot.
    StatusWithUid,
    /// The slow start continues from plan to plan, and creates are planned while the caches do not show earlier ones yet.
    SlowStartAcrossPlans,
    /// Deployments: annotations with the desired replicas are refreshed when no size has to change.
    RefreshDesiredReplicas,
    /// Deployments: a ReplicaSet that the plan releases is not its new one.
    ReleasedSetIsCollision,
    /// Deployments: shares of proportional scaling do not overflow.
    WideProportions,
    /// Deployments: no requeue every few milliseconds.
    NoHotRequeue,
    /// Deployments: a failed scale-down of an old ReplicaSet is retried.
    RetryOldSetScaling,
    /// ReplicaSets and Deployments: before the executor replaces what somebody deleted, it reads the workload from the apiserver.
    ConfirmBeforeCreates,
}

impl Deviation {
    /// All deviations, in the order of the protocol.
    pub const ALL: [Self; 23] = [
        Self::IdempotentCreates,
        Self::ClearReplacedOwnWrites,
        Self::RelabelDuplicatesOnly,
        Self::DeletionsByUid,
        Self::SkipDeletingOnMissingNodes,
        Self::SurgeIgnoresMissingNodes,
        Self::SurgeHonoursBackoff,
        Self::DecideAfterCut,
        Self::ShortenRevisionNames,
        Self::DeleteWithUid,
        Self::EmptySelectorByMeaning,
        Self::EarliestRequeue,
        Self::WakeOnNodeDelete,
        Self::LowerOnNamespaceTerminating,
        Self::SkipEqualStatusWrites,
        Self::StatusWithUid,
        Self::SlowStartAcrossPlans,
        Self::RefreshDesiredReplicas,
        Self::ReleasedSetIsCollision,
        Self::WideProportions,
        Self::NoHotRequeue,
        Self::RetryOldSetScaling,
        Self::ConfirmBeforeCreates,
    ];

    /// Whether the default profile has it on.
    #[must_use]
    pub fn on_by_default(self) -> bool {
        self != Self::SurgeHonoursBackoff
    }
}

/// A number or a string (usually a percentage).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A string.
    String(String),
}

/// A ControllerRevision.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.labels, sorted by key.
    pub labels: Labels,
    /// The controller; `None` for an orphan.
    pub controller: Option<ControllerRef>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// revision.
    pub number: i64,
    /// data.
    pub data: Json,
    /// The executor read this revision from the apiserver because a create failed: its name was taken (D-62).
    pub read_after_name_collision: bool,
}

/// An owner reference with `controller: true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerRef {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

impl ControllerRef {
    /// Memory of the reference, in bytes, without what the allocator adds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self) + self.kind.len() + self.name.len() + self.uid.len()
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// metadata.name.
    pub name: String,
    /// metadata.labels.
    pub labels: Labels,
    /// spec.taints, in the object's order.
    pub taints: Vec<Taint>,
    /// spec.unschedulable. Used in explanations and progressive rollouts.
    pub unschedulable: bool,
    /// Whether the Ready condition is `True`; `None` if absent. Used in explanations and progressive rollouts.
    pub ready: Option<bool>,
    /// lastTransitionTime of the Ready condition. Used in progressive rollouts.
    pub ready_since: Option<Timestamp>,
    /// Whether the condition MaintenanceInProgress is `True`. Used in progressive rollouts.
    pub in_maintenance: bool,
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
    /// Effect.
    pub effect: TaintEffect,
}

/// The effect of a taint that is not tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// No new pods start.
    NoSchedule,
    /// No new pods start, and existing ones must go.
    NoExecute,
    /// No effect here: `PreferNoSchedule` or an unknown effect.
    Other,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.labels.
    pub labels: Labels,
    /// The controller; `None` for an orphan. The pods of a workload should share one allocation.
    pub controller: Option<Arc<ControllerRef>>,
    /// The node that the pod is on or meant for.
    pub target: Target,
    /// status.phase.
    pub phase: PodPhase,
    /// The Ready condition is `True`.
    pub ready: bool,
    /// lastTransitionTime of the Ready condition.
    pub ready_since: Option<Timestamp>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.finalizers is not empty. No decision depends on it.
    pub has_finalizers: bool,
    /// The annotation with the deletion cost.
    pub deletion_cost: i32,
    /// The most restarts of a container.
    pub restarts: u32,
    /// The most restarts of a sidecar.
    pub sidecar_restarts: u32,
}

/// The node of a pod (D-24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<Name = String> {
    /// spec.nodeName.
    Bound(Name),
    /// The pod is not bound, and its required node affinity names this node.
    Meant(Name),
    /// Neither.
    Nowhere,
}

impl Target {
    /// The node's name.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Bound(node) | Self::Meant(node) => Some(node),
            Self::Nowhere => None,
        }
    }

    /// The target with a borrowed name.
    pub(crate) fn as_deref(&self) -> Target<&str> {
        match self {
            Self::Bound(node) => Target::Bound(node),
            Self::Meant(node) => Target::Meant(node),
            Self::Nowhere => Target::Nowhere,
        }
    }
}

impl<Name> Target<Name> {
    pub(crate) fn map<To>(self, change: impl FnOnce(Name) -> To) -> Target<To> {
        match self {
            Self::Bound(node) => Target::Bound(change(node)),
            Self::Meant(node) => Target::Meant(change(node)),
            Self::Nowhere => Target::Nowhere,
        }
    }
}

/// A pod's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// Pending.
    Pending,
    /// Running.
    Running,
    /// Succeeded.
    Succeeded,
    /// Failed.
    Failed,
    /// Unknown, empty, or a phase that this version does not know.
    Unknown,
}

impl PodPhase {
    /// Failed or succeeded.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The state that the executor keeps from one plan to the next. The server is stateless.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// Creates and deletes that the caches do not show yet.
    pub expectations: Option<Expectations>,
    /// Back-off of failed pods.
    pub failed_pod_backoffs: Vec<FailedPodBackoff>,
    /// The nodes on which derived pod names were taken, in ascending order.
    pub pod_name_collisions: Vec<PodNameCollision>,
    /// The progress of the slow start of creates; `None` at its beginning.
    pub slow_start: Option<SlowStart>,
    /// Names of pods that are gone. No new pod gets such a name until a replacement was seen.
    pub used_pod_names: Vec<UsedPodName>,
    /// Evictions that a PodDisruptionBudget did not allow.
    pub blocked_evictions: Vec<BlockedEviction>,
}

/// An eviction that a PodDisruptionBudget did not allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockedEviction {
    /// metadata.uid of the pod.
    pub pod_uid: String,
    /// What the apiserver said; it names the budget.
    pub message: String,
    /// When to ask again.
    pub retry_at: Timestamp,
    /// How many times in a row it was not allowed.
    pub attempts: u32,
}

/// The count of derived pod names that were taken, for one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodNameCollision {
    /// The node.
    pub node_name: String,
    /// How many names were taken.
    pub count: u32,
    /// How many of them the apiserver rejected because another pod has the name.
    pub refused: u32,
}

/// The name of a pod that is gone and whose replacement was not seen yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsedPodName {
    /// The node that the pod was on or meant for.
    pub node_name: String,
    /// metadata.name of the pod.
    pub pod_name: String,
}

impl State {
    /// Moves times after `now` to `now`. Expectations and back-offs have such times if the clock was set back, and would last too
    /// long. The executor must store the result, so that they end in time.
    pub(crate) fn not_after(mut self, now: Timestamp) -> Self {
        if let Some(expectations) = &mut self.expectations {
            expectations.set_at = expectations.set_at.min(now);
        }
        for backoff in &mut self.failed_pod_backoffs {
            backoff.last = backoff.last.min(now);
        }
        self
    }
}

/// The progress of the slow start: how many creates may run concurrently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowStart {
    /// The size of the next batch; at least 1.
    pub size: u32,
    /// The hash of the revision whose pods were created; the uid of a ReplicaSet.
    pub revision_hash: String,
    /// The time of the last plan with creates.
    pub last: Timestamp,
}

/// Creates and deletes that the executor started and that the caches do not show yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectations {
    /// The time of the plan that set the expectations.
    pub set_at: Timestamp,
    /// Creates.
    pub creates: Vec<ExpectedCreate>,
    /// Uids of pods to be deleted.
    pub delete_uids: Vec<String>,
}

/// A create that the executor started and that the cache does not show yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedCreate {
    /// The pod's name; empty if the apiserver chooses it.
    pub pod_name: String,
    /// The node.
    pub node_name: String,
}

/// Back-off of failed pods on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedPodBackoff {
    /// status.observedGeneration at the time of the entry.
    pub observed_generation: i64,
    /// The node.
    pub node_name: String,
    /// The delay after `last`.
    pub delay: Duration,
    /// The time of the last plan that deleted a failed pod on the node.
    pub last: Timestamp,
}

/// The executor's own writes of one resource, compared with its cache (D-110).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnWrite {
    /// The resource, for example `pods`.
    pub resource: String,
    /// The highest resourceVersion that an own write returned.
    pub written: String,
    /// The highest resourceVersion that the cache has seen.
    pub observed: String,
}
