//! The condition `Progressing`, and the timer for its deadline (P-59 to P-62).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::{
    core::{
        plan::RequeueAfter,
        status::{Condition, DeploymentStatus},
    },
    deployment::{
        conditions::{self, NEW_SET_AVAILABLE, PROGRESSING, SET_UPDATED, TIMED_OUT},
        status,
        workload::Deployment,
    },
};

/// Upstream's rate limiter gives this delay to a key whose last sync succeeded.
const RATE_LIMITED: Duration = Duration::from_millis(5);
/// The least delay with the deviation `NO_HOT_REQUEUE`, and what upstream adds to a delay.
const SECOND: Duration = Duration::from_secs(1);

/// Updates the condition `Progressing` of a new status (P-59). `new_set` is the name of the new ReplicaSet.
pub(crate) fn estimate(
    deployment: &Deployment,
    status: &mut DeploymentStatus,
    new_set: Option<&str>,
    now: Timestamp,
) {
    let Some(deadline) = deployment.deadline() else {
        conditions::remove(&mut status.conditions, PROGRESSING);
        return;
    };
    let present = conditions::find(&status.conditions, PROGRESSING).cloned();
    let was_available = present
        .as_ref()
        .is_some_and(|condition| condition.reason == NEW_SET_AVAILABLE);
    if was_available && status.replicas == status.updated_replicas {
        return;
    }
    let subject = new_set.map_or_else(
        || format!("Deployment {:?}", deployment.name),
        |name| format!("ReplicaSet {name:?}"),
    );
    if status::is_complete(deployment, status) {
        let message = format!("{subject} has successfully progressed.");
        let condition = conditions::new(PROGRESSING, "True", NEW_SET_AVAILABLE, message, now);
        conditions::set(&mut status.conditions, condition);
    } else if is_progressing(&deployment.status, status) {
        let message = format!("{subject} is progressing.");
        let mut condition = conditions::new(PROGRESSING, "True", SET_UPDATED, message, now);
        // Each progress is recorded, so the condition is replaced even if only its time changes.
        if let Some(present) = present.filter(|present| present.status == "True") {
            condition.last_transition_time = present.last_transition_time;
        }
        conditions::remove(&mut status.conditions, PROGRESSING);
        conditions::set(&mut status.conditions, condition);
    } else if present.is_some_and(|present| is_timed_out(&present, deadline, now)) {
        let message = format!("{subject} has timed out progressing.");
        let condition = conditions::new(PROGRESSING, "False", TIMED_OUT, message, now);
        conditions::set(&mut status.conditions, condition);
    }
}

