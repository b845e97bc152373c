//! Converts the planner's results to messages.

mod action;
mod explain;
mod overhead;
mod plan;
mod report;
mod simulation;
mod state;
mod status;

pub(crate) use explain::{MOST_PODS, deployment_explanation, explanation, replica_set_explanation};
pub(crate) use overhead::{daemon_set_overhead, decision, evaluation};
pub(crate) use plan::plan;
pub(crate) use report::report;
pub(crate) use simulation::{end, steps};
use state::state;

use std::fmt::Write as _;

/// A duration as a message. One that is too long for the message is capped.
fn duration(duration: std::time::Duration) -> nodewise_proto::Duration {
    nodewise_proto::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}

/// Lower-case hex.
fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String cannot fail");
            text
        })
}
