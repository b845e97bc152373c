//! A Deployment and its ReplicaSets, as a snapshot holds them.

use std::cmp::Ordering;

use jiff::Timestamp;

use crate::core::{
    json::Json,
    owner::Owner,
    snapshot::{ControllerRef, IntOrString, Labels, Selector},
    status::{DeploymentStatus, ReplicaSetStatus},
};

/// A Deployment. The values are as served: the planner does not rely on the apiserver's validation.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// metadata.name.
    pub name: String,
    /// metadata.namespace.
    pub namespace: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.generation.
    pub generation: i64,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.annotations, sorted by key.
    pub annotations: Vec<(String, String)>,
    /// spec.selector; `None` when absent.
    pub selector: Option<Selector>,
    /// spec.selector as served.
    pub selector_json: Json,
    /// spec.replicas; 1 when absent.
    pub replicas: i32,
    /// spec.paused.
    pub paused: bool,
    /// spec.strategy.
    pub strategy: Strategy,
    /// spec.minReadySeconds.
    pub min_ready_seconds: i32,
    /// spec.progressDeadlineSeconds; `None` when absent.
    pub progress_deadline_seconds: Option<i32>,
    /// spec.revisionHistoryLimit; `None` when absent.
    pub revision_history_limit: Option<i32>,
    /// spec.template as served.
    pub template: Json,
    /// status.
    pub status: DeploymentStatus,
    /// The ReplicaSets that the Deployment controls, and those without a controller, in any order.
    pub sets: Vec<Set>,
}

/// A limit or deadline of this value counts as absent.
const UNLIMITED: i32 = i32::MAX;

impl Deployment {
    /// The value of an annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        find(&self.annotations, key)
    }

    /// spec.progressDeadlineSeconds, if there is a deadline.
    pub(crate) fn deadline(&self) -> Option<i32> {
        self.progress_deadline_seconds
            .filter(|seconds| *seconds != UNLIMITED)
    }

    /// spec.revisionHistoryLimit, if there is a limit.
    pub(crate) fn history_limit(&self) -> Option<i32> {
        self.revision_history_limit.filter(|limit| *limit != UNLIMITED)
    }

    /// spec.strategy is RollingUpdate.
    pub(crate) fn is_rolling(&self) -> bool {
        matches!(self.strategy, Strategy::RollingUpdate(_))
    }

    /// The workload as the owner of its ReplicaSets.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner {
            kind: "Deployment",
            name: &self.name,
            uid: &self.uid,
            selector: self.selector.as_ref(),
            deleting: self.deleting,
        }
    }
}

/// spec.strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// Type `RollingUpdate`, with the field rollingUpdate if present.
    RollingUpdate(Option<RollingUpdate>),
    /// Type `Recreate`.
    Recreate,
    /// Any other type.
    Unknown(String),
}

/// spec.strategy.rollingUpdate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RollingUpdate {
    /// maxUnavailable.
    pub max_unavailable: Option<IntOrString>,
    /// maxSurge.
    pub max_surge: Option<IntOrString>,
}

/// A ReplicaSet in the snapshot of a Deployment.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// metadata.name.
    pub name: String,
    /// metadata.uid.
    pub uid: String,
    /// metadata.resourceVersion.
    pub resource_version: String,
    /// metadata.generation.
    pub generation: i64,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// metadata.labels.
    pub labels: Labels,
    /// metadata.annotations, sorted by key.
    pub annotations: Vec<(String, String)>,
    /// The controller; `None` for an orphan.
    pub controller: Option<ControllerRef>,
    /// metadata.creationTimestamp.
    pub created: Option<Timestamp>,
    /// spec.replicas; 1 when absent.
    pub replicas: i32,
    /// spec.minReadySeconds.
    pub min_ready_seconds: i32,
    /// spec.template as served.
    pub template: Json,
    /// status.
    pub status: ReplicaSetStatus,
    /// The number of its pods that have neither failed nor succeeded, for strategy Recreate.
    pub unfinished_pods: u32,
    /// The executor read this set from the apiserver because a create failed: its name was taken.
    pub read_after_name_collision: bool,
}

impl Set {
    /// The value of an annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        find(&self.annotations, key)
    }

    /// Whether the set should have pods.
    pub(crate) fn is_active(&self) -> bool {
        self.replicas > 0
    }

    /// The order of age: by creation, then name (P-15). The uid makes it total.
    pub(crate) fn by_age(a: &Self, b: &Self) -> Ordering {
        (a.created, &a.name, &a.uid).cmp(&(b.created, &b.name, &b.uid))
    }
}

fn find<'a>(annotations: &'a [(String, String)], key: &str) -> Option<&'a str> {
    annotations
        .iter()
        .find(|(found, _)| found == key)
        .map(|(_, value)| value.as_str())
}
