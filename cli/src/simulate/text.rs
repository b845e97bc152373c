//! The text output: what changes, each step as it comes, and the end.

use std::{collections::VecDeque, time::Duration};

use jiff::SignedDuration;
use nodewise_forecast::{Budget, Change, End, Forecast, Step, Verb};

use super::{
    played::Played,
    report::{self, Sample, Subject},
};
use crate::{
    kind::Kind,
    text::{ADD, CHANGE, DIM, ERROR, PLAIN, Page, REMOVE, columns, count, render_warnings},
};

/// The most steps without `--all-steps`, half of them from the end.
const MOST_STEPS: usize = 40;
/// The most names in one line without `--all-steps`.
const MOST_NAMES: usize = 5;
/// The width of the sparkline if there is no terminal.
const WIDTH: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The width of the column of times: `167h59m`.
const TIME_WIDTH: usize = 7;

/// Prints the steps of a play. It holds only the steps that may be among the last ones.
pub(crate) struct Printer<'a> {
    subject: &'a Subject,
    all: bool,
    width: Option<usize>,
    columns: Option<Table>,
    /// The number of steps so far.
    steps: usize,
    /// The last steps that are not printed yet.
    waiting: VecDeque<String>,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(subject: &'a Subject, all: bool, width: Option<usize>) -> Self {
        Self {
            subject,
            all,
            width,
            columns: None,
            steps: 0,
            waiting: VecDeque::new(),
        }
    }

    /// What changes, and what is assumed. A template difference may be shown instead of the changed fields.
    pub(crate) fn begin(&self, differences: &[String]) -> String {
        let mut page = Page::new(self.width);
        header(&mut page, self.subject, differences);
        page.into_text()
    }

    /// Takes a step. Returns what is to be printed now.
    pub(crate) fn step(&mut self, step: &Step) -> String {
        let mut page = Page::new(self.width);
        let table = self.columns.get_or_insert_with(|| {
            let table = Table::of(step);
            page.row(&[(DIM, "  "), (DIM, &table.line(&table.titles()))]);
            table
        });
        self.steps += 1;
        let head = page.into_text();
        let text = table.step(step, self.width, self.all);
        if self.all || self.steps <= MOST_STEPS / 2 {
            return head + &text;
        }
        self.waiting.push_back(text);
        if self.waiting.len() > MOST_STEPS / 2 {
            self.waiting.pop_front();
        }
        head
    }

    /// The last steps, bars over time, and how the play ended.
    pub(crate) fn end(mut self, played: &Played, samples: &[Sample]) -> String {
        let mut page = Page::new(self.width);
        let hidden = hidden(self.steps, self.all);
        if hidden > 0 {
            let text = format!(
                "… {} are left out; --all-steps prints them, and all names",
                count(hidden, "step")
            );
            page.line(2, DIM, &text);
        }
        let mut text = page.into_text();
        text.extend(self.waiting.drain(..));
        let mut page = Page::new(self.width);
        if self.steps > 0 {
            page.blank();
        }
        drawing(&mut page, played, samples, self.width);
        end(&mut page, self.subject, played);
        text + &page.into_text()
    }
}

fn header(page: &mut Page, subject: &Subject, differences: &[String]) {
    if differences.is_empty() && subject.differences.is_empty() {
        page.line(
            2,
            DIM,
            "nothing is changed: this plays what remains of the present rollout",
        );
    }
    for difference in differences {
        page.marked(2, "~", CHANGE, PLAIN, difference);
    }
    let assumed = &subject.assumed;
    let mut text = format!(
        "assumed: a pod is ready after {} ({}), and gone {} after it is deleted ({})",
        time(assumed.pods.ready_after),
        assumed.ready_origin,
        time(assumed.pods.gone_after),
        assumed.gone_origin
    );
    if assumed.pods.failing > 0.0 {
        let failing = percent(assumed.pods.failing);
        let seed = assumed.pods.seed;
        let failing = format!("; {failing}% of the new pods never become ready (seed {seed})");
        text.push_str(&failing);
    }
    page.line(2, DIM, &text);
    for sentence in &assumed.policy {
        page.line(2, DIM, &format!("assumed: {sentence}"));
    }
    page.blank();
}

