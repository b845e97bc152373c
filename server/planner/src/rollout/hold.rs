//! What holds a rollout up whatever its stages say: a pause, too many nodes that are not well, windows, and the pace.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::rollout::{
    decision::{Decision, Observed, outside},
    policy::Spec,
    stages::scaled,
    status::{Begun, State, TargetStatus},
    window,
};

/// Most nodes that a message names.
pub(super) const MOST_NAMED: usize = 3;

/// maxExempt as a number of nodes, if more than that are exempt (L-22).
pub(super) fn too_many(spec: &Spec, exempt: usize, observed: &Observed<'_>) -> Option<usize> {
    let most = scaled(&spec.max_exempt, observed.desired);
    (exempt > most).then_some(most)
}

/// Decides whether running pods may be replaced: not while the policy is paused (L-8), outside of windows (L-33) or with too many
/// nodes that are not well (L-22).
pub(super) fn hold(spec: &Spec, status: &mut TargetStatus, decision: &mut Decision, observed: &Observed<'_>) {
    let is_idle = matches!(status.state, State::Complete | State::Rejected);
    let exempt = decision.nodes.iter().filter(|node| node.is_exempt).count();
    let opens_in = window::opens_in(&spec.windows, observed.now);
    if spec.paused {
        decision.replaces = false;
        if !is_idle {
            status.state = State::Paused;
            "the policy is paused".clone_into(&mut status.message);
        }
    } else if let Some(most) = too_many(spec, exempt, observed) {
        decision.replaces = false;
        if !is_idle {
            status.state = State::TooManyNodesNotReady;
            for node in observed.nodes.iter().filter(|node| node.is_exempt(spec)) {
                status.block(node.name, node.why_exempt());
            }
            let first = status.blocking.iter().take(MOST_NAMED);
            let named: Vec<_> = first.map(|node| node.node.as_str()).collect();
            status.message = format!(
                "{} not ready or in maintenance, and maxExempt is {most}: {}",
                nodes_in_words(exempt),
                named.join(", ")
            );
        }
    } else if opens_in != Some(Duration::ZERO) {
        decision.replaces = false;
        if !is_idle && status.state == State::Progressing {
            status.state = State::OutsideWindow;
            status.message = outside(opens_in, observed.now);
        }
        if let Some(opens_in) = opens_in.filter(|_| !is_idle) {
            decision.again.push((opens_in, "a window opens".to_owned()));
        }
    } else {
        decision.replaces = true;
    }
}

/// How many further nodes may be begun now (L-18). Entries that are older than the interval are dropped.
pub(super) fn pace_left(spec: &Spec, status: &mut TargetStatus, now: Timestamp) -> Option<usize> {
    let Some(pace) = spec.pace else {
        status.pace.clear();
        return None;
    };
    status.pace.retain(|begun| age(begun, now) < pace.interval);
    let begun: usize = status.pace.iter().map(|begun| begun.nodes as usize).sum();
    Some(pace.nodes.saturating_sub(begun))
}

/// When the pace lets further nodes begin, if it lets none now.
pub(super) fn pace_timer(
    spec: &Spec,
    status: &TargetStatus,
    left: Option<usize>,
    now: Timestamp,
) -> Option<(Duration, String)> {
    let pace = spec.pace.filter(|_| left == Some(0))?;
    let oldest = status.pace.iter().map(|begun| age(begun, now)).max()?;
    let left = pace.interval.saturating_sub(oldest);
    Some((left, "the pace lets further nodes begin".to_owned()))
}

/// How long ago it was; a time in the future, after the clock was set back, is now.
fn age(begun: &Begun, now: Timestamp) -> Duration {
    let since = begun
        .time
        .map_or(SignedDuration::MAX, |time| now.duration_since(time));
    since.max(SignedDuration::ZERO).unsigned_abs()
}

/// How many nodes, for people.
pub(super) fn nodes_in_words(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    }
}
