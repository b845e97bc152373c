//! The text output: what changes, each step, and the end.

use std::time::Duration;

use jiff::SignedDuration;
use nodewise_forecast::{Change, End, Step};

use crate::text::{ADD, BOLD, CHANGE, DIM, ERROR, PLAIN, Page, REMOVE, columns, count};

use super::report::{self, Played};

/// The most steps without `--all-steps`, half of them from the end.
const MOST_STEPS: usize = 40;
/// The most names in one step.
const MOST_NAMES: usize = 5;
/// The width of the sparkline if there is no terminal.
const WIDTH: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn render(played: &Played, all: bool, width: Option<usize>) -> String {
    let mut page = Page::new(width);
    header(&mut page, played);
    steps(&mut page, &played.steps, all);
    drawing(&mut page, played, width);
    end(&mut page, played);
    page.into_text()
}

fn header(page: &mut Page, played: &Played) {
    page.line(0, BOLD, &played.title);
    if played.differences.is_empty() {
        page.line(
            2,
            DIM,
            "nothing is changed: this plays what remains of the present rollout",
        );
    }
    for difference in &played.differences {
        page.marked(2, "~", CHANGE, PLAIN, difference);
    }
    let assumptions = &played.assumptions;
    let mut assumed = format!(
        "assumed: a pod is ready after {} ({}), and gone {} after it is deleted",
        time(played.readiness.after),
        played.readiness.origin(),
        time(assumptions.gone_after)
    );
    if assumptions.failing > 0.0 {
        let failing = percent(assumptions.failing);
        let seed = assumptions.seed;
        let failing = format!("; {failing}% of the new pods never become ready (seed {seed})");
        assumed.push_str(&failing);
    }
    page.line(2, DIM, &assumed);
    page.blank();
}

/// A share as a percentage with at most two digits after the point.
fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn steps(page: &mut Page, steps: &[Step], all: bool) {
    if steps.is_empty() {
        return;
    }
    let title = [
        "time",
        "updated",
        "available",
        "unavailable",
        "at worst",
        "allowed",
    ];
    let rows: Vec<[String; 6]> = steps.iter().map(cells).collect();
    let widths: Vec<usize> = (0..title.len())
        .map(|column| {
            let cells = rows.iter().map(|row| columns(&row[column]));
            cells.chain([columns(title[column])]).max().unwrap_or_default()
        })
        .collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{}{cell}", " ".repeat(width - columns(cell))))
            .collect();
        cells.join("  ")
    };
    page.row(&[(DIM, "  "), (DIM, &line(&title.map(str::to_owned)))]);
    let hidden = hidden(steps.len(), all);
    for (index, (step, row)) in steps.iter().zip(&rows).enumerate() {
        if hidden.contains(&index) {
            if index == hidden.start {
                let text = format!(
                    "… {} are left out; --all-steps prints them",
                    count(hidden.len(), "step")
                );
                page.line(2, DIM, &text);
            }
            continue;
        }
        let over = step.worst_unavailable > step.budget.max_unavailable;
        let style = if over { CHANGE } else { PLAIN };
        page.row(&[(PLAIN, "  "), (style, &line(row))]);
        for (marker, text) in groups(&step.changes) {
            let style = match marker {
                "+" => ADD,
                "-" => REMOVE,
                _ => CHANGE,
            };
            page.marked(widths[0] + 4, marker, style, PLAIN, &text);
        }
    }
    page.blank();
}

/// The indices of the steps that are not printed.
fn hidden(steps: usize, all: bool) -> std::ops::Range<usize> {
    if all || steps <= MOST_STEPS {
        0..0
    } else {
        MOST_STEPS / 2..steps - MOST_STEPS / 2
    }
}

fn cells(step: &Step) -> [String; 6] {
    let counts = &step.counts;
    [
        time(step.at),
        format!("{}/{}", counts.updated, counts.desired),
        format!("{}/{}", counts.available, counts.desired),
        counts.unavailable.to_string(),
        step.worst_unavailable.to_string(),
        step.budget.max_unavailable.to_string(),
    ]
}

/// The changes of a step, those of the same kind in one line.
fn groups(changes: &[Change]) -> Vec<(&'static str, String)> {
    let is_same = |a: &Change, b: &Change| (a.verb, a.resource) == (b.verb, b.resource);
    changes
        .chunk_by(is_same)
        .map(|group| {
            let verb = report::verb(group[0].verb);
            let marker = match verb {
                "create" => "+",
                "delete" => "-",
                _ => "~",
            };
            let noun = group[0].resource.trim_end_matches('s');
            let name = |change: &Change| match (change.node.as_str(), change.name.as_str()) {
                ("", name) => name.to_owned(),
                (node, _) => node.to_owned(),
            };
            let mut names: Vec<String> = group.iter().take(MOST_NAMES).map(name).collect();
            if group.len() > MOST_NAMES {
                names.push(format!("{} more", group.len() - MOST_NAMES));
            }
            let on = if group[0].node.is_empty() { "" } else { "on " };
            let what = count(group.len(), noun);
            (marker, format!("{verb} {what}: {on}{}", names.join(", ")))
        })
        .collect()
}

