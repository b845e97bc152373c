//! One rollout in detail: its state, what holds it up, what waits, and what comes next.

use std::collections::BTreeMap;

use nodewise_proto::{
    v1::{self, NodeState, RolloutState},
    workload::{DAEMON_SET, REPLICA_SET},
};
use nodewise_status::span;

use super::{FAINT, HEADING, age, budget, images, policy, units, word_of};
use crate::text::{ADD, CHANGE, PLAIN, Page, REMOVE, count, names};

/// The width of the bar of progress, in columns.
const BAR: u32 = 30;

/// The rollout of a workload. `hints` are the commands that may help. `wide` adds each node or pod.
pub(crate) fn render_rollout(page: &mut Page, status: &v1::WorkloadStatus, hints: &[String], wide: bool) {
    let (state, style) = word_of(status);
    let title = format!("{} {}/{} ", status.kind, status.namespace, status.name);
    page.row(&[(HEADING, &title), (style, state)]);
    page.line(2, PLAIN, &status.message);
    page.blank();
    bar(page, status);
    facts(page, status);
    policy::render(page, status);
    render_causes(page, status);
    render_second_owner(page, &status.second_owner);
    waiting(page, status);
    broken_nodes(page, status);
    next(page, status);
    if wide {
        units::render(page, status);
    }
    if !hints.is_empty() {
        page.blank();
        page.line(0, HEADING, "You can");
        for hint in hints {
            page.marked(2, "$", FAINT, PLAIN, hint);
        }
    }
}

/// One line about a change of a rollout.
pub(crate) fn render_line(page: &mut Page, time: &str, status: &v1::WorkloadStatus) {
    let (state, style) = word_of(status);
    let cause = match status.causes.first() {
        // The sentence of a stuck rollout has the cause.
        Some(cause) if status.state() != RolloutState::Stuck => format!(": {}", cause.message),
        _ => String::new(),
    };
    let text = format!("{}{cause}", status.message);
    page.row(&[
        (FAINT, time),
        (PLAIN, " "),
        (style, state),
        (PLAIN, " "),
        (PLAIN, &text),
    ]);
}

/// `[######----] 21 done, 3 blocked, 6 waiting of 30 nodes`.
fn bar(page: &mut Page, status: &v1::WorkloadStatus) {
    let counts = status.counts.unwrap_or_default();
    let parts = [
        (counts.done, "█", ADD, "done"),
        (counts.progressing, "▓", CHANGE, "progressing"),
        (counts.blocked, "✗", REMOVE, "blocked"),
        (counts.waiting, "░", FAINT, "waiting"),
    ];
    let all = parts.iter().map(|(number, ..)| number).sum::<u32>().max(1);
    let mut cells = Vec::new();
    let mut used = 0;
    for (number, sign, style, _) in parts {
        let width = u64::from(number) * u64::from(BAR) / u64::from(all);
        let width = u32::try_from(width).unwrap_or(BAR);
        // What there is, is visible.
        let width = if number > 0 { width.max(1) } else { 0 }.min(BAR - used);
        used += width;
        cells.push((style, sign.repeat(width as usize)));
    }
    let words: Vec<String> = parts
        .iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, _, _, name)| format!("{number} {name}"))
        .collect();
    let unit = unit(status);
    let words = format!(
        "  {} of {}",
        words.join(", "),
        count(counts.desired as usize, unit)
    );
    let mut row: Vec<_> = vec![(PLAIN, "  ")];
    row.extend(cells.iter().map(|(style, text)| (*style, text.as_str())));
    row.push((PLAIN, &words));
    page.row(&row);
}

fn unit(status: &v1::WorkloadStatus) -> &'static str {
    if status.kind == DAEMON_SET { "node" } else { "pod" }
}

