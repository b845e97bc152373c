//! The statuses that a plan writes: plain data, one type for each kind of workload.
//!
//! They are here and not in the modules of the kinds because all kinds share one plan. The module of the kind counts them.

/// The status of a workload, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Of a DaemonSet.
    DaemonSet(DaemonSetStatus),
}

impl Status {
    /// The status of a DaemonSet; `None` for another kind.
    #[must_use]
    pub fn daemon_set(self) -> Option<DaemonSetStatus> {
        match self {
            Self::DaemonSet(status) => Some(status),
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
