//! What views that fill the terminal have in common: texts that are wrapped and scrolled, and keys.

use ansi_to_tui::IntoText as _;
use anstream::adapter::strip_str;
use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind};
use futures::StreamExt as _;
use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span, StyledGrapheme, Text},
    widgets::{Paragraph, Scrollbar, ScrollbarOrientation, ScrollbarState},
};

/// Rows of a page.
const PAGE: i32 = 10;

/// Whether the terminal shows colours.
pub(crate) fn has_colours() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// The next press of a key. `None` for other events: the caller draws again.
pub(crate) async fn next_key(keys: &mut EventStream) -> anyhow::Result<Option<KeyEvent>> {
    let event = keys.next().await.context("the terminal was closed")?;
    Ok(match event.context("cannot read from the terminal")? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(key),
        _ => None,
    })
}

/// By how many rows a key scrolls.
pub(crate) fn scrolled_by(key: KeyEvent) -> Option<i32> {
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => Some(-1),
        KeyCode::Down | KeyCode::Char('j') => Some(1),
        KeyCode::PageUp => Some(-PAGE),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(PAGE),
        KeyCode::Home | KeyCode::Char('g') => Some(i32::MIN),
        KeyCode::End | KeyCode::Char('G') => Some(i32::MAX),
        _ => None,
    }
}

/// The position after a scroll. [`draw_scrolled`] keeps it inside the text.
pub(crate) fn moved(scroll: u16, rows: i32) -> u16 {
    let moved = i32::from(scroll).saturating_add(rows);
    u16::try_from(moved.max(0)).unwrap_or(u16::MAX)
}

/// A text with ANSI styles.
pub(crate) fn styled(text: &str, colours: bool) -> Text<'static> {
    let plain = || Text::from(strip_str(text).to_string());
    if colours {
        text.into_text().unwrap_or_else(|_| plain())
    } else {
        plain()
    }
}

/// Draws a text from the row `scroll` on. Lines are wrapped: nothing is cut off at the right. There is a bar if the text does not fit.
pub(crate) fn draw_scrolled(frame: &mut Frame<'_>, area: Rect, text: &Text<'_>, scroll: &mut u16) {
    let inner = Rect {
        width: area.width.saturating_sub(1),
        ..area
    };
    let text = wrapped(text, inner.width.into());
    let hidden = text.lines.len().saturating_sub(area.height.into());
    let most = u16::try_from(hidden).unwrap_or(u16::MAX);
    *scroll = (*scroll).min(most);
    // Not `Paragraph::scroll`: it would walk over all lines before the first that is shown.
    let shown = text.lines.into_iter().skip((*scroll).into());
    let shown: Vec<Line<'_>> = shown.take(area.height.into()).collect();
    frame.render_widget(Paragraph::new(shown), inner);
    if most > 0 {
        let mut state = ScrollbarState::new(most.into()).position((*scroll).into());
        let bar = Scrollbar::new(ScrollbarOrientation::VerticalRight)
            .begin_symbol(None)
            .end_symbol(None);
        frame.render_stateful_widget(bar, area, &mut state);
    }
}

