//! What an applied plan did, in the log.

use std::collections::{BTreeMap, HashMap};

use nodewise_proto::v1::{self, action::Kind};
use nodewise_runtime::apply::Applied;
use nodewise_telemetry::in_short;

/// Logs one line for a plan that wrote more than a status, and with `debug` one line for each action.
pub(super) fn applied(plan: &v1::Plan, applied: &Applied) {
    let results: HashMap<u32, v1::Result> = applied
        .outcomes
        .iter()
        .map(|outcome| (outcome.action_id, outcome.result()))
        .collect();
    let mut done = BTreeMap::<(&str, &str), usize>::new();
    for action in plan.actions() {
        let Some(result) = results.get(&action.id) else {
            continue;
        };
        let (kind, reason) = (action.kind_name(), reason(action));
        tracing::debug!(
            action = kind,
            reason,
            result = result.as_str_name(),
            "{}",
            in_short(&action.message)
        );
        if *result == v1::Result::Succeeded && !is_about_status(action) {
            *done.entry((kind, reason)).or_default() += 1;
        }
    }
    if !done.is_empty() {
        let done = done
            .iter()
            .map(|((kind, reason), count)| format!("{count} {kind} ({reason})"));
        tracing::info!("done: {}", done.collect::<Vec<_>>().join(", "));
    }
}

/// The name of an action's reason, without its prefix.
fn reason(action: &v1::Action) -> &'static str {
    action.reason().as_str_name().trim_start_matches("REASON_")
}

/// Whether an action only tells what the state is.
fn is_about_status(action: &v1::Action) -> bool {
    match &action.kind {
        Some(Kind::UpdateStatus(_) | Kind::EmitEvent(_)) => true,
        Some(Kind::PatchObject(patch)) => patch.subresource == "status",
        _ => false,
    }
}
