//! Renders a trace as a waterfall diagram with one line per span.

use super::trace::{Row, Trace};
use crate::text::{BOLD, CHANGE, DIM, PLAIN, Page, columns};

/// The width if the terminal's width is not known.
const WIDTH: usize = 110;
/// The smallest width of the bars.
const NARROWEST_BAR: usize = 12;
/// The width of a time: `1234.5 ms`.
const TIME: usize = 10;

/// Renders the trace of the slowest reconcile, or a note that there is none.
pub(super) fn show(page: &mut Page, trace: Option<&Trace>) {
    page.blank();
    let Some(trace) = trace else {
        let text = "No reconcile was traced: OTEL_TRACES_SAMPLER in the environment samples none.";
        page.line(0, BOLD, text);
        return;
    };
    let total = trace.spans.first().map_or(0.0, |root| root.duration_ms);
    page.line(0, BOLD, &format!("The slowest reconcile took {total:.1} ms"));
    page.line(0, DIM, &format!("trace {}{}", trace.id, woken(trace)));
    let labels: Vec<_> = trace.spans.iter().map(label).collect();
    let widest = labels
        .iter()
        .map(|label| columns(label))
        .max()
        .unwrap_or_default();
    let width = page.width().unwrap_or(WIDTH);
    let room = width.saturating_sub(NARROWEST_BAR + TIME + 2);
    let label_width = widest.min(room);
    let bar_width = width.saturating_sub(label_width + TIME + 2).max(NARROWEST_BAR);
    for (row, label) in trace.spans.iter().zip(labels) {
        let label = cut(&label, label_width);
        let gap = " ".repeat(label_width - columns(&label));
        let time = format!("{:>TIME$}", format!("{:.1} ms", row.duration_ms));
        page.row(&[
            (PLAIN, &format!("{label}{gap}")),
            (DIM, &time),
            (CHANGE, &format!("  {}", bar(row, total, bar_width))),
        ]);
    }
}

fn woken(trace: &Trace) -> String {
    match &trace.triggers[..] {
        [] => String::new(),
        [only] => format!(", woken by {only}"),
        [first, others @ ..] => format!(", woken by {first} and {} more", others.len()),
    }
}

/// The label of a span: branches of the tree, name, kind and details.
fn label(row: &Row) -> String {
    let mut label = String::new();
    for (level, last) in row.last.iter().enumerate() {
        label.push_str(match (level + 1 == row.depth, last) {
            (true, true) => "└─ ",
            (true, false) => "├─ ",
            (false, true) => "   ",
            (false, false) => "│  ",
        });
    }
    label.push_str(&row.name);
    if row.kind != "internal" {
        label.extend([" (", row.kind, ")"]);
    }
    if !row.detail.is_empty() {
        label.extend([": ", &row.detail]);
    }
    label
}

/// The bar of a span: its start and duration relative to the trace.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]
fn bar(row: &Row, total: f64, width: usize) -> String {
    let scale = |ms: f64| {
        let share = if total > 0.0 {
            (ms / total).clamp(0.0, 1.0)
        } else {
            0.0
        };
        (share * width as f64).round() as usize
    };
    let from = scale(row.start_ms).min(width - 1);
    let until = scale(row.start_ms + row.duration_ms).clamp(from + 1, width);
    format!("{}{}", " ".repeat(from), "█".repeat(until - from))
}

fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, last: &[bool], start_ms: f64, duration_ms: f64) -> Row {
        Row {
            name: name.to_owned(),
            kind: if name == "rpc" { "client" } else { "internal" },
            depth: last.len(),
            last: last.to_vec(),
            start_ms,
            duration_ms,
            detail: String::new(),
        }
    }

    fn shown(width: usize) -> String {
        let trace = Trace {
            id: "abc".to_owned(),
            triggers: vec!["pods demo/a".to_owned(), "pods demo/b".to_owned()],
            spans: vec![
                row("reconcile", &[], 0.0, 40.0),
                row("rpc", &[false], 0.0, 20.0),
                row(
                    "a span with a name that is far too long for this terminal",
                    &[false, true],
                    10.0,
                    5.0,
                ),
                row("apply", &[true], 20.0, 20.0),
            ],
        };
        let mut page = Page::new(Some(width));
        show(&mut page, Some(&trace));
        anstream::adapter::strip_str(&page.into_text()).to_string()
    }

    #[test]
    fn bars_show_start_and_duration() {
        let expected = "
The slowest reconcile took 40.0 ms
trace abc, woken by pods demo/a and 1 more
reconcile                  40.0 ms  ████████████
├─ rpc (client)            20.0 ms  ██████
│  └─ a span with a nam…    5.0 ms     ██
└─ apply                   20.0 ms        ██████
";
        assert_eq!(shown(48).replace(" \n", "\n"), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [40, 80, 200] {
            for line in shown(width).lines().skip(3) {
                assert!(columns(line) <= width, "{line}");
            }
        }
    }
}
