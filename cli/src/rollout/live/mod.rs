//! The live view of `nodewise rollout status --watch` in a terminal.

mod keys;
mod logs;
mod recent;
mod screen;
mod view;

use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use crossterm::event::EventStream;
use ratatui::DefaultTerminal;
use tokio::time::Instant;

use self::{
    keys::{Command, HELP},
    logs::Log,
    view::{Tone, View, Window},
};
use super::{
    approve,
    args::RolloutStatusArgs,
    change, diff,
    exit::exit_code,
    follow::{News, Rollout},
    policy,
    proposal::{Proposed, named},
    retry,
    revisions::History,
};
use crate::{
    engine::Engine,
    explain::{self, Case},
    input::Served,
    output::{Output, ViewOutput},
    print,
    terminal::{has_colours, next_key},
    text::{self, BOLD, PLAIN, Page},
    view as view_of,
    watches::{no_answer, until},
};

/// Shows the rollout until someone quits, or until the deadline. Then the last status stays in the terminal.
pub(super) async fn run(
    args: &RolloutStatusArgs,
    engine: &Engine,
    workload: &Served,
    deadline: Option<Instant>,
) -> anyhow::Result<ExitCode> {
    let rollout = Rollout::start(args, engine, workload).await?;
    let terminal = ratatui::try_init().context("cannot open the terminal")?;
    let mut live = Live {
        rollout,
        terminal,
        keys: EventStream::new(),
        view: View {
            colours: has_colours(),
            wide: args.output == ViewOutput::Wide,
            ..View::default()
        },
    };
    let ended = live.run(deadline).await;
    ratatui::restore();
    let end = ended?;
    let View { status, wide, .. } = live.view;
    let last = status.ok_or_else(|| match end {
        End::Deadline => no_answer(),
        End::Quit => anyhow!("the view was closed before the cluster was read"),
    })?;
    let mut page = Page::new(text::terminal_width());
    text::status::render_rollout(&mut page, &last, &super::hints::of(&last), wide);
    print::text(&page.into_text())?;
    if end == End::Deadline {
        print::note("the time of --timeout is over");
    }
    Ok(exit_code(&last))
}

/// Why the view ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Someone quits.
    Quit,
    /// The time of `--timeout` is over.
    Deadline,
}

struct Live<'a> {
    rollout: Rollout<'a>,
    terminal: DefaultTerminal,
    keys: EventStream,
    view: View,
}

