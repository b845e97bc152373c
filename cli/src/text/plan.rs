//! Renders plans as text: what is created, changed and deleted, and why.

mod line;
mod summary;

use std::collections::BTreeMap;

use nodewise_proto::v1::{self, PhaseKind, action::Kind};

use self::{
    line::{GroupKey, Line},
    summary::summary,
};
use super::{BOLD, DIM, ERROR, PLAIN, Page, count, impersonal, names, render_warnings};

/// Groups of at most this size have a line per action.
const MAX_SINGLE_LINES: usize = 3;

/// One workload and its plan.
pub(crate) struct Planned<'a> {
    /// `DaemonSet kube-system/fluentd`.
    pub(crate) title: String,
    /// `DaemonSet`.
    pub(crate) kind: &'static str,
    pub(crate) plan: &'a v1::Plan,
    /// The present status of a DaemonSet.
    pub(crate) status: v1::DaemonSetStatus,
}

/// Whether a plan has any action other than emitting Events.
pub(crate) fn changes_something(plan: &v1::Plan) -> bool {
    plan.actions()
        .any(|action| !matches!(action.kind, Some(Kind::EmitEvent(_)) | None))
}

/// What an action does, without its reason: `scale ReplicaSet web-5d4f to 5`.
pub(crate) fn what(action: &v1::Action) -> String {
    Line::of(action, &v1::DaemonSetStatus::default()).what()
}

