//! Draws the live view: the rollout, what happened lately, a window over it, and the keys.

use std::iter;

use nodewise_telemetry::printable;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Margin, Rect},
    style::{Color, Modifier, Style, Stylize as _},
    text::{Line, Span, Text},
    widgets::{Block, Clear, Paragraph},
};

use super::{
    keys,
    view::{Tone, View, Window},
};
use crate::{
    terminal::{draw_scrolled, styled, wrapped},
    text::{self, Page},
};

/// The rows for what happened lately, with their title.
const RECENT: u16 = 7;
/// Without as many rows, there is only the rollout.
const LOW: u16 = 24;

/// The most rows for messages.
const MESSAGES: usize = 4;

/// The columns that a window, its frame and its bar leave free.
pub(super) const FRAME: usize = 7;

/// Draws everything, and keeps positions of scrolling inside their texts.
pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let area = frame.area();
    let recent = if area.height >= LOW { RECENT } else { 0 };
    let messages = messages(view, area.width);
    let [body, below, said, help] = Layout::vertical([
        Constraint::Min(1),
        Constraint::Length(recent),
        Constraint::Length(rows(messages.len())),
        Constraint::Length(1),
    ])
    .areas(area);
    let text = rollout(view, body.width);
    let colours = view.colours;
    draw_scrolled(frame, body, &text, &mut view.scroll);
    if recent > 0 {
        frame.render_widget(lately(view, below.width), below);
    }
    frame.render_widget(Paragraph::new(messages), said);
    frame.render_widget(Line::from(keys::legend(view)), help);
    if let Some(window) = &mut view.window {
        over(frame, area, window, colours);
    }
}

fn rows(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// The rollout as `nodewise rollout status` prints it.
fn rollout(view: &View, width: u16) -> Text<'static> {
    let Some(status) = &view.status else {
        return Text::from("  reading the cluster …".to_owned());
    };
    let mut page = Page::new(Some(width.saturating_sub(1).into()));
    text::status::render_rollout(&mut page, status, &[], view.wide);
    styled(&page.into_text(), view.colours)
}

fn lately(view: &View, width: u16) -> Paragraph<'static> {
    let mut lines = vec![Line::from("Lately").add_modifier(Modifier::BOLD)];
    let all = view.recent.sentences().take(usize::from(RECENT) - 2);
    lines.extend(all.map(|(time, sentence)| {
        let sentence = printable(sentence).into_owned();
        Line::from(vec![
            Span::from(format!("  {time} ")).add_modifier(Modifier::DIM),
            Span::from(sentence),
        ])
    }));
    if lines.len() == 1 {
        lines.push(
            Line::from("  nothing has happened since this view was opened").add_modifier(Modifier::DIM),
        );
    }
    Paragraph::new(wrapped(&Text::from(lines), width.into()))
}

/// The problem of the watches, and the result of the last key. One row at least.
fn messages(view: &View, width: u16) -> Vec<Line<'static>> {
    let problem = (Tone::Bad, view.problem.as_str());
    let result = (view.message.0, view.message.1.as_str());
    let said = [problem, result].into_iter().filter(|(_, text)| !text.is_empty());
    let lines = said.map(|(tone, text)| {
        let style = match tone {
            Tone::Plain => Style::new(),
            Tone::Good => colour(Color::Green, view.colours),
            Tone::Bad => colour(Color::Red, view.colours),
        };
        Line::from(Span::styled(printable(text).into_owned(), style))
    });
    let lines: Vec<Line<'_>> = lines.collect();
    let mut lines = wrapped(&Text::from(lines), width.into()).lines;
    lines.truncate(MESSAGES);
    if lines.is_empty() {
        lines.push(Line::default());
    }
    lines
}