impl Live<'_> {
    async fn run(&mut self, deadline: Option<Instant>) -> anyhow::Result<End> {
        loop {
            self.draw()?;
            tokio::select! {
                news = self.rollout.next() => match news? {
                    News::Status(status) => {
                        self.view.update(*status);
                        let of_policy = self.view.status.as_ref().and_then(|status| status.policy.as_ref());
                        self.view.is_paused = match of_policy {
                            Some(policy) => policy.paused || policy.rejection.is_some(),
                            None => change::is_paused(self.rollout.workload()?).unwrap_or_default(),
                        };
                    }
                    News::Problem(problem) => self.view.problem = problem,
                    News::Recovered => self.view.problem.clear(),
                },
                key = next_key(&mut self.keys) => {
                    let Some(command) = key?.and_then(|key| keys::command(key, &self.view)) else {
                        continue;
                    };
                    if command == Command::Quit {
                        return Ok(End::Quit);
                    }
                    self.obey(command).await;
                }
                () = until(deadline) => return Ok(End::Deadline),
            }
        }
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let view = &mut self.view;
        self.terminal
            .draw(|frame| screen::draw(frame, view))
            .context("cannot draw")?;
        Ok(())
    }

    /// Does what a key asks for. What fails is said in the view, which stays.
    async fn obey(&mut self, command: Command) {
        self.view.say(Tone::Plain, "");
        if let Err(error) = self.try_to_obey(command).await {
            self.view.say(Tone::Bad, format!("{error:#}"));
        }
    }

    async fn try_to_obey(&mut self, command: Command) -> anyhow::Result<()> {
        let (cluster, workload) = (self.rollout.cluster(), self.rollout.workload()?);
        match command {
            Command::Quit => {}
            Command::Scroll(rows) => self.view.scroll(rows),
            Command::Close => drop(self.view.close()),
            Command::Help => self.view.open("Keys", "", &help()),
            Command::Undo => self.view.propose("Undo", change::undo(cluster, workload, None)?),
            Command::Pause => {
                let status = self.view.status.as_ref();
                let policy = status.and_then(|status| status.policy.clone());
                let pauses = match &policy {
                    Some(policy) => {
                        !policy.paused && policy.rejection.is_none() && policy.state != "AnalysisHeld"
                    }
                    None => !change::is_paused(workload)?,
                };
                let title = if pauses { "Pause" } else { "Resume" };
                self.view.propose(
                    title,
                    policy::pausing(cluster, workload, policy.as_ref(), pauses)?,
                );
            }
            Command::Rollback => {
                if let Some(status) = &self.view.status {
                    let proposed = policy::roll_back(cluster, workload, status)?;
                    self.view.propose("Roll back", proposed);
                }
            }
            Command::Approve => self.approve().await?,
            Command::Restart => self.view.propose("Restart", change::restart(workload)?),
            Command::Retry => {
                if let Some(status) = &self.view.status {
                    let proposed = retry::retry(cluster, workload, status)?;
                    self.view.propose("Retry", proposed);
                }
            }
            Command::Diff => {
                let text = difference(&History::of(cluster, workload)?)?;
                let command = format!("nodewise rollout diff {}", named(workload));
                self.view.open("Diff", &command, &text);
            }
            Command::Explain => self.explain().await?,
            Command::Logs => self.logs().await?,
            Command::Yes => {
                let Some(proposal) = self.view.close() else {
                    return Ok(());
                };
                let status = self.view.status.as_ref();
                let policy = status.and_then(|status| status.policy.as_ref());
                approve::refuse_outdated(&proposal, workload, policy)?;
                self.view.say(Tone::Plain, "writing …");
                self.draw()?;
                let written = proposal.carry_out(&self.rollout.client, &self.rollout.url, false);
                let written = or_cancelled(&mut self.keys, written).await?;
                self.view.say(Tone::Good, written);
            }
        }
        Ok(())
    }

    /// Shows what the stage that waits for an approval would do, and asks.
    async fn approve(&mut self) -> anyhow::Result<()> {
        let requests = self.rollout.requests();
        let source = view_of::Source {
            cluster: self.rollout.cluster(),
            engine: self.rollout.engine,
            requests: &requests,
        };
        let work = approve::approve(&source, self.rollout.workload()?, None);
        let proposal = or_cancelled(&mut self.keys, work).await?;
        self.view.propose("Approve", Proposed::Change(proposal));
        Ok(())
    }

    async fn explain(&mut self) -> anyhow::Result<()> {
        let requests = self.rollout.requests();
        let workload = self.rollout.workload()?;
        let case = Case {
            cluster: self.rollout.cluster(),
            workload,
            requests: &requests,
            engine: self.rollout.engine,
            width: window_width(),
        };
        let command = format!("nodewise explain {}", named(workload));
        let text = or_cancelled(&mut self.keys, explain::explain(&case, None, Output::Text)).await?;
        self.view.open("Explain", &command, &text);
        Ok(())
    }

    async fn logs(&mut self) -> anyhow::Result<()> {
        let log = self.view.status.as_ref().and_then(Log::of);
        let Some(log) = log else {
            self.view
                .say(Tone::Plain, "every pod is ready; there is no log to show");
            return Ok(());
        };
        let command = log.command();
        self.view.say(Tone::Plain, format!("$ {command} …"));
        self.draw()?;
        let log = or_cancelled(&mut self.keys, log.read(&self.rollout.client)).await?;
        self.view.say(Tone::Plain, "");
        let mut page = Page::new(None);
        for line in log.lines() {
            page.line(0, PLAIN, line);
        }
        self.view.open("Log", &command, &page.into_text());
        Ok(())
    }
}

impl View {
    /// Asks for a change, or says why there is none.
    fn propose(&mut self, title: &str, proposed: Proposed) {
        match proposed {
            Proposed::Change(proposal) => self.ask(title, proposal),
            Proposed::Nothing(sentence) => self.say(Tone::Plain, sentence),
        }
    }
}

/// The columns of a window.
fn window_width() -> Option<usize> {
    text::terminal_width().map(|width| width.saturating_sub(screen::FRAME))
}

fn help() -> String {
    let mut page = Page::new(window_width());
    for (keys, what) in HELP {
        page.marked(1, &format!("{keys:4}"), BOLD, PLAIN, what);
    }
    page.blank();
    page.line(
        1,
        PLAIN,
        "Nothing is written before you answer y. Every write is done with your own rights.",
    );
    page.into_text()
}

/// What an undo would change.
fn difference(history: &History<'_>) -> anyhow::Result<String> {
    let before = history.find(None)?;
    let mut page = Page::new(None);
    let title = format!("revision {} and the present template", before.number);
    page.line(0, BOLD, &title);
    diff::render(&mut page, &before.template, &history.present())?;
    Ok(page.into_text())
}

/// The result of `work`, unless someone presses Esc or Ctrl-C before.
async fn or_cancelled<T>(
    keys: &mut EventStream,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let view = View {
        window: Some(Window::default()),
        ..View::default()
    };
    let cancelled = async {
        loop {
            let command = next_key(keys).await?.and_then(|key| keys::command(key, &view));
            if let Some(Command::Close | Command::Quit) = command {
                anyhow::bail!("cancelled; it may have been done in part");
            }
        }
    };
    tokio::select! {
        result = work => result,
        stopped = cancelled => stopped,
    }
}