/// Whether any count changed for the better (P-60).
pub(crate) fn is_progressing(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let outdated =
        |status: &DeploymentStatus| i64::from(status.replicas) - i64::from(status.updated_replicas);
    new.updated_replicas > old.updated_replicas
        || outdated(new) < outdated(old)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

/// Whether the deadline has passed (P-61).
pub(crate) fn is_timed_out(condition: &Condition, deadline: i32, now: Timestamp) -> bool {
    match condition.reason.as_str() {
        NEW_SET_AVAILABLE => false,
        TIMED_OUT => true,
        _ => left(condition, deadline, now).is_negative(),
    }
}

/// The time until the deadline passes; negative once it has. A condition without a time is of the distant past.
pub(crate) fn left(condition: &Condition, deadline: i32, now: Timestamp) -> SignedDuration {
    let since = condition.last_update_time.unwrap_or(Timestamp::MIN);
    SignedDuration::from_secs(deadline.into()).saturating_sub(now.duration_since(since))
}

/// When to plan again if nothing happens, so that a passed deadline is noticed (P-62). `status` is the computed status, which equals
/// the present one.
pub(crate) fn requeue(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<RequeueAfter> {
    let deadline = deployment.deadline()?;
    let condition = conditions::find(&status.conditions, PROGRESSING)?;
    if status::is_complete(deployment, status) || condition.reason == TIMED_OUT {
        return None;
    }
    let left = left(condition, deadline, now);
    let delay = match Duration::try_from(left) {
        Ok(left) if left >= SECOND => left.saturating_add(SECOND),
        _ => RATE_LIMITED,
    };
    Some(RequeueAfter {
        delay,
        reason: "the progress deadline passes".to_owned(),
    })
}

/// Like [`requeue`], with the deviation `NO_HOT_REQUEUE`: no sooner than after a second, and not at all if no deadline can pass.
pub(crate) fn cool_requeue(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<RequeueAfter> {
    let upstream = requeue(deployment, status, now)?;
    let is_finished = conditions::progress_reason(&status.conditions) == NEW_SET_AVAILABLE
        && status.replicas == status.updated_replicas;
    if is_finished {
        return None;
    }
    Some(RequeueAfter {
        delay: upstream.delay.max(SECOND),
        ..upstream
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::fixtures::deployment;

    fn counts((replicas, updated, ready, available): (i32, i32, i32, i32)) -> DeploymentStatus {
        DeploymentStatus {
            replicas,
            updated_replicas: updated,
            ready_replicas: ready,
            available_replicas: available,
            observed_generation: 1,
            ..DeploymentStatus::default()
        }
    }

    #[test]
    fn p_52_when_a_status_is_complete() {
        // PS-104: (spec.replicas, replicas, updated, available, complete)
        let table = [
            (5, 5, 5, 4, false),
            (5, 5, 5, 5, true),
            (5, 5, 4, 5, false),
            (1, 2, 1, 1, false),
            (1, 1, 1, 0, false),
        ];
        for (wanted, replicas, updated, available, expected) in table {
            let status = counts((replicas, updated, available, available));
            assert_eq!(status::is_complete(&deployment(wanted), &status), expected);
        }
        let behind = DeploymentStatus {
            observed_generation: 0,
            ..counts((5, 5, 5, 5))
        };
        assert!(!status::is_complete(&deployment(5), &behind));
    }

    #[test]
    fn p_59_a_finished_rollout_stays_so_until_there_are_old_pods() {
        let now = Timestamp::from_second(1_000).expect("a time");
        // (stored, new, reason); the stored reason is that the rollout is complete.
        let table = [
            ((3, 3, 2, 2), (3, 3, 3, 2), NEW_SET_AVAILABLE),
            ((3, 3, 2, 2), (4, 3, 3, 2), SET_UPDATED),
        ];
        for (stored, new, expected) in table {
            let present = conditions::new(PROGRESSING, "True", NEW_SET_AVAILABLE, "", now);
            let deployment = Deployment {
                status: counts(stored),
                ..deployment(3)
            };
            let mut status = DeploymentStatus {
                conditions: vec![present],
                ..counts(new)
            };
            estimate(&deployment, &mut status, None, now);
            assert_eq!(
                conditions::progress_reason(&status.conditions),
                expected,
                "{stored:?} {new:?}"
            );
        }
    }

    #[test]
    fn p_60_what_counts_as_progress() {
        // PS-105: (stored, new, progress)
        let table = [
            ((10, 4, 4, 4), (10, 6, 4, 4), true),
            ((10, 4, 4, 4), (10, 4, 4, 4), false),
            ((10, 4, 6, 6), (8, 4, 6, 6), true),
            ((10, 7, 3, 3), (10, 6, 3, 3), false),
            ((10, 4, 7, 7), (8, 8, 5, 5), true),
            ((10, 10, 9, 9), (10, 10, 10, 9), true),
            ((10, 10, 10, 9), (10, 10, 10, 10), true),
        ];
        for (stored, new, expected) in table {
            assert_eq!(
                is_progressing(&counts(stored), &counts(new)),
                expected,
                "{stored:?} {new:?}"
            );
        }
        let extremes = [
            counts((i32::MIN, i32::MAX, 0, 0)),
            counts((i32::MAX, i32::MIN, 0, 0)),
        ];
        assert!(is_progressing(&extremes[1], &extremes[0]));
    }

    #[test]
    fn p_61_when_the_deadline_has_passed() {
        let now = Timestamp::from_second(1_000).expect("a time");
        // PS-106: (last update, reason, timed out)
        let table = [
            (Some(989), "x", true),
            (Some(990), "x", false),
            (Some(991), "x", false),
            (Some(0), NEW_SET_AVAILABLE, false),
            (Some(1_000), TIMED_OUT, true),
            (None, "x", true),
        ];
        for (seconds, reason, expected) in table {
            let mut condition = conditions::new(PROGRESSING, "True", reason, "", now);
            condition.last_update_time =
                seconds.map(|seconds| Timestamp::from_second(seconds).expect("a time"));
            assert_eq!(
                is_timed_out(&condition, 10, now),
                expected,
                "{seconds:?} {reason}"
            );
        }
        for time in [Timestamp::MIN, Timestamp::MAX] {
            let condition = conditions::new(PROGRESSING, "True", "x", "", time);
            for now in [Timestamp::MIN, Timestamp::MAX] {
                for deadline in [i32::MIN, 0, i32::MAX] {
                    is_timed_out(&condition, deadline, now);
                }
            }
        }
    }
}
