//! Edits the list of status conditions (P-57).

use jiff::Timestamp;

use crate::core::status::Condition;

/// The type of the condition on the progress of the rollout.
pub(crate) const PROGRESSING: &str = "Progressing";
/// The type of the condition on the availability.
pub(crate) const AVAILABLE: &str = "Available";
/// The type of the condition that a ReplicaSet cannot create or delete pods.
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// A reason of `Progressing`: a ReplicaSet was created.
pub(crate) const NEW_SET_CREATED: &str = "NewReplicaSetCreated";
/// A reason of `Progressing`: an existing ReplicaSet has the template.
pub(crate) const NEW_SET_FOUND: &str = "FoundNewReplicaSet";
/// A reason of `Progressing`: a count changed for the better.
pub(crate) const SET_UPDATED: &str = "ReplicaSetUpdated";
/// A reason of `Progressing`: the rollout is complete.
pub(crate) const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
/// A reason of `Progressing`, and of an Event: the new ReplicaSet cannot be created.
pub(crate) const CREATE_ERROR: &str = "ReplicaSetCreateError";
/// A reason of `Progressing`: the deadline has passed.
pub(crate) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
/// A reason of `Progressing`.
pub(crate) const PAUSED: &str = "DeploymentPaused";
/// A reason of `Progressing`.
pub(crate) const RESUMED: &str = "DeploymentResumed";

/// A new condition. The API has times in seconds.
pub(crate) fn new(
    kind: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> Condition {
    let now = Timestamp::from_second(seconds(now)).unwrap_or(Timestamp::MIN);
    Condition {
        r#type: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        last_transition_time: Some(now),
        last_update_time: Some(now),
        served: None,
    }
}

/// The whole seconds of a time, rounded down.
fn seconds(time: Timestamp) -> i64 {
    time.as_second() - i64::from(time.subsec_nanosecond() < 0)
}

/// The first condition of a type.
pub(crate) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == kind)
}

/// The reason of the condition `Progressing`; empty if there is none.
pub(crate) fn progress_reason(conditions: &[Condition]) -> &str {
    find(conditions, PROGRESSING).map_or("", |condition| &condition.reason)
}

/// Sets a condition. One with the same status and reason stays as it is. Otherwise the new one goes to the end of the list, and
/// keeps the old transition time if the status is the same.
pub(crate) fn set(conditions: &mut Vec<Condition>, mut condition: Condition) {
    if let Some(present) = find(conditions, &condition.r#type)
        && present.status == condition.status
    {
        if present.reason == condition.reason {
            return;
        }
        condition.last_transition_time = present.last_transition_time;
    }
    remove(conditions, &condition.r#type);
    conditions.push(condition);
}

/// Removes all conditions of a type.
pub(crate) fn remove(conditions: &mut Vec<Condition>, kind: &str) {
    conditions.retain(|condition| condition.r#type != kind);
}
