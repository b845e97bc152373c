//! The exit status of `nodewise rollout status`.

use std::process::ExitCode;

use nodewise_proto::v1::{self, RolloutState};

/// 0 complete, 2 in progress, 3 stuck.
pub(super) fn exit_code(status: &v1::WorkloadStatus) -> ExitCode {
    match status.state() {
        RolloutState::Complete => ExitCode::SUCCESS,
        RolloutState::Stuck => ExitCode::from(3),
        _ => ExitCode::from(2),
    }
}
