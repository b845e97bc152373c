//! The table of `nodewise status`.

use nodewise_projection::moment;
use nodewise_proto::v1::{self, RolloutState};
use nodewise_status::several_writers;

use super::{FAINT, HEADING, age, budget, images, word};
use crate::text::{CHANGE, PLAIN, Page, columns};

/// The space between two columns.
const GAP: &str = "  ";

/// One row for each workload. `wide` adds revision, images and writer.
pub(crate) fn render_table(page: &mut Page, statuses: &[v1::WorkloadStatus], wide: bool) {
    if statuses.is_empty() {
        page.line(0, PLAIN, "No workloads.");
        return;
    }
    let mut header = vec![
        "NAMESPACE",
        "WORKLOAD",
        "STATE",
        "DONE",
        "BLOCKED",
        "WAITING",
        "BUDGET",
        "STUCK",
    ];
    if wide {
        header.extend(["REVISION", "IMAGES", "WRITER"]);
    }
    header.push("CAUSE");
    let header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = statuses.iter().map(|status| row(status, wide)).collect();
    let widths: Vec<usize> = (0..header.len() - 1)
        .map(|column| {
            let cells = rows.iter().map(|row| columns(&row[column]));
            cells.chain([columns(&header[column])]).max().unwrap_or_default()
        })
        .collect();
    let pad = |column: usize, cell: &str| match widths.get(column) {
        Some(width) => format!("{cell:width$}{GAP}"),
        None => cell.to_owned(),
    };
    let header: String = header
        .iter()
        .enumerate()
        .map(|(column, cell)| pad(column, cell))
        .collect();
    page.row(&[(HEADING, header.trim_end())]);
    for (status, row) in statuses.iter().zip(&rows) {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| pad(column, cell))
            .collect();
        let rest = cells[3..].concat();
        let (_, style) = word(status.state());
        let plain = if status.state() == RolloutState::Complete {
            FAINT
        } else {
            PLAIN
        };
        page.row(&[
            (plain, &cells[0]),
            (plain, &cells[1]),
            (style, &cells[2]),
            (plain, cut(&rest, page.width(), &cells[..3])),
        ]);
    }
    let warnings = statuses.iter().filter_map(|status| {
        let name = format!("{} {}/{}", status.kind, status.namespace, status.name);
        let now = moment(status.observed_at?)?;
        Some(format!("{name}: {}", several_writers(&status.writers, now)?))
    });
    let warnings: Vec<String> = warnings.collect();
    if !warnings.is_empty() {
        page.blank();
    }
    for warning in warnings {
        page.marked(0, "!", CHANGE, PLAIN, &warning);
    }
}

/// The part of the last cells that fits into the width.
fn cut<'a>(text: &'a str, width: Option<usize>, before: &[String]) -> &'a str {
    let used: usize = before.iter().map(|cell| columns(cell)).sum();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(used));
    let text = text.trim_end();
    match text.char_indices().nth(room) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn row(status: &v1::WorkloadStatus, wide: bool) -> Vec<String> {
    let counts = status.counts.unwrap_or_default();
    let (state, _) = word(status.state());
    let mut row = vec![
        status.namespace.clone(),
        format!("{}/{}", status.kind.to_ascii_lowercase(), status.name),
        state.to_owned(),
        format!("{}/{}", counts.done, counts.desired),
        counts.blocked.to_string(),
        counts.waiting.to_string(),
        status.strategy.as_ref().map_or_else(|| "-".to_owned(), budget),
        age(status.stuck_since, status.observed_at).unwrap_or_else(|| "-".to_owned()),
    ];
    if wide {
        let current = status.revisions.iter().find(|revision| revision.is_current);
        let number = current.map_or(0, |revision| revision.number);
        row.push(if number == 0 {
            "-".to_owned()
        } else {
            number.to_string()
        });
        row.push(images(&status.revisions).join(", "));
        let writers: Vec<&str> = status
            .writers
            .iter()
            .map(|writer| writer.manager.as_str())
            .collect();
        row.push(writers.join(", "));
    }
    row.push(cause(status));
    row
}

/// `ImagePullBackOff on 3`, and how many other causes there are.
fn cause(status: &v1::WorkloadStatus) -> String {
    let [first, others @ ..] = status.causes.as_slice() else {
        return "-".to_owned();
    };
    let units = first.units.len() + first.more_units as usize;
    let more = match others.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    match units {
        0 => format!("{}: {}{more}", first.reason, first.message),
        units => format!("{} on {units}{more}", first.reason),
    }
}
