//! What the live view shows now.

use nodewise_proto::v1;

use super::recent::Recent;
use crate::{
    rollout::proposal::Proposal,
    terminal::moved,
    text::{DIM, Page},
};

/// What the live view shows now.
#[derive(Default)]
pub(super) struct View {
    /// The last status. `None` until the first one is computed.
    pub(super) status: Option<v1::WorkloadStatus>,
    pub(super) recent: Recent,
    /// The first row of the rollout that is shown.
    pub(super) scroll: u16,
    /// Whether spec.paused of the workload or of its policy is true, or its policy rejects the revision.
    pub(super) is_paused: bool,
    /// The window over the rollout.
    pub(super) window: Option<Window>,
    /// The result of the last key.
    pub(super) message: (Tone, String),
    /// The watch that does not work. Empty if all do.
    pub(super) problem: String,
    /// Whether each node or pod is shown.
    pub(super) wide: bool,
    /// Whether the terminal shows colours.
    pub(super) colours: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
}

/// A text over the rollout, or a change that waits for an answer.
#[derive(Default)]
pub(super) struct Window {
    pub(super) title: String,
    /// With ANSI styles.
    pub(super) text: String,
    pub(super) scroll: u16,
    /// Empty if nothing is asked.
    pub(super) question: String,
    /// What is done after a yes.
    pub(super) proposal: Option<Proposal>,
}

impl View {
    /// Takes over a new status.
    pub(super) fn update(&mut self, status: v1::WorkloadStatus) {
        if let Some(before) = &self.status {
            self.recent.add(before, &status);
        }
        self.status = Some(status);
    }

    pub(super) fn say(&mut self, tone: Tone, message: impl Into<String>) {
        self.message = (tone, message.into());
    }

    /// Opens a window with a text, below the command that prints it.
    pub(super) fn open(&mut self, title: &str, command: &str, text: &str) {
        let mut page = Page::new(None);
        if !command.is_empty() {
            page.marked(0, "$", DIM, DIM, command);
            page.blank();
        }
        self.window = Some(Window {
            title: title.to_owned(),
            text: page.into_text() + text,
            ..Window::default()
        });
    }

    /// Opens a window that asks for a change.
    pub(super) fn ask(&mut self, title: &str, mut proposal: Proposal) {
        self.window = Some(Window {
            title: title.to_owned(),
            text: std::mem::take(&mut proposal.text),
            question: proposal.question.clone(),
            proposal: Some(proposal),
            scroll: 0,
        });
    }

    /// Closes the window, and returns the change that it asked for.
    pub(super) fn close(&mut self) -> Option<Proposal> {
        self.window.take()?.proposal
    }

    /// Scrolls what is in front. A draw keeps the position inside the text.
    pub(super) fn scroll(&mut self, rows: i32) {
        let scroll = match &mut self.window {
            Some(window) => &mut window.scroll,
            None => &mut self.scroll,
        };
        *scroll = moved(*scroll, rows);
    }
}