/// Renders all plans and a summary.
pub(crate) fn render(page: &mut Page, planned: &[Planned<'_>]) {
    for one in planned {
        render_one(page, one);
        page.blank();
    }
    page.line(0, BOLD, &summary(planned));
}

/// Renders a plan without a summary.
pub(crate) fn render_one(page: &mut Page, planned: &Planned<'_>) {
    let plan = planned.plan;
    let verdict = match plan.verdict() {
        v1::Verdict::Stale => ": the snapshot is older than the controller's own writes",
        v1::Verdict::StatusOnly => ": waits for earlier creates and deletes to be seen",
        _ if plan.phases.is_empty() => ": nothing to do",
        _ => "",
    };
    page.line(0, BOLD, &format!("{}{verdict}", planned.title));
    if let Some(line) = plan.rollout.as_ref().map(rollout) {
        page.line(2, DIM, &line);
    }
    for phase in &plan.phases {
        render_phase(page, phase, &planned.status);
    }
    if !plan.error.is_empty() {
        page.marked(2, "!", ERROR, PLAIN, &format!("error: {}", plan.error));
    }
    render_warnings(page, plan.warnings.iter(), plan.more_warnings);
    if let Some(delay) = &plan.requeue_after {
        page.line(
            2,
            DIM,
            &format!("plan again {}: {}", when(delay), plan.requeue_reason),
        );
    }
    let deviations: Vec<String> = plan
        .deviations()
        .filter(|one| changes_actions(*one))
        .map(deviation)
        .collect();
    if !deviations.is_empty() {
        page.line(
            2,
            DIM,
            &format!("unlike the built-in controller: {}", deviations.join(", ")),
        );
    }
}

/// `revision 3 (6b9f7c): 300 nodes, 180 outdated, 3 of at most 10 unavailable`.
fn rollout(rollout: &v1::Rollout) -> String {
    let mut parts = vec![count(rollout.desired as usize, "node")];
    if rollout.outdated > 0 {
        parts.push(format!("{} outdated", rollout.outdated));
    }
    if rollout.max_unavailable > 0 {
        parts.push(format!(
            "{} unavailable (at most {})",
            rollout.unavailable, rollout.max_unavailable
        ));
    }
    if rollout.max_surge > 0 {
        parts.push(format!(
            "{} surging (at most {})",
            rollout.surging, rollout.max_surge
        ));
    }
    format!(
        "revision {} ({}): {}",
        rollout.current_revision,
        rollout.current_hash,
        parts.join(", ")
    )
}

fn when(delay: &nodewise_proto::Duration) -> String {
    if *delay == nodewise_proto::Duration::default() {
        "at once".to_owned()
    } else {
        format!("in {}", duration(delay))
    }
}

/// In milliseconds, or in seconds from ten seconds on.
fn duration(duration: &nodewise_proto::Duration) -> String {
    let millis = i64::from(duration.nanos / 1_000_000);
    let rounded = if duration.seconds < 10 {
        jiff::SignedDuration::from_millis(duration.seconds.saturating_mul(1_000).saturating_add(millis))
    } else {
        jiff::SignedDuration::from_secs(duration.seconds)
    };
    format!("{rounded:#}")
}

/// Whether a deviation changes which actions a plan has. The other ones change only their form, in every plan that creates or
/// deletes pods.
fn changes_actions(deviation: v1::Deviation) -> bool {
    !matches!(
        deviation,
        v1::Deviation::IdempotentCreates | v1::Deviation::DeleteWithUid
    )
}

/// `SKIP_EQUAL_STATUS_WRITES` → `skip equal status writes`.
fn deviation(deviation: v1::Deviation) -> String {
    deviation
        .as_str_name()
        .trim_start_matches("DEVIATION_")
        .replace('_', " ")
        .to_lowercase()
}

/// Renders the actions of a phase, grouped by kind and reason.
fn render_phase(page: &mut Page, phase: &v1::Phase, old: &v1::DaemonSetStatus) {
    if phase.kind() == PhaseKind::Failure {
        page.line(2, DIM, "if a write above fails: write the error into the status");
        return;
    }
    let mut groups: BTreeMap<GroupKey, Vec<&v1::Action>> = BTreeMap::new();
    for action in phase.batches.iter().flat_map(|batch| &batch.actions) {
        groups.entry(GroupKey::of(action)).or_default().push(action);
    }
    for actions in groups.values() {
        if actions.len() <= MAX_SINGLE_LINES {
            for action in actions {
                let line = Line::of(action, old);
                page.marked(2, line.marker, line.style, PLAIN, &line.with_reason(action));
            }
        } else {
            render_group(page, actions, old);
        }
    }
    if phase.batches.len() > 1 && matches!(phase.kind(), PhaseKind::Creates | PhaseKind::Deletes) {
        let sizes: Vec<String> = phase
            .batches
            .iter()
            .map(|batch| batch.actions.len().to_string())
            .collect();
        page.line(4, DIM, &format!("in slow-start batches of {}", sizes.join(", ")));
    }
}

/// Renders a group of actions as one line.
fn render_group(page: &mut Page, actions: &[&v1::Action], old: &v1::DaemonSetStatus) {
    let line = Line::of(actions[0], old);
    let names = actions.iter().filter_map(|action| subject(action));
    // The apiserver may choose the names.
    let names = names::shorten(names.filter(|name| !name.is_empty()));
    let names = if names.is_empty() {
        names
    } else {
        format!(" ({names})")
    };
    let what = format!("{} {}{names}", line.verb, count(actions.len(), line.noun));
    let mut reasons: Vec<String> = actions.iter().map(|action| general_reason(action)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    match reasons.as_slice() {
        [reason] => page.marked(2, line.marker, line.style, PLAIN, &format!("{what}: {reason}")),
        several => {
            page.marked(
                2,
                line.marker,
                line.style,
                PLAIN,
                &format!("{what}, for example:"),
            );
            for reason in several.iter().take(MAX_SINGLE_LINES) {
                page.line(6, DIM, reason);
            }
        }
    }
}

/// The name of an action in the list of a group: the node for creates and deletes of pods of a DaemonSet, otherwise the object.
fn subject(action: &v1::Action) -> Option<&str> {
    match action.kind.as_ref()? {
        Kind::CreatePod(create) if create.node_name.is_empty() => Some(&create.pod_name),
        Kind::CreatePod(create) => Some(&create.node_name),
        Kind::DeletePod(delete) if action.reason() == v1::Reason::TooManyPods => {
            delete.pod.as_ref().map(|pod| pod.name.as_str())
        }
        Kind::DeletePod(delete) => Some(&delete.node_name),
        Kind::AdoptPod(adopt) => adopt.pod.as_ref().map(|pod| pod.name.as_str()),
        Kind::ReleasePod(release) => release.pod.as_ref().map(|pod| pod.name.as_str()),
        Kind::RelabelPod(relabel) => relabel.pod.as_ref().map(|pod| pod.name.as_str()),
        Kind::EmitEvent(event) => Some(&event.reason),
        _ => None,
    }
}

/// The message of an action without the names of its node and pod.
fn general_reason(action: &v1::Action) -> String {
    let (node, pod) = match &action.kind {
        Some(Kind::CreatePod(create)) => (create.node_name.as_str(), create.pod_name.as_str()),
        Some(Kind::DeletePod(delete)) => (
            delete.node_name.as_str(),
            delete.pod.as_ref().map_or("", |pod| pod.name.as_str()),
        ),
        _ => ("", subject(action).unwrap_or_default()),
    };
    impersonal(&action.message, node, [pod])
}

#[cfg(test)]
mod tests;