/// A share as a percentage with at most two digits after the point.
fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The columns of the steps. Whether there is a column for surge is decided by the first step.
struct Table {
    titles: Vec<&'static str>,
    widths: Vec<usize>,
    surges: bool,
}

impl Table {
    fn of(step: &Step) -> Self {
        let surges = step.budget.max_surge > 0;
        let mut titles = vec![
            "time",
            "updated",
            "available",
            "unavailable",
            "at worst",
            "allowed",
        ];
        if surges {
            titles.extend(["surging", "allowed"]);
        }
        // `5/30`, with room for a Deployment's pods that surge.
        let most = step
            .counts
            .desired
            .saturating_add(step.budget.max_surge)
            .to_string()
            .len();
        let parts = 2 * most + 1;
        let least = [TIME_WIDTH, parts, parts, most, most, most, most, most];
        let widths = titles.iter().zip(least);
        let widths = widths.map(|(title, least)| columns(title).max(least)).collect();
        Self {
            titles,
            widths,
            surges,
        }
    }

    fn titles(&self) -> Vec<String> {
        self.titles.iter().map(|title| (*title).to_owned()).collect()
    }

    fn line(&self, cells: &[String]) -> String {
        let cells = cells.iter().zip(&self.widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{}{cell}", " ".repeat(width.saturating_sub(columns(cell)))))
            .collect();
        cells.join("  ")
    }

    fn cells(&self, step: &Step) -> Vec<String> {
        let counts = &step.counts;
        let mut cells = vec![
            time(step.at),
            format!("{}/{}", counts.updated, counts.desired),
            format!("{}/{}", counts.available, counts.desired),
            counts.unavailable.to_string(),
            step.worst_unavailable.to_string(),
            step.budget.max_unavailable.to_string(),
        ];
        if self.surges {
            cells.extend([step.worst_surging.to_string(), step.budget.max_surge.to_string()]);
        }
        cells
    }

    /// A step and its changes. `all`: with every name.
    fn step(&self, step: &Step, width: Option<usize>, all: bool) -> String {
        let mut page = Page::new(width);
        let over = step.worst_unavailable > step.budget.max_unavailable;
        let style = if over { CHANGE } else { PLAIN };
        page.row(&[(PLAIN, "  "), (style, &self.line(&self.cells(step)))]);
        for (marker, text) in groups(&step.changes, all) {
            let style = match marker {
                "+" => ADD,
                "-" => REMOVE,
                _ => CHANGE,
            };
            page.marked(TIME_WIDTH + 4, marker, style, PLAIN, &text);
        }
        page.into_text()
    }
}

/// The number of steps that are not printed.
fn hidden(steps: usize, all: bool) -> usize {
    if all { 0 } else { steps.saturating_sub(MOST_STEPS) }
}

/// The changes of a step, those of the same kind in one line. `all`: with every name.
fn groups(changes: &[Change], all: bool) -> Vec<(&'static str, String)> {
    let most = if all { usize::MAX } else { MOST_NAMES };
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
            if let [change] = group
                && change.verb == Verb::Patch
            {
                return (
                    marker,
                    format!("{verb} {noun} {}: {}", change.name, change.message),
                );
            }
            let name = |change: &Change| match (change.node.as_str(), change.name.as_str()) {
                ("", name) => name.to_owned(),
                (node, _) => node.to_owned(),
            };
            let mut names: Vec<String> = group.iter().take(most).map(name).collect();
            if group.len() > most {
                names.push(format!("{} more", group.len() - most));
            }
            let on = if group[0].node.is_empty() { "" } else { "on " };
            let what = count(group.len(), noun);
            (marker, format!("{verb} {what}: {on}{}", names.join(", ")))
        })
        .collect()
}

