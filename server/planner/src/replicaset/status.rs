//! The status: counts of pods in the snapshot, before the plan's own writes, and the timer that keeps it right.

use std::{num::NonZero, time::Duration};

use jiff::Timestamp;

use crate::{
    core::{
        availability::Availability,
        json::{Object, append, write_list, write_string},
        plan::{Action, ActionKind, ObjectRef, PatchType, Reason, Resource, Subresource},
        requeue::Timers,
        snapshot::Options,
        status::{Condition, ReplicaSetStatus},
    },
    replicaset::{set_view::SetView, workload::ReplicaSet},
};

/// The type of the condition that says that creates or deletes failed.
const FAILURE: &str = "ReplicaFailure";

/// Why pods cannot be created or deleted, for the condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    reason: &'static str,
    message: String,
    /// Whether the error is known only after the writes. The executor then appends it to the message.
    is_future: bool,
}

impl Failure {
    /// Creates of the plan fail.
    pub(crate) fn of_creates() -> Self {
        Self {
            reason: "FailedCreate",
            message: String::new(),
            is_future: true,
        }
    }

    /// Deletes of the plan fail.
    pub(crate) fn of_deletes() -> Self {
        Self {
            reason: "FailedDelete",
            message: "unable to delete pods: ".to_owned(),
            is_future: true,
        }
    }

    /// The plan itself cannot create pods.
    pub(crate) fn of_plan(message: String) -> Self {
        Self {
            reason: "FailedCreate",
            message,
            is_future: false,
        }
    }

    /// Whether the plan itself has failed.
    pub(crate) fn is_of_plan(&self) -> bool {
        !self.is_future
    }
}

/// Counts the status. `failure` is that of the creates and deletes.
pub(crate) fn count(
    view: &SetView<'_>,
    rs: &ReplicaSet,
    options: &Options,
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let counts = view.counts;
    ReplicaSetStatus {
        replicas: saturate(counts.active),
        fully_labeled_replicas: saturate(counts.fully_labeled),
        ready_replicas: saturate(counts.ready),
        available_replicas: saturate(counts.available),
        terminating_replicas: options.terminating_replicas.then(|| saturate(counts.terminating)),
        observed_generation: rs.generation,
        conditions: conditions(&rs.status.conditions, failure, now),
    }
}

/// The conditions. All but one stay as they are. So does that one while there is a failure, whatever it says.
fn conditions(present: &[Condition], failure: Option<&Failure>, now: Timestamp) -> Vec<Condition> {
    let is_failure = |condition: &&Condition| condition.r#type == FAILURE;
    match failure {
        //
        None => present
            .iter()
            .filter(|condition| !is_failure(condition))
            .cloned()
            .collect(),
        Some(_) if present.iter().any(|condition| is_failure(&condition)) => present.to_vec(),
        Some(failure) => {
            let added = Condition {
                r#type: FAILURE.to_owned(),
                status: "True".to_owned(),
                reason: failure.reason.to_owned(),
                message: failure.message.clone(),
                last_transition_time: Some(now),
                last_update_time: None,
                served: None,
            };
            present.iter().cloned().chain([added]).collect()
        }
    }
}

/// The write of a status; `None` if nothing changed.
pub(crate) fn write(rs: &ReplicaSet, status: &ReplicaSetStatus, failure: Option<&Failure>) -> Option<Action> {
    let (same_conditions, changes) = (
        status.conditions == rs.status.conditions,
        changes(&rs.status, status),
    );
    let same_generation = status.observed_generation == rs.status.observed_generation;
    let (reason, message) = match failure {
        Some(failure) if !same_conditions => {
            let what = if failure.is_future {
                "if pods cannot be"
            } else {
                "pods cannot be"
            };
            let verb = if failure.reason == "FailedDelete" {
                "deleted"
            } else {
                "created"
            };
            (
                Reason::WritesFailed,
                format!("{what} {verb}: condition {FAILURE} is added"),
            )
        }
        _ if !changes.is_empty() => (Reason::StatusChanged, format!("status: {}", changes.join(", "))),
        _ if !same_conditions => (
            Reason::ConditionChanged,
            format!("condition {FAILURE} is removed"),
        ),
        _ if !same_generation => (
            Reason::GenerationObserved,
            format!("generation {} is observed", status.observed_generation),
        ),
        _ => return None,
    };
    let is_appended = failure.is_some_and(|failure| failure.is_future) && !same_conditions;
    let failure_pointer = match status.conditions.len().checked_sub(1) {
        Some(last) if is_appended => format!("/status/conditions/{last}/message"),
        _ => String::new(),
    };
    Some(Action {
        reason,
        message,
        kind: ActionKind::PatchObject {
            resource: Resource::ReplicaSets,
            object: ObjectRef {
                name: rs.name.clone(),
                uid: rs.uid.clone(),
            },
            subresource: Subresource::Status,
            patch_type: PatchType::Merge,
            patch: patch(rs, status),
            failure_pointer,
            claim: None,
            events: Box::default(),
        },
    })
}

