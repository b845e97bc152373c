//! Renders the status of workloads: a table with a row for each, or one rollout in detail.

mod details;
mod policy;
mod table;
mod units;

pub(crate) use details::{render_causes, render_line, render_rollout, render_second_owner};
pub(crate) use policy::render_policy_line;
pub(crate) use table::render_table;

use anstyle::Style;
use jiff::Timestamp;
use nodewise_projection::moment;
use nodewise_proto::v1::{self, RolloutState};
use nodewise_status::span;

use super::{ADD, BOLD, CHANGE, DIM, PLAIN, REMOVE};

/// The word for a state, and its colour.
pub(crate) fn word(state: RolloutState) -> (&'static str, Style) {
    match state {
        RolloutState::Complete => ("complete", ADD),
        RolloutState::Paused => ("paused", CHANGE),
        RolloutState::WaitingForDelete => ("waiting for delete", CHANGE),
        RolloutState::Progressing => ("progressing", CHANGE),
        RolloutState::Stuck => ("stuck", REMOVE),
        RolloutState::Unspecified => ("unknown", PLAIN),
    }
}

/// The word for how a rollout is, and its colour: what its policy waits for, or else the state.
pub(crate) fn word_of(status: &v1::WorkloadStatus) -> (&'static str, Style) {
    let policy = status.policy.as_ref().and_then(policy::word);
    // That pods cannot become available says more than that the policy waits.
    let policy = policy.filter(|(_, style)| status.state() != RolloutState::Stuck || *style == REMOVE);
    policy.unwrap_or_else(|| word(status.state()))
}

/// `3/3 unavailable` or `1/2 surge`: how much of the budget is in use. `None` if there is no budget.
pub(crate) fn budget(strategy: &v1::UpdateStrategy) -> Option<String> {
    let part = |used: u32, limit: u32, name: &str| format!("{used}/{limit} {name}");
    Some(match (strategy.max_unavailable, strategy.max_surge) {
        (0, 0) => return None,
        (limit, 0) => part(strategy.unavailable, limit, "unavailable"),
        (0, limit) => part(strategy.surging, limit, "surge"),
        (unavailable, surge) => format!(
            "{}, {}",
            part(strategy.unavailable, unavailable, "unavailable"),
            part(strategy.surging, surge, "surge")
        ),
    })
}

/// The time between two moments as kubectl shows ages: `42s`, `5m`, `3h`, `2d`.
pub(crate) fn age(
    since: Option<pbjson_types::Timestamp>,
    now: Option<pbjson_types::Timestamp>,
) -> Option<String> {
    let (since, now): (Timestamp, Timestamp) = (moment(since?)?, moment(now?)?);
    Some(span(now.duration_since(since).as_secs()))
}

/// The images before and after: `agent: v1 → v2`, one for each container whose image differs, or the present images.
pub(crate) fn images(revisions: &[v1::RevisionStatus]) -> Vec<String> {
    let Some(current) = revisions.iter().find(|revision| revision.is_current) else {
        return Vec::new();
    };
    let Some(before) = revisions.iter().find(|revision| !revision.is_current) else {
        return current.images.clone();
    };
    let image = |all: &[String], container: &str| {
        let found = all
            .iter()
            .find_map(|one| one.strip_prefix(container)?.strip_prefix('=').map(str::to_owned));
        found.unwrap_or_else(|| "none".to_owned())
    };
    let containers = current.images.iter().filter_map(|one| one.split_once('='));
    let changed = containers.filter_map(|(container, new)| {
        let old = image(&before.images, container);
        (old != new).then(|| format!("{container}: {old} → {new}"))
    });
    changed.collect()
}

const HEADING: Style = BOLD;
const FAINT: Style = DIM;
