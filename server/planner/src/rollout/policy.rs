//! A RolloutPolicy, as a snapshot holds it. `docs/rollouts.md` says what each field does; `api/` has the custom resource.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    core::snapshot::{IntOrString, Selector},
    rollout::{analysis::Check, status::PolicyStatus, window::Window},
};

/// A RolloutPolicy of the workload's namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.generation.
    pub generation: i64,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// What people ask for by annotations.
    pub requests: Requests,
    /// spec.targets. `None` if they cannot be read: the policy then targets every workload of the namespace, because it must not let
    /// go those that it was written for (L-2).
    pub targets: Option<Targets>,
    /// The rest of spec, or why it cannot be used.
    pub spec: Result<Spec, String>,
    /// status.
    pub status: PolicyStatus,
}

/// spec.targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// The workloads of these names.
    Names(Vec<String>),
    /// The workloads whose labels this selects.
    Selector(Selector),
}

/// The annotations with which people steer a rollout. The values name what is meant, so that a request does nothing once that has
/// changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requests {
    /// `nodewise.dev/approve`: the digest of a pending approval.
    pub approve: Option<String>,
    /// `nodewise.dev/reject`: the digest of a pending approval that is denied.
    pub reject: Option<String>,
    /// `nodewise.dev/rollback`: the digest of the rollout whose revision is to be rejected and rolled back.
    pub rollback: Option<String>,
    /// `nodewise.dev/resume`: the digest of the rejection that is to end.
    pub resume: Option<String>,
}

/// The most stages of a policy. The CRD has the same limit.
pub const MOST_STAGES: usize = 32;

/// spec without the targets. Values that the object leaves out have their defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// paused.
    pub paused: bool,
    /// partition: nodes that stay on the stable revision.
    pub partition: Option<IntOrString>,
    /// stages.
    pub stages: Vec<Stage>,
    /// nodes.notReady.
    pub not_ready: NotReady,
    /// nodes.maxExempt.
    pub max_exempt: IntOrString,
    /// nodes.inMaintenance.
    pub in_maintenance: InMaintenance,
    /// unadmitted.
    pub unadmitted: Unadmitted,
    /// order.
    pub order: Order,
    /// pace.
    pub pace: Option<Pace>,
    /// disruption.
    pub disruption: Disruption,
    /// windows. Empty: updates are allowed at any time.
    pub windows: Vec<Window>,
    /// progressDeadlineSeconds.
    pub progress_deadline: Duration,
    /// maxRestarts.
    pub max_restarts: Option<u32>,
    /// failureThreshold.
    pub failure_threshold: IntOrString,
    /// onFailure.
    pub on_failure: OnFailure,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            paused: false,
            partition: None,
            stages: Vec::new(),
            not_ready: NotReady::Exempt,
            max_exempt: IntOrString::String("10%".to_owned()),
            in_maintenance: InMaintenance::Exempt,
            unadmitted: Unadmitted::Stable,
            order: Order::Name,
            pace: None,
            disruption: Disruption::Delete,
            windows: Vec::new(),
            progress_deadline: Duration::from_mins(10),
            max_restarts: None,
            failure_threshold: IntOrString::Int(1),
            on_failure: OnFailure::Rollback,
        }
    }
}

/// One entry of stages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// name.
    pub name: String,
    /// replicas: how many of the nodes that match; all of them if absent.
    pub replicas: Option<IntOrString>,
    /// nodeSelector; every node if absent.
    pub selector: Option<Selector>,
    /// spreadBy: the key of a label.
    pub spread_by: Option<String>,
    /// groupBy: the key of a label.
    pub group_by: Option<String>,
    /// maxUnavailable.
    pub max_unavailable: Option<IntOrString>,
    /// maxSurge.
    pub max_surge: Option<IntOrString>,
    /// soak.
    pub soak: Duration,
    /// analysis.
    pub checks: Vec<Check>,
    /// approval is `Required`.
    pub needs_approval: bool,
}

/// What happens to nodes that were not ready before they got the update revision (L-20).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReady {
    /// They are not waited for, and do not use the budget.
    Exempt,
    /// They count, as with the built-in controller.
    Count,
}

/// What happens to nodes that are cordoned or in maintenance (L-23).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InMaintenance {
    /// As nodes that are not ready.
    Exempt,
    /// They are updated before others.
    First,
    /// They count as any other node.
    Count,
}

/// Which revision a pod gets that is needed on a node that is not admitted (L-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unadmitted {
    /// The stable revision.
    Stable,
    /// The update revision.
    Update,
}

/// In which order nodes are updated (L-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By the name of the node.
    Name,
    /// The node with the oldest pod first.
    OldestPod,
}

/// How many nodes may be begun within an interval (L-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Nodes; at least 1.
    pub nodes: usize,
    /// The interval.
    pub interval: Duration,
}

/// How a pod is removed (L-24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disruption {
    /// It is deleted.
    Delete,
    /// It is evicted, so that PodDisruptionBudgets are heeded.
    Evict,
}

/// What happens to a rejected revision (L-27, L-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// Its nodes go back to the stable revision.
    Rollback,
    /// No further node gets it.
    Pause,
}
