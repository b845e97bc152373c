//! The RolloutPolicy of a rollout: its stages and checks, the approval that is waited for, and the nodes that it leaves alone.

use anstyle::Style;
use nodewise_projection::moment;
use nodewise_proto::v1;

use super::{FAINT, HEADING, age};
use crate::text::{
    ADD, CHANGE, PLAIN, Page, REMOVE, count,
    table::{self, Column, Narrow, Row},
};

/// The most stages that are shown one by one. Further ones that are complete or not begun are counted.
const MAX_STAGES: usize = 12;
/// The most nodes that are named one by one.
const MAX_NODES: usize = 10;

/// The word for the state of a rollout with a policy, and its colour. `None`: the policy adds nothing to the state of the workload.
pub(super) fn word(policy: &v1::PolicyRollout) -> Option<(&'static str, Style)> {
    Some(match policy.state.as_str() {
        "Paused" => ("paused", CHANGE),
        "AwaitingApproval" => ("awaiting approval", CHANGE),
        "Soaking" => ("soaking", CHANGE),
        "Analyzing" => ("analyzing", CHANGE),
        "OutsideWindow" => ("outside window", CHANGE),
        "Partitioned" => ("partitioned", CHANGE),
        "AnalysisHeld" | "TooManyNodesNotReady" | "Invalid" => ("held", REMOVE),
        "RollingBack" => ("rolling back", REMOVE),
        "RolledBack" => ("rolled back", REMOVE),
        "Rejected" => ("rejected", REMOVE),
        _ => return None,
    })
}

/// What the rollout waits for, in a sentence. `None` if it goes on, or is over.
pub(super) fn waits_for(policy: &v1::PolicyRollout) -> Option<&str> {
    let is_waiting = word(policy).is_some() && !policy.message.is_empty();
    is_waiting.then_some(policy.message.as_str())
}

/// All that is known about the policy.
pub(super) fn render(page: &mut Page, status: &v1::WorkloadStatus) {
    let Some(policy) = &status.policy else { return };
    page.blank();
    let (state, style) = word(policy).unwrap_or((policy.state.as_str(), PLAIN));
    let state = state.to_ascii_lowercase();
    page.row(&[
        (HEADING, &format!("RolloutPolicy {} ", policy.name)),
        (style, &state),
    ]);
    let is_said = status.message.contains(&policy.message);
    if !is_said {
        page.line(2, PLAIN, &policy.message);
    }
    if let Some(text) = budget(status, policy) {
        page.line(2, FAINT, &text);
    }
    for other in &policy.others {
        let text = format!("RolloutPolicy {other} targets it as well and does not count");
        page.marked(2, "!", CHANGE, PLAIN, &text);
    }
    if !policy.not_accepted.is_empty() && policy.not_accepted != policy.message {
        page.marked(2, "!", CHANGE, PLAIN, &policy.not_accepted);
    }
    stages(page, &policy.stages, status.observed_at);
    checks(page, &policy.stages, status.observed_at);
    approval(page, status, policy);
    nodes(page, "Exempt", &policy.exempt, policy.more_exempt as usize);
    nodes(page, "Held up by", &policy.blocking, 0);
}

/// The budget of the present stage, as a number of nodes: that of the stage within that of the DaemonSet. `None` if no stage goes on.
fn budget(status: &v1::WorkloadStatus, policy: &v1::PolicyRollout) -> Option<String> {
    let mut stages = policy.stages.iter();
    let stage = stages.find(|stage| stage.started_at.is_some() && stage.state != "Complete")?;
    let strategy = status.strategy.as_ref()?;
    let (field, most, used, what) = match (strategy.max_unavailable, strategy.max_surge) {
        (0, 0) => return None,
        (_, surge @ 1..) => ("maxSurge", surge, strategy.surging, "with two pods"),
        (most, 0) => (
            "maxUnavailable",
            most,
            strategy.unavailable,
            "without an available pod",
        ),
    };
    Some(format!(
        "budget of stage {}: at most {} {what} at a time ({field}), {used} now",
        stage.name,
        count(most as usize, "node")
    ))
}

/// A row for each stage. Of many, the complete ones before and those that have not begun are counted.
fn stages(page: &mut Page, all: &[v1::PolicyStage], now: Option<pbjson_types::Timestamp>) {
    if all.is_empty() {
        return;
    }
    let (shown, before) = window(all);
    let after = all.len() - before - shown.len();
    if before > 0 {
        let text = format!("{} complete", count(before, "stage"));
        page.marked(2, "✓", ADD, FAINT, &text);
    }
    let header = [
        ("", Narrow::Stay),
        ("STAGE", Narrow::Shorten),
        ("STATE", Narrow::Stay),
        ("UPDATED", Narrow::Stay),
        ("AVAILABLE", Narrow::LeaveOut),
        ("EXEMPT", Narrow::LeaveOut),
        ("FAILED", Narrow::Stay),
        ("SOAK", Narrow::Stay),
    ];
    let header = header.map(|(name, narrow)| Column { name, narrow });
    let rows: Vec<Row> = shown.iter().map(|stage| row(stage, now)).collect();
    table::render(page, 2, &header, &rows);
    if after > 0 {
        page.line(2, FAINT, &format!("and {}", count(after, "more stage")));
    }
}

