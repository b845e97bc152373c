//! Draws the live view: the rollout, what happened lately, a window over it, and the keys.

use ansi_to_tui::IntoText as _;
use anstream::adapter::strip_str;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Margin, Rect},
    style::{Color, Modifier, Style, Stylize as _},
    text::{Line, Span, Text},
    widgets::{Block, Clear, Paragraph, Scrollbar, ScrollbarOrientation, ScrollbarState},
};

use super::{
    keys,
    view::{Tone, View, Window},
};
use crate::text::{self, Page};

/// The rows for what happened lately, with their title.
const RECENT: u16 = 7;
/// Without as many rows, there is only the rollout.
const LOW: u16 = 24;

/// The columns that a window and its frame leave free.
pub(super) const FRAME: usize = 8;

/// Draws everything, and keeps positions of scrolling inside their texts.
pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View) {
    let area = frame.area();
    let recent = if area.height >= LOW { RECENT } else { 0 };
    let [body, below, footer] = Layout::vertical([
        Constraint::Min(1),
        Constraint::Length(recent),
        Constraint::Length(2),
    ])
    .areas(area);
    let text = rollout(view, body.width);
    let colours = view.colours;
    scrolled(frame, body, text, &mut view.scroll);
    if recent > 0 {
        frame.render_widget(lately(view), below);
    }
    foot(frame, footer, view);
    if let Some(window) = &mut view.window {
        over(frame, area, window, colours);
    }
}

/// The rollout as `nodewise rollout status` prints it.
fn rollout(view: &View, width: u16) -> Text<'static> {
    let Some(status) = &view.status else {
        return Text::from("  reading the cluster …".to_owned());
    };
    let mut page = Page::new(Some(width.saturating_sub(1).into()));
    text::status::render_rollout(&mut page, status, &[]);
    styled(&page.into_text(), view.colours)
}

fn lately(view: &View) -> Paragraph<'static> {
    let mut lines = vec![Line::from("Lately").add_modifier(Modifier::BOLD)];
    let all = view.recent.sentences().take(usize::from(RECENT) - 2);
    lines.extend(all.map(|(time, sentence)| {
        let sentence = nodewise_telemetry::printable(sentence).into_owned();
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
    Paragraph::new(lines)
}

/// The last message, and the keys.
fn foot(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let [message, help] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let (tone, text) = &view.message;
    let style = match tone {
        Tone::Plain => Style::new(),
        Tone::Good => colour(Color::Green, view.colours),
        Tone::Bad => colour(Color::Red, view.colours),
    };
    frame.render_widget(
        Line::from(nodewise_telemetry::printable(text).into_owned()).style(style),
        message,
    );
    frame.render_widget(Line::from(keys::legend(view)), help);
}

/// A window over the rollout.
fn over(frame: &mut Frame<'_>, area: Rect, window: &mut Window, colours: bool) {
    let area = area.inner(Margin::new(2, 1));
    let block = Block::bordered().title(format!(" {} ", window.title));
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    let [text, question] = Layout::vertical([
        Constraint::Min(1),
        Constraint::Length(if window.question.is_empty() { 0 } else { 2 }),
    ])
    .areas(inner);
    scrolled(frame, text, styled(&window.text, colours), &mut window.scroll);
    if !window.question.is_empty() {
        let line = Line::from(format!("{} [y/n]", window.question)).add_modifier(Modifier::BOLD);
        frame.render_widget(Paragraph::new(vec![Line::default(), line]), question);
    }
}

/// A text, whose lines are wrapped already, from the row `scroll` on, with a bar at the right if it does not fit.
fn scrolled(frame: &mut Frame<'_>, area: Rect, text: Text<'static>, scroll: &mut u16) {
    let hidden = text.lines.len().saturating_sub(area.height.into());
    let most = u16::try_from(hidden).unwrap_or(u16::MAX);
    let paragraph = Paragraph::new(text);
    *scroll = (*scroll).min(most);
    let inner = Rect {
        width: area.width.saturating_sub(1),
        ..area
    };
    frame.render_widget(paragraph.scroll((*scroll, 0)), inner);
    if most > 0 {
        let mut state = ScrollbarState::new(most.into()).position((*scroll).into());
        let bar = Scrollbar::new(ScrollbarOrientation::VerticalRight)
            .begin_symbol(None)
            .end_symbol(None);
        frame.render_stateful_widget(bar, area, &mut state);
    }
}

/// A text with ANSI styles.
fn styled(text: &str, colours: bool) -> Text<'static> {
    let plain = || Text::from(strip_str(text).to_string());
    if colours {
        text.into_text().unwrap_or_else(|_| plain())
    } else {
        plain()
    }
}

fn colour(colour: Color, colours: bool) -> Style {
    if colours {
        Style::new().fg(colour)
    } else {
        Style::new().add_modifier(Modifier::BOLD)
    }
}