/// The JSON merge patch that writes a status to the ReplicaSet with this uid.
fn patch(rs: &ReplicaSet, status: &ReplicaSetStatus) -> Vec<u8> {
    let mut out = String::new();
    let mut patch = Object::begin(&mut out);
    let mut metadata = Object::begin(patch.member("metadata"));
    write_string(metadata.member("uid"), &rs.uid);
    metadata.end();
    let mut written = Object::begin(patch.member("status"));
    append(
        written.member("availableReplicas"),
        format_args!("{}", status.available_replicas),
    );
    write_list(written.member("conditions"), &status.conditions, write_condition);
    append(
        written.member("fullyLabeledReplicas"),
        format_args!("{}", status.fully_labeled_replicas),
    );
    append(
        written.member("observedGeneration"),
        format_args!("{}", status.observed_generation),
    );
    append(
        written.member("readyReplicas"),
        format_args!("{}", status.ready_replicas),
    );
    append(written.member("replicas"), format_args!("{}", status.replicas));
    let out_terminating = written.member("terminatingReplicas");
    match status.terminating_replicas {
        Some(terminating) => append(out_terminating, format_args!("{terminating}")),
        // In a merge patch, null removes a member.
        None => out_terminating.push_str("null"),
    }
    written.end();
    patch.end();
    out.into_bytes()
}

/// Writes a condition: as served, if it was served.
fn write_condition(out: &mut String, condition: &Condition) {
    if let Some(served) = &condition.served {
        out.push_str(served.as_str());
        return;
    }
    let mut written = Object::begin(out);
    if let Some(time) = condition.last_transition_time {
        write_string(written.member("lastTransitionTime"), &seconds(time));
    }
    write_string(written.member("message"), &condition.message);
    write_string(written.member("reason"), &condition.reason);
    write_string(written.member("status"), &condition.status);
    write_string(written.member("type"), &condition.r#type);
    written.end();
}

/// A time as Kubernetes writes it: in UTC, without fractions of a second.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The counts that change.
fn changes(old: &ReplicaSetStatus, new: &ReplicaSetStatus) -> Vec<String> {
    let fields = [
        ("pods", Some(old.replicas), Some(new.replicas)),
        (
            "fully labelled",
            Some(old.fully_labeled_replicas),
            Some(new.fully_labeled_replicas),
        ),
        ("ready", Some(old.ready_replicas), Some(new.ready_replicas)),
        (
            "available",
            Some(old.available_replicas),
            Some(new.available_replicas),
        ),
        // Unset and 0 differ.
        (
            "being deleted",
            old.terminating_replicas,
            new.terminating_replicas,
        ),
    ];
    let show = |count: Option<i32>| count.map_or_else(|| "unset".to_owned(), |count| count.to_string());
    let changed = fields.into_iter().filter(|(_, old, new)| old != new);
    changed
        .map(|(name, old, new)| format!("{name} {} → {}", show(old), show(new)))
        .collect()
}

/// Sets the timer for pods that become available when minReadySeconds have passed. Upstream falls back to the whole of
/// minReadySeconds if only pods with an unknown transition time are not available, though they never become so by waiting.
pub(crate) fn availability_timer(timers: &mut Timers, view: &SetView<'_>, rs: &ReplicaSet, now: Timestamp) {
    let seconds = u64::try_from(rs.min_ready_seconds).ok();
    let Some(whole) = seconds.and_then(NonZero::new) else {
        return;
    };
    if view.counts.ready == view.counts.available {
        return;
    }
    let Some((since, pod)) = view.next_available else {
        timers.upstream(Duration::from_secs(whole.get()), || {
            "pods are ready, but not for minReadySeconds".to_owned()
        });
        return;
    };
    let left = Availability::new(now, rs.min_ready_seconds)
        .left(since)
        .unsigned_abs();
    let reason = || format!("pod {} becomes available", pod.name());
    timers.upstream(left, reason);
    timers.earliest(left, reason);
}

/// Converts a count to the API's 32 bits.
fn saturate(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
