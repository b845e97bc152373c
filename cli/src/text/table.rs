//! Tables that fit into the terminal.

use std::{borrow::Cow, iter};

use anstyle::Style;
use nodewise_telemetry::printable;

use super::{BOLD, PLAIN, Page, columns};

/// The space between two columns.
const GAP: usize = 2;
/// The fewest columns of the terminal for a name that is shortened.
const SHORTEST: usize = 12;

/// A column.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) narrow: Narrow,
}

/// What happens to a column if the table is wider than the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Narrow {
    /// It is shown.
    Stay,
    /// It is not shown: the notes of each row say it.
    Note,
    /// If the table is still too wide it is not shown, the first such column first.
    LeaveOut,
    /// If the table is still too wide its cells are shortened, those of the last such column first.
    Shorten,
}

/// A row.
pub(crate) struct Row {
    /// One for each column.
    pub(crate) cells: Vec<(Style, String)>,
    /// Lines below the row if columns of [`Narrow::Note`] have no room, each with its marker.
    pub(crate) notes: Vec<(&'static str, Style, String)>,
}

/// Adds a table. On a terminal no line is longer than that is wide, and what is cut off ends with `…`.
pub(crate) fn render(page: &mut Page, indent: usize, header: &[Column], rows: &[Row]) {
    let rows: Vec<Printable<'_>> = rows.iter().map(Printable::of).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| columns(&row.cells[column].1));
        let name = columns(header[column].name);
        cells.chain(iter::once(name)).max().unwrap_or(name)
    };
    let all: Vec<usize> = (0..header.len()).map(width).collect();
    let room = page
        .width()
        .map_or(usize::MAX, |width| width.saturating_sub(indent));
    let layout = Layout::of(header, all, room);
    let names = header.iter().map(|column| (BOLD, Cow::Borrowed(column.name)));
    layout.row(page, indent, &names.collect::<Vec<_>>());
    for row in &rows {
        layout.row(page, indent, &row.cells);
        if layout.has_notes {
            for (marker, style, note) in row.notes {
                page.marked(indent + GAP, marker, *style, PLAIN, note);
            }
        }
    }
}

/// A row whose cells have no hidden characters, so that their widths are right.
struct Printable<'a> {
    cells: Vec<(Style, Cow<'a, str>)>,
    notes: &'a [(&'static str, Style, String)],
}

impl<'a> Printable<'a> {
    fn of(row: &'a Row) -> Self {
        let cells = row.cells.iter();
        Self {
            cells: cells.map(|(style, cell)| (*style, printable(cell))).collect(),
            notes: &row.notes,
        }
    }
}

/// The columns that are shown.
struct Layout {
    /// The index of each, and its width.
    shown: Vec<(usize, usize)>,
    /// Whether the rows have their notes.
    has_notes: bool,
    /// The columns that a line may take.
    room: usize,
}

impl Layout {
    fn of(header: &[Column], widths: Vec<usize>, room: usize) -> Self {
        let mut layout = Self {
            shown: widths.into_iter().enumerate().collect(),
            has_notes: false,
            room,
        };
        let of_kind = |wanted: Narrow| {
            let all = header.iter().enumerate();
            all.filter(move |(_, column)| column.narrow == wanted)
                .map(|(index, _)| index)
        };
        if layout.excess() > 0 {
            layout.has_notes = true;
            layout
                .shown
                .retain(|(index, _)| header[*index].narrow != Narrow::Note);
        }
        for spare in of_kind(Narrow::LeaveOut) {
            if layout.excess() > 0 {
                layout.shown.retain(|(index, _)| *index != spare);
            }
        }
        for long in of_kind(Narrow::Shorten).collect::<Vec<_>>().into_iter().rev() {
            let excess = layout.excess();
            if let Some((_, width)) = layout.shown.iter_mut().find(|(index, _)| *index == long) {
                *width = width.saturating_sub(excess).max(SHORTEST.min(*width));
            }
        }
        layout
    }

    /// By how much the table is too wide.
    fn excess(&self) -> usize {
        let widths: usize = self.shown.iter().map(|(_, width)| width).sum();
        let gaps = GAP * self.shown.len().saturating_sub(1);
        (widths + gaps).saturating_sub(self.room)
    }

    fn row(&self, page: &mut Page, indent: usize, cells: &[(Style, Cow<'_, str>)]) {
        let mut parts = vec![(PLAIN, " ".repeat(indent))];
        let mut left = self.room;
        for (place, (index, width)) in self.shown.iter().enumerate() {
            let (style, cell) = &cells[*index];
            let cell = cut(cell, (*width).min(left));
            let is_last = place + 1 == self.shown.len();
            let padding = if is_last { 0 } else { width + GAP - columns(&cell) };
            left = left.saturating_sub(width + GAP);
            parts.push((*style, cell));
            parts.push((PLAIN, " ".repeat(padding)));
            if left == 0 {
                break;
            }
        }
        // Without spaces at the end.
        while let Some((_, part)) = parts.last_mut() {
            part.truncate(part.trim_end().len());
            if !part.is_empty() {
                break;
            }
            parts.pop();
        }
        let parts: Vec<(Style, &str)> = parts
            .iter()
            .map(|(style, part)| (*style, part.as_str()))
            .collect();
        page.row(&parts);
    }
}

/// The text in this many columns.
fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    const HEADER: [Column; 4] = [
        Column {
            name: "NAME",
            narrow: Narrow::Shorten,
        },
        Column {
            name: "STATE",
            narrow: Narrow::Stay,
        },
        Column {
            name: "BUDGET",
            narrow: Narrow::LeaveOut,
        },
        Column {
            name: "CAUSE",
            narrow: Narrow::Note,
        },
    ];

    fn table(width: Option<usize>, name: &str) -> String {
        let cells = [name, "stuck", "1/1 unavailable", "ImagePullBackOff on 3"];
        let row = Row {
            cells: cells.map(|cell| (PLAIN, cell.to_owned())).to_vec(),
            notes: vec![("✗", PLAIN, cells[3].to_owned())],
        };
        let mut page = Page::new(width);
        render(&mut page, 0, &HEADER, &[row]);
        strip_str(&page.into_text()).to_string()
    }

    #[test]
    fn what_has_no_room_is_below_left_out_or_shortened() {
        let wide = "\
NAME    STATE  BUDGET           CAUSE
ds/web  stuck  1/1 unavailable  ImagePullBackOff on 3
";
        assert_eq!(table(None, "ds/web"), wide);
        assert_eq!(table(Some(53), "ds/web"), wide);
        assert_eq!(
            table(Some(52), "ds/web"),
            "\
NAME    STATE  BUDGET
ds/web  stuck  1/1 unavailable
  ✗ ImagePullBackOff on 3
"
        );
        assert_eq!(
            table(Some(40), "daemonset/fluentd"),
            "\
NAME               STATE
daemonset/fluentd  stuck
  ✗ ImagePullBackOff on 3
"
        );
        assert_eq!(
            table(Some(40), "daemonset/a-name-with-more-than-40-columns"),
            "\
NAME                               STATE
daemonset/a-name-with-more-than-…  stuck
  ✗ ImagePullBackOff on 3
"
        );
    }

    #[test]
    fn hidden_characters_do_not_move_columns() {
        let table = table(None, "ds/\u{200b}web");
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0].find("STATE"), lines[1].find("stuck"), "{table}");
    }
}
