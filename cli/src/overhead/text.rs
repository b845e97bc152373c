//! The answer of `nodewise overhead` for people.

use std::collections::BTreeMap;

use super::report::{DaemonSet, Decision, Node, Report};
use crate::text::{ADD, BOLD, CHANGE, DIM, ERROR, PLAIN, Page, columns, count};

/// The space between two columns.
const GAP: usize = 2;
/// The resources with a column of their own.
const COLUMNS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// The number of DaemonSets that would run.
const PODS: &str = "pods";

/// One node in full, or one row for each of several nodes. `wide` shows several nodes in full, too.
pub(super) fn render(page: &mut Page, report: &Report, wide: bool) {
    match report.nodes.as_slice() {
        [node] => render_node(page, report, node),
        nodes if wide => {
            for (index, node) in nodes.iter().enumerate() {
                if index > 0 {
                    page.blank();
                }
                page.line(0, BOLD, &title(index, node));
                render_node(page, report, node);
            }
        }
        nodes => render_nodes(page, nodes),
    }
    render_remarks(page, &report.daemon_sets);
}

fn title(index: usize, node: &Node) -> String {
    match node.name.as_str() {
        "" => format!("node {}", index + 1),
        name => name.to_owned(),
    }
}

fn set_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}/{name}")
    }
}

/// The cells of requests: one for each of [`COLUMNS`], and one for all others.
fn cells(requests: &BTreeMap<String, String>) -> Vec<String> {
    let cell = |name: &&str| requests.get(*name).map_or("-", String::as_str).to_owned();
    let others = requests
        .iter()
        .filter(|(name, _)| !COLUMNS.contains(&name.as_str()) && *name != PODS)
        .map(|(name, amount)| format!("{name}={amount}"));
    let others: Vec<String> = others.collect();
    let others = if others.is_empty() {
        "-".to_owned()
    } else {
        others.join(",")
    };
    COLUMNS.iter().map(cell).chain([others]).collect()
}

fn header(first: &str, second: &str, last: &str) -> Vec<String> {
    [first, second, "CPU", "MEMORY", "STORAGE", "OTHER", last]
        .map(str::to_owned)
        .into()
}

fn render_node(page: &mut Page, report: &Report, node: &Node) {
    let mut rows = vec![(BOLD, header("DAEMONSET", "RUNS", "WHY"))];
    for (decision, set) in node.decisions.iter().zip(&report.daemon_sets) {
        let (style, runs) = match decision {
            _ if decision.rule == "RULE_UNSPECIFIED" => (ERROR, "?"),
            Decision { runs: true, .. } => (ADD, "yes"),
            _ => (DIM, "no"),
        };
        let first = [set_name(&decision.namespace, &decision.name), runs.to_owned()];
        let why = [why(decision)];
        rows.push((
            style,
            first.into_iter().chain(cells(&set.requests)).chain(why).collect(),
        ));
    }
    let pods = node.requests.get(PODS).map_or("0", String::as_str);
    let first = ["sum".to_owned(), pods.to_owned()];
    let remark = if node.is_incomplete {
        "too small: a DaemonSet could not be read"
    } else {
        ""
    };
    let sum = first.into_iter().chain(cells(&node.requests));
    rows.push((BOLD, sum.chain([remark.to_owned()]).collect()));
    render_table(page, &rows);
}

/// The reason, and the labels that could turn it around.
fn why(decision: &Decision) -> String {
    let missing = &decision.missing_labels;
    if missing.is_empty() {
        return decision.message.clone();
    }
    format!(
        "{} (depends on {} of the real node: {})",
        decision.message,
        count(missing.len(), "label"),
        missing.join(", ")
    )
}

fn render_nodes(page: &mut Page, nodes: &[Node]) {
    let mut rows = vec![(BOLD, header("NODE", "PODS", "DEPENDS ON"))];
    for (index, node) in nodes.iter().enumerate() {
        let pods = node.requests.get(PODS).map_or("0", String::as_str);
        let first = [title(index, node), pods.to_owned()];
        let missing = node
            .decisions
            .iter()
            .flat_map(|decision| &decision.missing_labels);
        let mut missing: Vec<&str> = missing.map(String::as_str).collect();
        missing.sort_unstable();
        missing.dedup();
        let last = if node.is_incomplete {
            "incomplete: a DaemonSet could not be read".to_owned()
        } else if missing.is_empty() {
            "-".to_owned()
        } else {
            missing.join(", ")
        };
        let style = if node.is_incomplete { ERROR } else { PLAIN };
        rows.push((
            style,
            first
                .into_iter()
                .chain(cells(&node.requests))
                .chain([last])
                .collect(),
        ));
    }
    render_table(page, &rows);
}

/// Pads the cells. The last one is not wrapped, so that each row is one line.
fn render_table(page: &mut Page, rows: &[(anstyle::Style, Vec<String>)]) {
    let last = rows.first().map_or(0, |(_, row)| row.len() - 1);
    let widths: Vec<usize> = (0..last)
        .map(|column| {
            rows.iter()
                .map(|(_, row)| columns(&row[column]))
                .max()
                .unwrap_or_default()
        })
        .collect();
    for (style, row) in rows {
        let pad = |(cell, width): (&String, &usize)| format!("{cell:width$}{:GAP$}", "");
        let line: String = row.iter().zip(&widths).map(pad).collect();
        let line = line + &row[last];
        page.row(&[(*style, line.trim_end())]);
    }
}

/// What could not be read, and what a template does not tell.
fn render_remarks(page: &mut Page, sets: &[DaemonSet]) {
    let mut notes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for set in sets {
        let name = set_name(&set.namespace, &set.name);
        if !set.error.is_empty() {
            page.marked(0, "!", ERROR, PLAIN, &format!("{name}: {}", set.error));
        }
        for note in &set.notes {
            notes.entry(note).or_default().push(name.clone());
        }
    }
    for (note, names) in notes {
        let shown = match names.as_slice() {
            few if few.len() <= 3 => few.join(", "),
            [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
            _ => String::new(),
        };
        page.marked(0, "!", CHANGE, DIM, &format!("{shown}: {note}"));
    }
}