/// The text in lines of at most this many columns. Lines are broken at spaces, and words that are longer than a line anywhere. No other
/// character than the space at a break is left out. A line goes on below its own text, so that the rest does not look like a new line.
pub(crate) fn wrapped(text: &Text<'_>, width: usize) -> Text<'static> {
    let width = width.max(1);
    let mut lines = Vec::with_capacity(text.lines.len());
    for line in &text.lines {
        let cells: Vec<StyledGrapheme<'_>> = line.styled_graphemes(text.style).collect();
        let indent = indentation(&cells);
        let (mut rest, mut lead) = (&cells[..], 0);
        loop {
            let least = if lead == 0 { indent } else { 0 };
            let (end, next) = first_line(rest, width - lead, least);
            lines.push(row(lead, &rest[..end]));
            rest = &rest[next..];
            if rest.is_empty() {
                break;
            }
            lead = indent.min(width / 2);
        }
    }
    Text::from(lines)
}

/// The columns before the text of a line: its spaces, and a sign such as `-` or `✗` with the spaces behind it.
fn indentation(cells: &[StyledGrapheme<'_>]) -> usize {
    let spaces = |from: usize| cells[from..].iter().take_while(|cell| is_space(cell)).count();
    let before = spaces(0);
    let is_sign = |cell: &StyledGrapheme<'_>| !cell.symbol.contains(char::is_alphanumeric);
    match cells.get(before) {
        Some(sign) if is_sign(sign) => match spaces(before + 1) {
            0 => before,
            behind => before + 1 + behind,
        },
        _ => before,
    }
}

/// How many cells of the rest of a line are in its first line of `room` columns, and where the next line begins. It is not broken at one of
/// the `least` first cells, which are the indentation.
fn first_line(rest: &[StyledGrapheme<'_>], room: usize, least: usize) -> (usize, usize) {
    let mut used = 0;
    let fitting = rest.iter().take_while(|cell| {
        used += Span::raw(cell.symbol).width();
        used <= room
    });
    let fits = fitting.count().max(1).min(rest.len());
    match rest.get(fits) {
        None => return (fits, fits),
        Some(cell) if is_space(cell) => return (fits, fits + 1),
        Some(_) => {}
    }
    match rest[..fits].iter().rposition(is_space) {
        Some(at) if at > least => (at, at + 1),
        _ => (fits, fits),
    }
}

fn is_space(cell: &StyledGrapheme<'_>) -> bool {
    cell.symbol == " "
}

/// A line of these cells behind `lead` spaces.
fn row(lead: usize, cells: &[StyledGrapheme<'_>]) -> Line<'static> {
    let mut spans = Vec::new();
    if lead > 0 {
        spans.push(Span::raw(" ".repeat(lead)));
    }
    for equal in cells.chunk_by(|a, b| a.style == b.style) {
        let text: String = equal.iter().map(|cell| cell.symbol).collect();
        spans.push(Span::styled(text, equal[0].style));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        let wrapped = wrapped(&Text::from(text.to_owned()), width);
        wrapped.lines.iter().map(Line::to_string).collect()
    }

    #[test]
    fn lines_are_broken_at_spaces_and_long_words_anywhere() {
        for (text, expected) in [
            ("", &[""][..]),
            ("short", &["short"]),
            ("exactly 10", &["exactly 10"]),
            ("one two three", &["one two", "three"]),
            ("exactly 10 and more", &["exactly 10", "and more"]),
            ("0123456789abcdef", &["0123456789", "abcdef"]),
            ("a 0123456789abc", &["a", "0123456789", "abc"]),
            ("- a 0123456789", &["- a", "  01234567", "  89"]),
            ("- 0123456789", &["- 01234567", "  89"]),
            ("  - a: bcdefg hi", &["  - a:", "    bcdefg", "    hi"]),
            ("       0123456", &["       012", "     3456"]),
            ("x\n\ny", &["x", "", "y"]),
            ("漢字漢字漢字", &["漢字漢字漢", "字"]),
        ] {
            assert_eq!(lines(text, 10), expected, "{text:?}");
        }
    }

    // Spaces in the middle of a line may hide what is behind them.
    #[test]
    fn what_is_behind_many_spaces_is_shown() {
        let text = format!("image: a{}b", " ".repeat(50));
        let lines = lines(&text, 20);
        assert_eq!(lines.last().map(|line| line.trim()), Some("b"), "{lines:?}");
        assert!(lines.iter().all(|line| line.len() <= 20), "{lines:?}");
    }

    #[test]
    fn each_width_has_an_end() {
        for width in 0..6 {
            for text in ["漢字", "  ✗ ab c", "     ", "-  - x"] {
                assert!(!lines(text, width).is_empty());
            }
        }
    }
}
