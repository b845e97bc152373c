//! Groups blocked units by cause.

use std::collections::BTreeMap;

use nodewise_projection::timestamp;
use nodewise_proto::{
    Timestamp,
    v1::{self, RolloutState},
};

use crate::units::{self, Cause, Progress, Unit};

/// The most names of units in a cause.
const MAX_UNITS: usize = 100;

/// Blocked units, with their names.
type Blocked<'a> = Vec<(&'a str, &'a Cause)>;

/// The causes, that with the most units first. A refusal that no unit shows, because no unit exists, is a cause of its own.
pub(crate) fn of(units: &[Unit], refusal: Option<&v1::Refusal>) -> Vec<v1::BlockCause> {
    let mut groups: BTreeMap<(&str, &str), Blocked<'_>> = BTreeMap::new();
    for unit in units {
        if let Progress::Blocked(cause) = &unit.progress {
            let problem = &cause.problem;
            let key = (&*problem.reason, &*problem.container);
            groups.entry(key).or_default().push((&unit.name, cause));
        }
    }
    let mut causes: Vec<v1::BlockCause> = groups.values().map(|blocked| group(blocked)).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.units.len() + cause.more_units as usize));
    let is_shown = causes.iter().any(|cause| cause.reason == units::CREATE_REFUSED);
    if let Some(refusal) = refusal.filter(|_| !is_shown) {
        causes.push(group(&[("", &units::refused(refusal))]));
    }
    causes
}

/// The time since which a rollout in this state is stuck.
pub(crate) fn stuck_since(state: RolloutState, causes: &[v1::BlockCause]) -> Option<Timestamp> {
    let since = causes.iter().filter_map(|cause| cause.since);
    since
        .min_by_key(|since| (since.seconds, since.nanos))
        .filter(|_| state == RolloutState::Stuck)
}

/// One cause with its units, and the message of most of them. A unit without a name is left out.
fn group(blocked: &[(&str, &Cause)]) -> v1::BlockCause {
    let (first, messages) = typical(blocked);
    let mut names: Vec<&str> = blocked
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    let since = blocked.iter().filter_map(|(_, cause)| cause.since).min();
    let restarts = blocked.iter().map(|(_, cause)| cause.problem.restarts).max();
    v1::BlockCause {
        reason: first.problem.reason.clone(),
        message: match messages {
            1 => first.problem.message.clone(),
            2 => format!("{} (and 1 other message)", first.problem.message),
            _ => format!("{} (and {} other messages)", first.problem.message, messages - 1),
        },
        container: first.problem.container.clone(),
        more_units: u32::try_from(names.len().saturating_sub(MAX_UNITS)).unwrap_or(u32::MAX),
        units: names.into_iter().take(MAX_UNITS).map(str::to_owned).collect(),
        since: since.map(timestamp),
        restarts: restarts.unwrap_or_default(),
        last_exit: first.problem.last_exit.clone(),
    }
}

/// The cause with the message that most of them have, and how many different messages there are.
fn typical<'a>(blocked: &[(&str, &'a Cause)]) -> (&'a Cause, usize) {
    let mut messages: BTreeMap<&str, (usize, &Cause)> = BTreeMap::new();
    for (_, cause) in blocked {
        let entry = messages.entry(&cause.problem.message).or_insert((0, cause));
        entry.0 += 1;
    }
    let most = messages.values().max_by_key(|(count, _)| *count);
    (most.map_or(blocked[0].1, |(_, cause)| cause), messages.len())
}
