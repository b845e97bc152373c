//! `nodewise rollout`: one rollout in detail, live, and the commands that steer it.

pub(crate) mod args;
mod ask;
mod change;
pub(crate) mod diff;
mod exit;
mod hints;
mod history;
mod retry;
mod revisions;
mod status;
mod watch;

use std::process::ExitCode;

use args::RolloutCommand;

pub(crate) async fn run(command: &RolloutCommand) -> anyhow::Result<ExitCode> {
    match command {
        RolloutCommand::Status(args) => status::run(args).await,
        RolloutCommand::History(args) => history::run(args).await,
        RolloutCommand::Diff(args) => diff::run(args).await,
        RolloutCommand::Undo(args) => change::undo(args).await,
        RolloutCommand::Pause(args) => change::pause(args, true).await,
        RolloutCommand::Resume(args) => change::pause(args, false).await,
        RolloutCommand::Restart(args) => change::restart(args).await,
        RolloutCommand::Retry(args) => retry::run(args).await,
    }
}
