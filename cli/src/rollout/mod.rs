//! `nodewise rollout`: one rollout in detail, live, and the commands that steer it.

mod approve;
pub(crate) mod args;
mod ask;
mod change;
pub(crate) mod diff;
mod exit;
mod follow;
mod held;
pub(crate) mod hints;
mod history;
mod live;
mod policy;
mod policy_page;
mod proposal;
pub(crate) mod quote;
mod retry;
pub(crate) mod revisions;
mod status;
mod watch;

use std::process::ExitCode;

use args::{ChangeArgs, RolloutCommand};
use proposal::{Proposed, settle};
pub(crate) use watch::is_news;

use crate::{
    input::{Cluster, Served},
    kind::Kind,
    view,
};

pub(crate) async fn run(command: &RolloutCommand) -> anyhow::Result<ExitCode> {
    match command {
        RolloutCommand::Status(args) => status::run(args).await,
        RolloutCommand::History(args) => history::run(args).await,
        RolloutCommand::Diff(args) => diff::run(args).await,
        RolloutCommand::Undo(args) => {
            let undo = |cluster: &_, workload: &_| change::undo(cluster, workload, args.to_revision);
            steer(&args.change, undo).await
        }
        RolloutCommand::Pause(args) => pause(args, true).await,
        RolloutCommand::Resume(args) => pause(args, false).await,
        RolloutCommand::Approve(args) => approve::run(args).await,
        RolloutCommand::Rollback(args) => {
            let (cluster, target) = revisions::read(&args.workload).await?;
            let workload = revisions::workload(&cluster, &target, &args.workload)?;
            let status = view::local_status(&cluster, workload).await?;
            settle(args, workload, policy::roll_back(&cluster, workload, &status)?).await
        }
        RolloutCommand::Restart(args) => steer(args, |_, workload| change::restart(workload)).await,
        RolloutCommand::Retry(args) => {
            let (cluster, target) = revisions::read(&args.workload).await?;
            let workload = revisions::workload(&cluster, &target, &args.workload)?;
            let status = view::local_status(&cluster, workload).await?;
            settle(args, workload, retry::retry(&cluster, workload, &status)?).await
        }
    }
}

/// Reads the workload, and settles what is proposed for it.
async fn steer(
    args: &ChangeArgs,
    propose: impl FnOnce(&Cluster, &Served) -> anyhow::Result<Proposed>,
) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.workload)?;
    settle(args, workload, propose(&cluster, workload)?).await
}

/// Pauses or resumes a Deployment, or the policy in charge of a DaemonSet.
async fn pause(args: &ChangeArgs, pauses: bool) -> anyhow::Result<ExitCode> {
    let (cluster, target) = revisions::read(&args.workload).await?;
    let workload = revisions::workload(&cluster, &target, &args.workload)?;
    let policy = match workload.kind {
        Kind::DaemonSet => view::local_status(&cluster, workload).await?.policy,
        _ => None,
    };
    let proposed = policy::pausing(&cluster, workload, policy.as_ref(), pauses)?;
    settle(args, workload, proposed).await
}