/// Bars over time: what is unavailable, what surges, and what is updated.
fn drawing(page: &mut Page, played: &Played, steps: &[Sample], width: Option<usize>) {
    if steps.len() < 2 {
        return;
    }
    let width = width.map_or(WIDTH, |width| width.saturating_sub(16).clamp(20, 100));
    let total = played.forecast.took.as_secs();
    let most = played.forecast.worst_unavailable;
    let line = sparkline(steps, total, width, most, |step| step.worst_unavailable);
    page.row(&[
        (DIM, "  unavailable  "),
        (CHANGE, &line),
        (DIM, &format!(" {most} at most")),
    ]);
    let most = played.forecast.worst_surging;
    if most > 0 {
        let line = sparkline(steps, total, width, most, |step| step.worst_surging);
        page.row(&[
            (DIM, "  surging      "),
            (CHANGE, &line),
            (DIM, &format!(" {most} at most")),
        ]);
    }
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
fn sparkline(
    steps: &[Sample],
    total: u64,
    width: usize,
    most: u32,
    value: impl Fn(&Sample) -> u32,
) -> String {
    let (parts, last) = (width as u64, width - 1);
    let mut bars = vec![0_u32; width];
    let mut next = steps.iter().skip(1).map(|step| step.at.as_secs());
    // The end is at least as late as every step, and steps come in the order of their times.
    let column = |seconds: u64| {
        let column = seconds.saturating_mul(parts) / total.saturating_add(1);
        usize::try_from(column).unwrap_or(last).min(last)
    };
    for step in steps {
        let begin = column(step.at.as_secs());
        let end = next.next().map_or(last, column).max(begin);
        for bar in &mut bars[begin..=end] {
            *bar = value(step).max(if begin == end { *bar } else { 0 });
        }
    }
    let scale = |bar: u32| (u64::from(bar) * 7).div_ceil(u64::from(most.max(1))).min(7) as usize;
    bars.into_iter()
        .map(|bar| if bar == 0 { ' ' } else { BARS[scale(bar)] })
        .collect()
}

fn end(page: &mut Page, subject: &Subject, played: &Played) {
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
    page.line(2, PLAIN, &worst(subject, forecast));
    if forecast.failed_pods > 0 {
        let text = format!(
            "{} never became ready, as assumed",
            count(forecast.failed_pods, "new pod")
        );
        page.line(2, PLAIN, &text);
    }
    render_warnings(page, played.warnings.iter(), played.more_warnings);
}

/// The most that is unavailable and surging at once, and what is allowed.
fn worst(subject: &Subject, forecast: &Forecast) -> String {
    let what = count(forecast.worst_unavailable as usize, subject.noun());
    let Budget {
        max_unavailable,
        max_surge,
    } = forecast.budget;
    let unavailable = format!("at worst {what} without an available pod at once");
    if subject.kind == Kind::ReplicaSet {
        return unavailable;
    }
    let surging = forecast.worst_surging;
    let surge = match subject.kind {
        _ if max_surge == 0 => String::new(),
        Kind::DaemonSet => format!(
            "; {} with a second pod at once; maxSurge allows {max_surge}",
            count(surging as usize, "node")
        ),
        _ => format!(
            "; {} beyond the replicas at once; maxSurge allows {max_surge}",
            count(surging as usize, "pod")
        ),
    };
    format!("{unavailable}; maxUnavailable allows {max_unavailable}{surge}")
}

/// A duration such as `1m 30s`.
pub(crate) fn time(duration: Duration) -> String {
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
    fn a_step_has_some_of_its_names_or_all() {
        let changes: Vec<Change> = (1..=7)
            .map(|number| Change {
                verb: Verb::Delete,
                resource: "pods",
                name: format!("agent-{number}"),
                node: format!("node-{number}"),
                reason: None,
                message: String::new(),
            })
            .collect();
        assert_eq!(
            groups(&changes, false),
            [(
                "-",
                "delete 7 pods: on node-1, node-2, node-3, node-4, node-5, 2 more".to_owned()
            )]
        );
        assert_eq!(
            groups(&changes, true),
            [(
                "-",
                "delete 7 pods: on node-1, node-2, node-3, node-4, node-5, node-6, node-7".to_owned()
            )]
        );
    }

    #[test]
    fn long_plays_show_their_begin_and_their_end() {
        assert_eq!(hidden(40, false), 0);
        assert_eq!(hidden(41, false), 1);
        assert_eq!(hidden(1_000, true), 0);
    }
}
