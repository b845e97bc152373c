//! The status of a DaemonSet as a message.

use nodewise_planner::plan::DaemonSetStatus;
use nodewise_proto::v1;

pub(super) fn status(status: DaemonSetStatus) -> v1::DaemonSetStatus {
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
