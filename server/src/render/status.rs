//! Statuses as messages.

use nodewise_planner::plan::{Condition, DaemonSetStatus, Status};
use nodewise_proto::v1;

/// The status of a DaemonSet.
pub(super) fn daemon_set(status: DaemonSetStatus) -> v1::DaemonSetStatus {
    v1::DaemonSetStatus {
        current_number_scheduled: status.current_number_scheduled,
        number_misscheduled: status.number_misscheduled,
        desired_number_scheduled: status.desired_number_scheduled,
        number_ready: status.number_ready,
        updated_number_scheduled: status.updated_number_scheduled,
        number_available: status.number_available,
        number_unavailable: status.number_unavailable,
        observed_generation: status.observed_generation,
    }
}

/// The status of a workload that is not a DaemonSet.
pub(super) fn other_status(status: Status) -> Option<v1::plan::Status> {
    match status {
        Status::DaemonSet(_) => None,
        Status::ReplicaSet(status) => Some(v1::plan::Status::ReplicaSetStatus(v1::ReplicaSetStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            terminating_replicas: status.terminating_replicas,
            observed_generation: status.observed_generation,
            conditions: status.conditions.into_iter().map(condition).collect(),
        })),
        Status::Deployment(status) => Some(v1::plan::Status::DeploymentStatus(v1::DeploymentStatus {
            replicas: status.replicas,
            updated_replicas: status.updated_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            unavailable_replicas: status.unavailable_replicas,
            terminating_replicas: status.terminating_replicas,
            collision_count: status.collision_count,
            observed_generation: status.observed_generation,
            conditions: status.conditions.into_iter().map(condition).collect(),
        })),
    }
}

fn condition(condition: Condition) -> v1::Condition {
    v1::Condition {
        r#type: condition.r#type,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
    }
}
