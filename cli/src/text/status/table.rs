//! The table of `nodewise status`.

use nodewise_proto::v1::{self, RolloutState};

use super::{FAINT, age, budget, images, policy, word_of};
use crate::text::{
    CHANGE, PLAIN, Page, REMOVE,
    table::{self, Column, Narrow, Row},
};

/// The columns, and what happens to each on a narrow terminal.
const COLUMNS: [(&str, Narrow); 12] = [
    ("NAMESPACE", Narrow::Shorten),
    ("WORKLOAD", Narrow::Shorten),
    ("STATE", Narrow::Stay),
    ("DONE", Narrow::Stay),
    ("BLOCKED", Narrow::Stay),
    ("WAITING", Narrow::LeaveOut),
    ("BUDGET", Narrow::LeaveOut),
    ("STUCK", Narrow::Stay),
    ("REVISION", Narrow::Note),
    ("IMAGES", Narrow::Note),
    ("WRITER", Narrow::Note),
    ("CAUSE", Narrow::Note),
];
/// The columns of `-o wide`.
const WIDE: std::ops::Range<usize> = 8..11;

/// One row for each workload. `wide` adds revision, images and writer.
pub(crate) fn render_table(page: &mut Page, statuses: &[v1::WorkloadStatus], wide: bool) {
    if statuses.is_empty() {
        page.line(0, PLAIN, "No workloads.");
        return;
    }
    let header = COLUMNS.map(|(name, narrow)| Column { name, narrow });
    let mut header = Vec::from(header);
    let mut rows: Vec<Row> = statuses.iter().map(|status| row(status, wide)).collect();
    if !wide {
        header.drain(WIDE);
        for row in &mut rows {
            row.cells.drain(WIDE);
        }
    }
    table::render(page, 0, &header, &rows);
    let warnings = statuses.iter().flat_map(|status| {
        let name = format!("{} {}/{}", status.kind, status.namespace, status.name);
        let owners = status.second_owner.iter();
        owners.map(move |sentence| format!("{name}: {sentence}"))
    });
    let warnings: Vec<String> = warnings.collect();
    if !warnings.is_empty() {
        page.blank();
    }
    for warning in warnings {
        page.marked(0, "!", CHANGE, PLAIN, &warning);
    }
}

fn row(status: &v1::WorkloadStatus, wide: bool) -> Row {
    let counts = status.counts.unwrap_or_default();
    let (state, style) = word_of(status);
    let plain = if status.state() == RolloutState::Complete {
        FAINT
    } else {
        PLAIN
    };
    let dash = || "-".to_owned();
    let current = status.revisions.iter().find(|revision| revision.is_current);
    let number = current.filter(|revision| revision.number != 0);
    let number = number.map_or_else(String::new, |revision| revision.number.to_string());
    let images = images(&status.revisions).join(", ");
    let writers: Vec<&str> = status
        .writers
        .iter()
        .map(|writer| writer.manager.as_str())
        .collect();
    let writers = writers.join(", ");
    let cause = cause(status);
    let mut notes = Vec::new();
    if let Some(cause) = &cause {
        notes.push(("✗", REMOVE, cause.clone()));
    }
    let waits = status.policy.as_ref().and_then(policy::waits_for);
    let waits = waits.filter(|_| cause.is_none()).map(str::to_owned);
    if let Some(waits) = &waits {
        notes.push(("‖", CHANGE, waits.clone()));
    }
    if wide {
        let parts = [
            ("revision", number.clone()),
            ("images", images.clone()),
            ("writer", writers.clone()),
        ];
        let parts = parts.iter().filter(|(_, value)| !value.is_empty());
        notes.extend(parts.map(|(name, value)| ("", PLAIN, format!("{name} {value}"))));
    }
    let cells = [
        status.namespace.clone(),
        format!("{}/{}", status.kind.to_ascii_lowercase(), status.name),
        state.to_owned(),
        format!("{}/{}", counts.done, counts.desired),
        counts.blocked.to_string(),
        counts.waiting.to_string(),
        status.strategy.as_ref().and_then(budget).unwrap_or_else(dash),
        age(status.stuck_since, status.observed_at).unwrap_or_else(dash),
        if number.is_empty() { dash() } else { number },
        images,
        writers,
        cause.or(waits).unwrap_or_else(dash),
    ];
    let mut cells: Vec<_> = cells.into_iter().map(|cell| (plain, cell)).collect();
    cells[2].0 = style;
    Row { cells, notes }
}

/// `ImagePullBackOff on 3`, and how many other causes there are.
fn cause(status: &v1::WorkloadStatus) -> Option<String> {
    let [first, others @ ..] = status.causes.as_slice() else {
        return None;
    };
    let units = first.units.len() + first.more_units as usize;
    let more = match others.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(match units {
        0 => format!("{}: {}{more}", first.reason, first.message),
        units => format!("{} on {units}{more}", first.reason),
    })
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn stuck() -> v1::WorkloadStatus {
        let image = |tag: &str| vec![format!("agent=registry.example/monitoring/agent:{tag}")];
        let revision = |number: i64, is_current: bool, tag: &str| v1::RevisionStatus {
            number,
            is_current,
            images: image(tag),
            ..v1::RevisionStatus::default()
        };
        v1::WorkloadStatus {
            kind: "DaemonSet".to_owned(),
            namespace: "monitoring".to_owned(),
            name: "prometheus-node-exporter".to_owned(),
            state: RolloutState::Stuck.into(),
            counts: Some(v1::UnitCounts {
                desired: 30,
                done: 21,
                blocked: 3,
                waiting: 6,
                ..v1::UnitCounts::default()
            }),
            strategy: Some(v1::UpdateStrategy {
                r#type: "RollingUpdate".to_owned(),
                max_unavailable: 3,
                unavailable: 3,
                ..v1::UpdateStrategy::default()
            }),
            revisions: vec![revision(2, true, "2"), revision(1, false, "1")],
            causes: vec![v1::BlockCause {
                reason: "ImagePullBackOff".to_owned(),
                units: ["node-1", "node-2", "node-3"].map(str::to_owned).to_vec(),
                ..v1::BlockCause::default()
            }],
            writers: vec![v1::Writer {
                manager: "kube-controller-manager".to_owned(),
                ..v1::Writer::default()
            }],
            ..v1::WorkloadStatus::default()
        }
    }

    fn table(width: usize, wide: bool) -> String {
        let mut page = Page::new(Some(width));
        render_table(&mut page, &[stuck()], wide);
        strip_str(&page.into_text()).to_string()
    }

    #[test]
    fn the_cause_is_shown_on_80_columns() {
        assert_eq!(
            table(80, false),
            "\
NAMESPACE   WORKLOAD                            STATE  DONE   BLOCKED  STUCK
monitoring  daemonset/prometheus-node-exporter  stuck  21/30  3        -
  ✗ ImagePullBackOff on 3
"
        );
        assert!(table(130, false).ends_with("3/3 unavailable  -      ImagePullBackOff on 3\n"));
    }

    #[test]
    fn the_columns_of_wide_are_below_the_row_on_80_columns() {
        let text = table(80, true);
        for part in [
            "✗ ImagePullBackOff on 3",
            "revision 2",
            "images agent: registry.example/monitoring/agent:1 →",
            "writer kube-controller-manager",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 40..200 {
            let text = table(width, false);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}:\n{text}");
            assert!(text.contains("ImagePullBackOff on 3"), "{width}:\n{text}");
        }
    }
}