/// The stages to show, and how many complete ones are left out before them.
fn window(all: &[v1::PolicyStage]) -> (&[v1::PolicyStage], usize) {
    if all.len() <= MAX_STAGES {
        return (all, 0);
    }
    let done = all.iter().take_while(|stage| stage.state == "Complete").count();
    // The last complete one stays, so that one sees where the rollout is.
    let first = done.saturating_sub(1).min(all.len() - MAX_STAGES);
    (&all[first..first + MAX_STAGES], first)
}

fn row(stage: &v1::PolicyStage, now: Option<pbjson_types::Timestamp>) -> Row {
    let (sign, word, style) = match stage.state.as_str() {
        "Complete" => ("✓", "complete", ADD),
        "Soaking" => ("▸", "soaking", CHANGE),
        "Progressing" => ("▸", "progressing", CHANGE),
        "Analyzing" => ("▸", "analyzing", CHANGE),
        "AwaitingApproval" => ("‖", "awaiting approval", CHANGE),
        "OutsideWindow" => ("‖", "outside window", CHANGE),
        "Pending" => ("·", "pending", FAINT),
        other => ("·", other, PLAIN),
    };
    let dash = || "-".to_owned();
    let number = |number: u32| if number == 0 { dash() } else { number.to_string() };
    let left = age(now, stage.soak_ends_at).filter(|_| is_later(stage.soak_ends_at, now));
    let soak = match left {
        Some(left) => format!("{left} left"),
        None => dash(),
    };
    let plain = if matches!(stage.state.as_str(), "Complete" | "Pending") {
        FAINT
    } else {
        PLAIN
    };
    let cells = [
        sign.to_owned(),
        stage.name.clone(),
        word.to_owned(),
        format!("{}/{}", stage.updated, stage.nodes),
        stage.available.to_string(),
        number(stage.exempt),
        number(stage.failed),
        soak,
    ];
    let mut cells: Vec<_> = cells.into_iter().map(|cell| (plain, cell)).collect();
    (cells[0].0, cells[2].0) = (style, style);
    if stage.failed > 0 {
        cells[6].0 = REMOVE;
    }
    Row {
        cells,
        notes: Vec::new(),
    }
}

fn is_later(time: Option<pbjson_types::Timestamp>, than: Option<pbjson_types::Timestamp>) -> bool {
    let seconds = |time: Option<pbjson_types::Timestamp>| time.and_then(moment);
    seconds(time) > seconds(than)
}

/// A line for each check of the stages that are not complete, with its last value.
fn checks(page: &mut Page, stages: &[v1::PolicyStage], now: Option<pbjson_types::Timestamp>) {
    let open = stages.iter().filter(|stage| stage.state != "Complete");
    for (stage, check) in open.flat_map(|stage| stage.checks.iter().map(move |check| (stage, check))) {
        let mut parts = vec![format!("{} of {} measured", check.measurements, check.count)];
        let counts = [
            (check.successful, "passed"),
            (check.inconclusive, "inconclusive"),
            (check.errors, "could not be made"),
        ];
        let counts = counts.iter().filter(|(number, _)| *number > 0);
        parts.extend(counts.map(|(number, what)| format!("{number} {what}")));
        if check.failed > 0 {
            parts.push(format!(
                "{} failed (at most {})",
                check.failed, check.failure_limit
            ));
        }
        if !check.value.is_empty() {
            parts.push(format!("last value {}", check.value));
        }
        if !check.message.is_empty() {
            parts.push(check.message.clone());
        }
        let ago = age(check.at, now).map_or_else(String::new, |age| format!(" ({age} ago)"));
        let text = format!(
            "check {} of {}: {}{ago}",
            check.name,
            stage.name,
            parts.join(", ")
        );
        let (sign, style) = if check.failed > 0 {
            ("✗", REMOVE)
        } else {
            ("·", FAINT)
        };
        page.marked(2, sign, style, PLAIN, &text);
    }
}