/// A window over the rollout. Everything in it is shown, also on a narrow terminal: someone may agree to it.
fn over(frame: &mut Frame<'_>, area: Rect, window: &mut Window, colours: bool) {
    let area = area.inner(Margin::new(2, 1));
    let block = Block::bordered().title(format!(" {} ", window.title));
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    let question = question(window, inner.width);
    let [text, below] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(rows(question.len()))]).areas(inner);
    draw_scrolled(frame, text, &styled(&window.text, colours), &mut window.scroll);
    frame.render_widget(Paragraph::new(question), below);
}

/// The question of a window below an empty row. No rows if nothing is asked.
fn question(window: &Window, width: u16) -> Vec<Line<'static>> {
    if window.question.is_empty() {
        return Vec::new();
    }
    let line = format!("{} [y/n]", printable(&window.question));
    let line = Line::from(Span::from(line).add_modifier(Modifier::BOLD));
    let lines = wrapped(&Text::from(line), width.into()).lines;
    iter::once(Line::default()).chain(lines).collect()
}

fn colour(colour: Color, colours: bool) -> Style {
    if colours {
        Style::new().fg(colour)
    } else {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};
    use serde_json::json;

    use super::*;
    use crate::rollout::diff;

    /// The rows of a screen of this size.
    fn drawn(view: &mut View, (columns, rows): (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view)).expect("it is drawn");
        let buffer = terminal.backend().buffer().clone();
        let row = |y: u16| (0..columns).map(|x| buffer[(x, y)].symbol().to_owned()).collect();
        (0..rows).map(row).collect()
    }

    /// What is in the window, without its frame, spaces and line breaks.
    fn in_window(rows: &[String]) -> String {
        let rows = rows
            .iter()
            .filter_map(|row| row.trim().strip_prefix('│')?.strip_suffix('│'));
        let text: String = rows.collect();
        text.chars().filter(|sign| !sign.is_whitespace()).collect()
    }

    #[test]
    fn lines_that_differ_beyond_the_right_edge_are_shown_to_their_ends() {
        let image = |end: char| format!("registry.example/{}{end}", "x".repeat(100));
        let template = |end: char| json!({"spec": {"containers": [{"name": "web", "image": image(end)}]}});
        let mut page = Page::new(None);
        diff::render(&mut page, &template('1'), &template('2')).expect("YAML");
        page.marked(0, "$", text::DIM, text::DIM, "command ".repeat(20).trim_end());
        let mut view = View::default();
        view.open("Diff", "nodewise rollout diff deployment/web", &page.into_text());
        for colours in [false, true] {
            view.colours = colours;
            let rows = drawn(&mut view, (80, 24));
            let text = in_window(&rows);
            for end in ['1', '2'] {
                assert!(text.contains(&image(end)), "no {end}:\n{}", rows.join("\n"));
            }
            let command = format!("${}", "command".repeat(20));
            assert!(text.contains(&command), "{}", rows.join("\n"));
        }
    }

    #[test]
    fn scrolling_ends_at_the_last_wrapped_line() {
        let mut page = Page::new(None);
        page.line(0, text::PLAIN, &format!("begin {} end", "x".repeat(3_000)));
        let mut view = View::default();
        view.open("Diff", "nodewise rollout diff", &page.into_text());
        assert!(!in_window(&drawn(&mut view, (80, 24))).contains("end"));
        view.scroll(i32::MAX);
        assert!(in_window(&drawn(&mut view, (80, 24))).contains("xend"));
    }

    #[test]
    fn a_long_question_and_a_long_problem_are_whole() {
        let mut view = View {
            problem: format!("the watch failed: {}!", "p".repeat(100)),
            ..View::default()
        };
        let rows = drawn(&mut view, (80, 24));
        assert!(rows.iter().any(|row| row.trim().ends_with("p!")), "{rows:?}");
        view.problem.clear();
        view.window = Some(Window {
            question: format!("Delete {}?", "q".repeat(100)),
            ..Window::default()
        });
        let text = in_window(&drawn(&mut view, (80, 24)));
        assert!(text.contains("q?[y/n]"), "{text}");
    }
}
