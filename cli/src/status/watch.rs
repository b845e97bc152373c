//! `nodewise status --watch`: the table again after each change, or in a terminal always the present one.

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use anyhow::Context as _;
use crossterm::event::{EventStream, KeyCode, KeyEvent, KeyModifiers};
use jiff::{Timestamp, Unit};
use nodewise_proto::v1;
use nodewise_telemetry::printable;
use ratatui::{
    DefaultTerminal, Frame,
    layout::{Constraint, Layout},
    style::{Modifier, Stylize as _},
    text::{Line, Text},
};
use tokio::time::Instant;

use super::{
    print as print_once,
    rows::{News, Rows},
};
use crate::{
    args::{StatusArgs, ViewOutput},
    print,
    rollout::is_news,
    target::Target,
    terminal::{draw_scrolled, has_colours, moved, next_key, scrolled_by, styled},
    text::{self, DIM, Page},
    watches::{before, deadline, no_answer, until},
};

/// Watches until someone quits, or until the time of `--timeout` is over.
pub(super) async fn run(args: &StatusArgs, targets: &[Target]) -> anyhow::Result<ExitCode> {
    let deadline = deadline(args.timeout);
    let mut rows = before(deadline, Rows::start(args, targets)).await??;
    let is_text = matches!(args.output, ViewOutput::Text | ViewOutput::Wide);
    if is_text && io::stdout().is_terminal() && io::stdin().is_terminal() {
        show_in_terminal(args, &mut rows, deadline).await?;
    } else {
        print_changes(args, &mut rows, deadline).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints all statuses whenever one has changed.
async fn print_changes(
    args: &StatusArgs,
    rows: &mut Rows<'_>,
    deadline: Option<Instant>,
) -> anyhow::Result<()> {
    let mut last: Option<Vec<v1::WorkloadStatus>> = None;
    loop {
        let news = tokio::select! {
            news = rows.next() => news?,
            () = until(deadline) => {
                last.map(drop).ok_or_else(no_answer)?;
                print::note("the time of --timeout is over");
                return Ok(());
            }
        };
        match news {
            News::Statuses if last.as_ref().is_none_or(|last| are_news(last, &rows.statuses)) => {
                print_again(&rows.statuses, args, last.is_none())?;
                last = Some(rows.statuses.clone());
            }
            News::Problem(problem) => print::note(&problem),
            News::Statuses | News::Recovered => {}
        }
    }
}

/// Whether people would want to read about it: not if only times have passed.
fn are_news(last: &[v1::WorkloadStatus], now: &[v1::WorkloadStatus]) -> bool {
    let are_equal =
        |(last, now): (&v1::WorkloadStatus, &v1::WorkloadStatus)| last.uid == now.uid && !is_news(last, now);
    last.len() != now.len() || !last.iter().zip(now).all(are_equal)
}

/// JSON is one array a line, and YAML one document a change. A table begins with its time.
fn print_again(statuses: &[v1::WorkloadStatus], args: &StatusArgs, is_first: bool) -> anyhow::Result<()> {
    match args.output {
        ViewOutput::Json => print::json_line(&statuses),
        ViewOutput::Yaml => print::yaml_document(&statuses),
        ViewOutput::Text | ViewOutput::Wide => {
            let mut page = Page::new(None);
            if !is_first {
                page.blank();
            }
            let time = Timestamp::now().round(Unit::Second).unwrap_or(Timestamp::MIN);
            page.line(0, DIM, &time.to_string());
            print::text(&page.into_text())?;
            print_once(statuses, args)
        }
    }
}

/// Draws the table again after each change, until someone quits. Then the last one stays in the terminal.
async fn show_in_terminal(
    args: &StatusArgs,
    rows: &mut Rows<'_>,
    deadline: Option<Instant>,
) -> anyhow::Result<()> {
    let terminal = ratatui::try_init().context("cannot open the terminal")?;
    let mut screen = Screen {
        terminal,
        keys: EventStream::new(),
        wide: args.output == ViewOutput::Wide,
        colours: has_colours(),
        problem: String::new(),
        scroll: 0,
    };
    let ended = screen.run(rows, deadline).await;
    ratatui::restore();
    ended?;
    if rows.is_complete() {
        print_once(&rows.statuses, args)?;
    }
    Ok(())
}

/// The table in a terminal.
struct Screen {
    terminal: DefaultTerminal,
    keys: EventStream,
    wide: bool,
    colours: bool,
    /// The watch that does not work. Empty if all do.
    problem: String,
    /// The first row of the text that is shown.
    scroll: u16,
}

impl Screen {
    async fn run(&mut self, rows: &mut Rows<'_>, deadline: Option<Instant>) -> anyhow::Result<()> {
        loop {
            let shown = rows.is_complete().then_some(rows.statuses.as_slice());
            let (wide, colours, problem, scroll) = (self.wide, self.colours, &self.problem, &mut self.scroll);
            self.terminal
                .draw(|frame| draw(frame, (shown, wide, colours), problem, scroll))
                .context("cannot draw")?;
            tokio::select! {
                news = rows.next() => match news? {
                    News::Statuses => {}
                    News::Problem(problem) => self.problem = problem,
                    News::Recovered => self.problem.clear(),
                },
                key = next_key(&mut self.keys) => match key? {
                    Some(key) if quits(key) => return Ok(()),
                    Some(key) => self.scroll = moved(self.scroll, scrolled_by(key).unwrap_or_default()),
                    None => {}
                },
                () = until(deadline) => return if rows.is_complete() { Ok(()) } else { Err(no_answer()) },
            }
        }
    }
}

fn quits(key: KeyEvent) -> bool {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') => is_control,
        KeyCode::Char('q') | KeyCode::Esc => !is_control,
        _ => false,
    }
}

/// The table, the problem if there is one, and the keys.
fn draw(
    frame: &mut Frame<'_>,
    (statuses, wide, colours): (Option<&[v1::WorkloadStatus]>, bool, bool),
    problem: &str,
    scroll: &mut u16,
) {
    let [body, said, keys] = Layout::vertical([
        Constraint::Min(1),
        Constraint::Length(u16::from(!problem.is_empty())),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let text = match statuses {
        Some(statuses) => {
            let mut page = Page::new(Some(body.width.saturating_sub(1).into()));
            text::status::render_table(&mut page, statuses, wide);
            styled(&page.into_text(), colours)
        }
        None => Text::from("reading the cluster …"),
    };
    draw_scrolled(frame, body, &text, scroll);
    let problem = Line::from(printable(problem).into_owned()).add_modifier(Modifier::BOLD);
    frame.render_widget(problem, said);
    frame.render_widget(Line::from("↑↓ scroll  q quit"), keys);
}

#[cfg(test)]
mod tests {
    use nodewise_proto::v1::RolloutState;
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;

    fn status(uid: &str, state: RolloutState) -> v1::WorkloadStatus {
        v1::WorkloadStatus {
            kind: "DaemonSet".to_owned(),
            name: uid.to_owned(),
            uid: uid.to_owned(),
            state: state.into(),
            ..v1::WorkloadStatus::default()
        }
    }

    #[test]
    fn a_new_workload_or_state_is_news_and_a_new_time_is_not() {
        let one = [status("a", RolloutState::Progressing)];
        let mut later = one.clone();
        later[0].observed_at = Some(pbjson_types::Timestamp::default());
        assert!(!are_news(&one, &later));
        let stuck = [status("a", RolloutState::Stuck)];
        assert!(are_news(&one, &stuck));
        let other = [status("b", RolloutState::Progressing)];
        assert!(are_news(&one, &other));
        let [a] = one.clone();
        let [b] = other;
        assert!(are_news(&one, &[a, b]));
    }

    #[test]
    fn the_screen_has_the_table_the_problem_and_the_keys() {
        let mut terminal = Terminal::new(TestBackend::new(80, 10)).expect("a terminal");
        let statuses = [status("agent", RolloutState::Stuck)];
        let mut scroll = 0;
        let drawn = terminal.draw(|frame| {
            draw(
                frame,
                (Some(&statuses), false, true),
                "the watch failed",
                &mut scroll,
            );
        });
        drawn.expect("it is drawn");
        let screen = terminal.backend().to_string();
        for part in [
            "NAMESPACE",
            "daemonset/agent",
            "stuck",
            "the watch failed",
            "q quit",
        ] {
            assert!(screen.contains(part), "no {part:?} in {screen}");
        }
    }
}
