//! The sentence that says how far a rollout is.

use jiff::Timestamp;
use nodewise_projection::moment;
use nodewise_proto::{
    v1::{self, RolloutState},
    workload::DAEMON_SET,
};

use crate::span::span;

/// The sentence about a status that has everything but its message.
pub(crate) fn of(status: &v1::WorkloadStatus, is_paused: bool, now: Timestamp) -> String {
    let sentence = sentence(status, now);
    // The cause of a stuck rollout says it.
    let policy = status.policy.as_ref().filter(|policy| {
        !policy.message.is_empty() && !matches!(status.state(), RolloutState::Complete | RolloutState::Stuck)
    });
    if let Some(policy) = policy {
        return format!("{sentence}; RolloutPolicy {}: {}", policy.name, policy.message);
    }
    // With the state `Paused` everybody says so already.
    if is_paused && status.state() != RolloutState::Paused {
        return format!("{sentence}; paused: a change of the template waits until someone resumes it");
    }
    sentence
}

fn sentence(status: &v1::WorkloadStatus, now: Timestamp) -> String {
    let counts = status.counts.unwrap_or_default();
    let unit = if status.kind == DAEMON_SET { "node" } else { "pod" };
    let done = format!("{} of {} {unit}s are done", counts.done, counts.desired);
    match status.state() {
        RolloutState::Complete if counts.desired == 0 => format!("no {unit} is wanted"),
        RolloutState::Complete if counts.desired == 1 => format!("the {unit} is up to date and available"),
        RolloutState::Complete => format!("all {} {unit}s are up to date and available", counts.desired),
        RolloutState::WaitingForDelete => {
            format!(
                "{done}; the outdated pods of {} stay until someone deletes them",
                plural(counts.waiting, unit)
            )
        }
        RolloutState::Stuck => {
            let since = status.stuck_since.and_then(moment);
            let since = since
                .map(|since| format!(" for {}", span(now.duration_since(since).as_secs())))
                .unwrap_or_default();
            let waiting = match counts.waiting {
                0 => String::new(),
                1 => format!(", 1 {unit} waits"),
                waiting => format!(", {waiting} {unit}s wait"),
            };
            let first = status.causes.first();
            let cause = first
                .map(|cause| format!(": {}", cause.message))
                .unwrap_or_default();
            match (counts.blocked, counts.waiting) {
                (0, 0) => format!("{done}, no progress{since}{cause}"),
                (0, _) => format!("no progress{since}{waiting}{cause}"),
                (blocked, _) => format!("{} blocked{since}{waiting}{cause}", plural(blocked, unit)),
            }
        }
        RolloutState::Progressing | RolloutState::Unspecified if counts.blocked > 0 => {
            format!("{done}, {} blocked", plural(counts.blocked, unit))
        }
        RolloutState::Paused | RolloutState::Progressing | RolloutState::Unspecified => done,
    }
}

fn plural(count: u32, unit: &str) -> String {
    match count {
        1 => format!("1 {unit}"),
        count => format!("{count} {unit}s"),
    }
}