fn approval(page: &mut Page, status: &v1::WorkloadStatus, policy: &v1::PolicyRollout) {
    let Some(pending) = &policy.pending_approval else {
        return;
    };
    page.blank();
    page.line(0, HEADING, "Approval");
    let since = age(pending.since, status.observed_at);
    let since = since.map_or_else(String::new, |age| format!(" for {age}"));
    let text = format!(
        "stage {} on {} waits{since}; digest {}",
        pending.stage,
        count(pending.nodes as usize, "node"),
        pending.digest
    );
    page.marked(2, "‖", CHANGE, PLAIN, &text);
    if !pending.outdated_digest.is_empty() {
        let text = format!(
            "the policy has an approval of {}, which is not for what this stage would do now",
            pending.outdated_digest
        );
        page.marked(2, "!", CHANGE, PLAIN, &text);
    }
    let command = format!(
        "nodewise rollout approve {}/{} -n {}",
        status.kind.to_ascii_lowercase(),
        status.name,
        status.namespace
    );
    page.marked(2, "$", FAINT, PLAIN, &command);
}

fn nodes(page: &mut Page, title: &str, nodes: &[v1::PolicyNode], more: usize) {
    if nodes.is_empty() {
        return;
    }
    page.blank();
    page.line(0, HEADING, title);
    for node in nodes.iter().take(MAX_NODES) {
        let text = match node.reason.as_str() {
            "" => node.name.clone(),
            reason => format!("{}: {reason}", node.name),
        };
        page.marked(2, "·", FAINT, PLAIN, &text);
    }
    let more = more + nodes.len().saturating_sub(MAX_NODES);
    if more > 0 {
        page.line(2, FAINT, &format!("and {}", count(more, "more node")));
    }
}

/// The policy in a line, for summaries: `RolloutPolicy agents: stage canary soaks until …`.
pub(crate) fn render_policy_line(page: &mut Page, status: &v1::WorkloadStatus, policy: &v1::PolicyRollout) {
    let (state, style) = word(policy).unwrap_or((policy.state.as_str(), PLAIN));
    let state = state.to_ascii_lowercase();
    let message = match policy.message.as_str() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    page.marked(
        0,
        &format!("RolloutPolicy {}", policy.name),
        HEADING,
        style,
        &format!("{state}{message}"),
    );
    if let Some(text) = budget(status, policy) {
        page.line(2, FAINT, &text);
    }
    if let Some(pending) = &policy.pending_approval {
        let text = format!("the digest of stage {} is {}", pending.stage, pending.digest);
        page.line(2, FAINT, &text);
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn stage(name: &str, state: &str) -> v1::PolicyStage {
        v1::PolicyStage {
            name: name.to_owned(),
            state: state.to_owned(),
            nodes: 40,
            ..v1::PolicyStage::default()
        }
    }

    fn status(policy: v1::PolicyRollout) -> v1::WorkloadStatus {
        v1::WorkloadStatus {
            kind: "DaemonSet".to_owned(),
            namespace: "monitoring".to_owned(),
            name: "agent".to_owned(),
            policy: Some(policy),
            ..v1::WorkloadStatus::default()
        }
    }

    fn rendered(status: &v1::WorkloadStatus, width: usize) -> String {
        let mut page = Page::new(Some(width));
        render(&mut page, status);
        strip_str(&page.into_text()).to_string()
    }

    #[test]
    fn of_many_stages_those_around_the_present_one_are_shown() {
        let name = |index: usize| format!("zones/eu-{index:02}");
        let state = |index: usize| match index {
            0..40 => "Complete",
            40 => "Soaking",
            _ => "Pending",
        };
        let stages = (0..100).map(|index| stage(&name(index), state(index)));
        let text = rendered(
            &status(v1::PolicyRollout {
                name: "agents".to_owned(),
                state: "Soaking".to_owned(),
                stages: stages.collect(),
                ..v1::PolicyRollout::default()
            }),
            80,
        );
        for part in [
            "39 stages complete",
            "zones/eu-39",
            "zones/eu-40",
            "and 49 more stages",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        assert!(
            !text.contains("zones/eu-38") && !text.contains("zones/eu-51"),
            "{text}"
        );
    }

    #[test]
    fn no_line_of_a_stage_is_wider_than_the_terminal() {
        let mut failing = stage(
            "a-stage-with-a-long-name/and-the-value-of-a-label",
            "AwaitingApproval",
        );
        (failing.failed, failing.exempt) = (3, 12);
        let status = status(v1::PolicyRollout {
            name: "agents".to_owned(),
            state: "AwaitingApproval".to_owned(),
            stages: vec![failing],
            pending_approval: Some(v1::PolicyApproval {
                stage: "a".to_owned(),
                nodes: 40,
                digest: "0123456789abcdef0123456789abcdef".to_owned(),
                ..v1::PolicyApproval::default()
            }),
            ..v1::PolicyRollout::default()
        });
        for width in 60..200 {
            let text = rendered(&status, width);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}:\n{text}");
            assert!(text.contains("awaiting approval"), "{width}:\n{text}");
        }
        assert!(
            rendered(&status, 200).contains("$ nodewise rollout approve daemonset/agent -n monitoring"),
            "the command is there"
        );
    }
}
