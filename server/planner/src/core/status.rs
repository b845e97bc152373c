//! The statuses that a plan writes: plain data, one type for each kind of workload.
//!
//! They are here and not in the modules of the kinds because all kinds share one plan. The module of the kind counts them.

use crate::core::json::Json;

/// The status of a workload, by its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// Of a DaemonSet.
    DaemonSet(DaemonSetStatus),
    /// Of a ReplicaSet.
    ReplicaSet(ReplicaSetStatus),
    /// Of a Deployment.
    Deployment(DeploymentStatus),
}

impl Status {
    /// The status of a DaemonSet; `None` for another kind.
    #[must_use]
    pub fn daemon_set(&self) -> Option<DaemonSetStatus> {
        match self {
            Self::DaemonSet(status) => Some(*status),
            _ => None,
        }
    }
}

/// The fields of a DaemonSet's status that its controller writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DaemonSetStatus {
    /// currentNumberScheduled.
    pub current_number_scheduled: i32,
    /// numberMisscheduled.
    pub number_misscheduled: i32,
    /// desiredNumberScheduled.
    pub desired_number_scheduled: i32,
    /// numberReady.
    pub number_ready: i32,
    /// updatedNumberScheduled.
    pub updated_number_scheduled: i32,
    /// numberAvailable.
    pub number_available: i32,
    /// numberUnavailable.
    pub number_unavailable: i32,
    /// observedGeneration.
    pub observed_generation: i64,
}

/// The status of a ReplicaSet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplicaSetStatus {
    /// replicas.
    pub replicas: i32,
    /// fullyLabeledReplicas.
    pub fully_labeled_replicas: i32,
    /// readyReplicas.
    pub ready_replicas: i32,
    /// availableReplicas.
    pub available_replicas: i32,
    /// terminatingReplicas; `None` when absent.
    pub terminating_replicas: Option<i32>,
    /// observedGeneration.
    pub observed_generation: i64,
    /// conditions, in the object's order.
    pub conditions: Vec<Condition>,
}

/// The status of a Deployment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeploymentStatus {
    /// replicas.
    pub replicas: i32,
    /// updatedReplicas.
    pub updated_replicas: i32,
    /// readyReplicas.
    pub ready_replicas: i32,
    /// availableReplicas.
    pub available_replicas: i32,
    /// unavailableReplicas.
    pub unavailable_replicas: i32,
    /// terminatingReplicas; `None` when absent.
    pub terminating_replicas: Option<i32>,
    /// collisionCount; `None` when absent.
    pub collision_count: Option<i32>,
    /// observedGeneration.
    pub observed_generation: i64,
    /// conditions, in the object's order.
    pub conditions: Vec<Condition>,
}

/// One entry of status.conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// type.
    pub r#type: String,
    /// status: `True`, `False`, `Unknown` or anything else.
    pub status: String,
    /// reason; empty when absent.
    pub reason: String,
    /// message; empty when absent.
    pub message: String,
    /// lastTransitionTime.
    pub last_transition_time: Option<jiff::Timestamp>,
    /// lastUpdateTime, which only a Deployment's conditions have.
    pub last_update_time: Option<jiff::Timestamp>,
    /// The entry as served, so that a condition that the plan does not change is written unchanged; `None` for a new one.
    pub served: Option<Json>,
}