/// Bars of the unavailable nodes over time, and of what is updated at the end.
fn drawing(page: &mut Page, played: &Played, width: Option<usize>) {
    let steps = &played.steps;
    if steps.len() < 2 {
        return;
    }
    let width = width.map_or(WIDTH, |width| width.saturating_sub(16).clamp(20, 100));
    let total = played.forecast.took.as_secs();
    let worst = |step: &Step| step.worst_unavailable;
    let most = played.forecast.worst_unavailable;
    let line = sparkline(steps, total, width, most, worst);
    page.row(&[
        (DIM, "  unavailable  "),
        (CHANGE, &line),
        (DIM, &format!(" {most} at most")),
    ]);
    let desired = steps
        .iter()
        .map(|step| step.counts.desired)
        .max()
        .unwrap_or_default();
    let line = sparkline(steps, total, width, desired, |step| step.counts.updated);
    page.row(&[
        (DIM, "  updated      "),
        (ADD, &line),
        (DIM, &format!(" of {desired}")),
    ]);
    page.blank();
}

/// A bar for each part of the time: the greatest value in it.
fn sparkline(steps: &[Step], total: u64, width: usize, most: u32, value: impl Fn(&Step) -> u32) -> String {
    let parts = width as u64;
    let mut bars = vec![0_u32; width];
    let mut next = steps.iter().skip(1).map(|step| step.at.as_secs());
    for step in steps {
        let column = |seconds: u64| usize::try_from((seconds * parts) / (total + 1)).unwrap_or(width - 1);
        let begin = column(step.at.as_secs());
        let end = next.next().map_or(width - 1, column);
        for bar in &mut bars[begin..=end.min(width - 1)] {
            *bar = value(step).max(if begin == end { *bar } else { 0 });
        }
    }
    let scale = |bar: u32| (u64::from(bar) * 7).div_ceil(u64::from(most.max(1))).min(7) as usize;
    bars.into_iter()
        .map(|bar| if bar == 0 { ' ' } else { BARS[scale(bar)] })
        .collect()
}

fn end(page: &mut Page, played: &Played) {
    let forecast = &played.forecast;
    let (took, steps) = (time(forecast.took), count(forecast.steps, "step"));
    match &forecast.end {
        End::Done => page.marked(0, "done", ADD, PLAIN, &format!("after {took}, in {steps}")),
        End::Stuck { cause, blocking } => {
            page.marked(
                0,
                "stuck",
                ERROR,
                PLAIN,
                &format!("after {took}, in {steps}: {cause}"),
            );
            for pod in blocking {
                page.line(2, PLAIN, &format!("not ready: {pod}"));
            }
        }
        End::Bound(limit) => {
            let text = format!("{} is reached after {took}, in {steps}", report::bound(*limit));
            page.marked(0, "not done", CHANGE, PLAIN, &text);
        }
        End::Cancelled => page.marked(0, "cancelled", ERROR, PLAIN, &format!("after {took}, in {steps}")),
    }
    let allowed = forecast.budget.max_unavailable;
    let worst = format!(
        "at worst {} without an available pod at once; maxUnavailable allows {allowed}",
        count(forecast.worst_unavailable as usize, "node")
    );
    page.line(2, PLAIN, &worst);
    if forecast.failed_pods > 0 {
        let text = format!(
            "{} never became ready, as assumed",
            count(forecast.failed_pods, "new pod")
        );
        page.line(2, PLAIN, &text);
    }
}

/// A duration such as `1m 30s`.
pub(super) fn time(duration: Duration) -> String {
    let whole = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let round = if duration.as_secs() >= 1 {
        whole.as_secs()
    } else {
        0
    };
    if round == 0 && !duration.is_zero() {
        return format!("{}ms", duration.as_millis());
    }
    let (hours, minutes, seconds) = (round / 3_600, round / 60 % 60, round % 60);
    match (hours, minutes, seconds) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, 0) => format!("{minutes}m"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, 0, 0) => format!("{hours}h"),
        (hours, minutes, 0) => format!("{hours}h{minutes}m"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (millis, expected) in [
            (0, "0s"),
            (250, "250ms"),
            (59_000, "59s"),
            (60_000, "1m"),
            (90_000, "1m30s"),
            (3_600_000, "1h"),
            (3_661_000, "1h1m1s"),
        ] {
            assert_eq!(time(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn long_plays_show_their_begin_and_their_end() {
        assert_eq!(hidden(40, false), 0..0);
        assert_eq!(hidden(41, false), 20..21);
        assert_eq!(hidden(1_000, true), 0..0);
    }
}
