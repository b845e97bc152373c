//! The state of a rollout, and how fast it is.

use jiff::{SignedDuration, Timestamp};
use nodewise_proto::v1::{self, RolloutState, action};

use crate::{inputs::Inputs, units::View};

/// How fast a rollout is.
pub(crate) struct Pace {
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ready_per_minute: f64,
    pub(crate) time_left: Option<pbjson_types::Duration>,
}

/// What decides about the state of a rollout besides its units.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Situation {
    /// Someone has paused it.
    pub(crate) is_paused: bool,
    /// Someone else is expected to delete outdated pods.
    pub(crate) is_on_delete: bool,
    /// The next plan changes pods, or the sizes of ReplicaSets.
    pub(crate) moves: bool,
    /// Pods that must still go before the rollout is complete.
    pub(crate) surplus: usize,
    /// The apiserver refuses to create pods that the rollout needs.
    pub(crate) is_refused: bool,
}

impl Situation {
    pub(crate) fn of(inputs: &Inputs<'_>, view: &View, refusal: Option<&v1::Refusal>) -> Self {
        Self {
            is_paused: inputs.workload.is_paused,
            is_on_delete: inputs.workload.strategy == "OnDelete",
            moves: changes_pods(inputs.plan),
            surplus: view.surplus,
            is_refused: refusal.is_some(),
        }
    }
}

/// The state of the rollout.
pub(crate) fn state(situation: &Situation, counts: &v1::UnitCounts) -> RolloutState {
    let has_surplus = situation.surplus > 0;
    let is_complete = counts.done >= counts.desired
        && (counts.progressing, counts.blocked, counts.waiting) == (0, 0, 0)
        && !has_surplus;
    if is_complete {
        return RolloutState::Complete;
    }
    if situation.is_paused {
        return RolloutState::Paused;
    }
    let waits_only = (counts.progressing, counts.blocked) == (0, 0) && !has_surplus;
    if situation.is_on_delete && waits_only {
        return RolloutState::WaitingForDelete;
    }
    let moves = counts.progressing > 0 || situation.moves;
    let is_refused = situation.is_refused;
    // A plan repeats creates that are refused, so it does not count as progress.
    let is_held = counts.blocked > 0 || is_refused;
    if is_held && (counts.progressing == 0) && (!moves || is_refused) {
        return RolloutState::Stuck;
    }
    RolloutState::Progressing
}

/// Whether a plan changes pods, or the sizes of ReplicaSets.
#[must_use]
pub fn changes_pods(plan: &v1::Plan) -> bool {
    plan.actions().any(|action| match &action.kind {
        Some(
            action::Kind::CreatePod(_)
            | action::Kind::DeletePod(_)
            | action::Kind::EvictPod(_)
            | action::Kind::CreateObject(_)
            | action::Kind::DeleteObject(_),
        ) => true,
        Some(action::Kind::PatchObject(patch)) => patch.subresource.is_empty(),
        _ => false,
    })
}

/// How fast the rollout has been since its start, and how long it still takes.
pub(crate) fn pace(inputs: &Inputs<'_>, view: &View, counts: &v1::UnitCounts, state: RolloutState) -> Pace {
    let mut pace = Pace {
        started_at: view.started_at,
        ready_per_minute: 0.0,
        time_left: None,
    };
    let Some(started) = view.started_at else {
        return pace;
    };
    let times = || view.ready_times.iter().filter(|time| **time >= started);
    let Some(last) = times().max() else {
        return pace;
    };
    // A rollout that is over took until its last pod was ready.
    let is_moving = state == RolloutState::Progressing;
    let end = if is_moving { inputs.now } else { *last };
    let seconds = end.duration_since(started).as_secs_f64().max(1.0);
    let ready = u32::try_from(times().count()).unwrap_or(u32::MAX);
    pace.ready_per_minute = f64::from(ready) * 60.0 / seconds;
    // A unit is done when its pod is available, minReadySeconds after it became ready.
    let needed = SignedDuration::from_secs(inputs.workload.min_ready_seconds.max(0));
    let available = times()
        .filter(|time| inputs.now.duration_since(**time) >= needed)
        .count();
    if is_moving && available > 0 {
        let left = f64::from(counts.desired.saturating_sub(counts.done));
        let available = f64::from(u32::try_from(available).unwrap_or(u32::MAX));
        pace.time_left = Some(pbjson_types::Duration {
            seconds: whole_seconds(left * seconds / available),
            nanos: 0,
        });
    }
    pace
}

#[allow(clippy::cast_possible_truncation, reason = "bounded before")]
fn whole_seconds(seconds: f64) -> i64 {
    seconds.ceil().clamp(0.0, 315_576_000.0) as i64
}