/// Strategy and budget, revision and images, rate and time left.
fn facts(page: &mut Page, status: &v1::WorkloadStatus) {
    let mut facts = Vec::new();
    if let Some(strategy) = status
        .strategy
        .as_ref()
        .filter(|strategy| !strategy.r#type.is_empty())
    {
        let used = budget(strategy);
        let used = used.map(|used| format!(", {used}")).unwrap_or_default();
        facts.push(("strategy", format!("{}{used}", strategy.r#type)));
    }
    // A ReplicaSet has one template, and no revision of it.
    let mut revisions = status.revisions.iter().filter(|_| status.kind != REPLICA_SET);
    if let Some(current) = revisions.find(|revision| revision.is_current) {
        let revision = if current.name.is_empty() {
            "not created yet".to_owned()
        } else {
            format!("{} ({})", current.number, current.name)
        };
        let started = age(status.started_at, status.observed_at);
        let started = started
            .map(|age| format!(", since {age} ago"))
            .unwrap_or_default();
        facts.push(("revision", format!("{revision}{started}")));
    }
    let images = images(&status.revisions);
    if !images.is_empty() {
        facts.push(("images", images.join(", ")));
    }
    if status.state() == RolloutState::Progressing && status.ready_per_minute > 0.0 {
        let left = status
            .time_left
            .as_ref()
            .map(|left| format!(", about {} left", span(left.seconds)));
        facts.push((
            "rate",
            format!(
                "{:.1} a minute{}",
                status.ready_per_minute,
                left.unwrap_or_default()
            ),
        ));
    }
    for (name, value) in facts {
        page.marked(2, &format!("{name:9}"), FAINT, PLAIN, &value);
    }
}

/// What holds up the rollout: a line for each cause.
pub(crate) fn render_causes(page: &mut Page, status: &v1::WorkloadStatus) {
    if status.causes.is_empty() {
        return;
    }
    page.blank();
    page.line(0, HEADING, "Blocked");
    for cause in &status.causes {
        let units = cause.units.len() + cause.more_units as usize;
        let on = match units {
            0 => String::new(),
            1..4 => format!("{}: ", cause.units.join(", ")),
            units => format!(
                "{} ({}): ",
                names::shorten(cause.units.iter().map(String::as_str)),
                count(units, unit(status))
            ),
        };
        let since = age(cause.since, status.observed_at);
        let since = since.map(|age| format!("; since {age} ago")).unwrap_or_default();
        let restarts = match cause.restarts {
            0 => String::new(),
            1 => "; restarted once".to_owned(),
            restarts => format!("; restarted {restarts} times"),
        };
        let text = format!("{on}{}{restarts}{since}", cause.message);
        page.marked(2, "✗", REMOVE, PLAIN, &text);
    }
}

/// Warnings about a second controller that works on the workload.
pub(crate) fn render_second_owner(page: &mut Page, sentences: &[String]) {
    if !sentences.is_empty() {
        page.blank();
    }
    for sentence in sentences {
        page.marked(0, "!", CHANGE, PLAIN, sentence);
    }
}

/// The nodes that wait, grouped by their sentence.
fn waiting(page: &mut Page, status: &v1::WorkloadStatus) {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for node in status
        .nodes
        .iter()
        .filter(|node| node.state() == NodeState::Waiting)
    {
        let pods = node.pods.iter().map(|pod| pod.pod_name.as_str());
        let sentence = crate::text::impersonal(&node.message, &node.node_name, pods);
        groups.entry(sentence).or_default().push(&node.node_name);
    }
    if groups.is_empty() {
        return;
    }
    page.blank();
    page.line(0, HEADING, "Waiting");
    for (sentence, nodes) in groups {
        let text = format!(
            "{} ({}): {sentence}",
            names::shorten(nodes.iter().copied()),
            count(nodes.len(), "node")
        );
        page.marked(2, "·", FAINT, PLAIN, &text);
    }
}

/// The nodes with a blocked pod whose own conditions are not as they should be.
fn broken_nodes(page: &mut Page, status: &v1::WorkloadStatus) {
    let is_broken = |node: &&v1::NodeStatus| {
        !node.conditions.is_empty()
            // Those are listed with the policy.
            && !node.rollout_exempt
            && !matches!(node.state(), NodeState::Runs | NodeState::MustNotRun)
    };
    let broken: Vec<&v1::NodeStatus> = status.nodes.iter().filter(is_broken).collect();
    if broken.is_empty() {
        return;
    }
    page.blank();
    page.line(0, HEADING, "Nodes with problems of their own");
    for node in broken.iter().take(10) {
        let conditions = node.conditions.iter().map(|condition| {
            let since = age(condition.since, status.observed_at).map(|age| format!(" for {age}"));
            format!(
                "{} is {}{}",
                condition.r#type,
                condition.status,
                since.unwrap_or_default()
            )
        });
        let text = format!(
            "{}: {}",
            node.node_name,
            conditions.collect::<Vec<_>>().join(", ")
        );
        page.marked(2, "!", CHANGE, PLAIN, &text);
    }
    if broken.len() > 10 {
        page.marked(
            2,
            "!",
            CHANGE,
            PLAIN,
            &format!("and {}", count(broken.len() - 10, "more node")),
        );
    }
}

fn next(page: &mut Page, status: &v1::WorkloadStatus) {
    page.blank();
    page.line(0, HEADING, "Next");
    if status.next.is_empty() {
        let nothing = match status.state() {
            RolloutState::Complete => "nothing to do",
            RolloutState::Stuck => "nothing, until a cause is removed",
            _ => "nothing, until a pod or node changes",
        };
        page.line(2, PLAIN, nothing);
    }
    for sentence in &status.next {
        page.marked(2, "→", FAINT, PLAIN, sentence);
    }
}
