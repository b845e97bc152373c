//! Follows a rollout and prints a line for each change.

use std::process::ExitCode;

use jiff::{Timestamp, Unit};
use nodewise_proto::v1::{self, RolloutState};
use tokio::time::Instant;

use super::{
    args::RolloutStatusArgs,
    exit::exit_code,
    follow::{News, Rollout},
};
use crate::{
    engine::Engine,
    input::Served,
    output::ViewOutput,
    print,
    text::{self, Page},
    watches::{no_answer, until},
};

/// Follows the rollout until it is complete, or until the deadline. A rollout that is stuck is followed, too.
pub(super) async fn run(
    args: &RolloutStatusArgs,
    engine: &Engine,
    workload: &Served,
    deadline: Option<Instant>,
) -> anyhow::Result<ExitCode> {
    let mut rollout = Rollout::start(args, engine, workload).await?;
    let mut last: Option<v1::WorkloadStatus> = None;
    loop {
        let news = tokio::select! {
            news = rollout.next() => news?,
            () = until(deadline) => {
                let last = last.ok_or_else(no_answer)?;
                print::note(&format!("the time of --timeout is over: {}", last.message));
                return Ok(exit_code(&last));
            }
        };
        let status = match news {
            News::Status(status) => *status,
            News::Problem(problem) => {
                print::note(&problem);
                continue;
            }
            News::Recovered => continue,
        };
        if last.as_ref().is_none_or(|last| is_news(last, &status)) {
            show(&status, args.output)?;
        }
        if status.state() == RolloutState::Complete {
            return Ok(ExitCode::SUCCESS);
        }
        last = Some(status);
    }
}

/// Whether people would want to read about it: not if only times have passed.
pub(crate) fn is_news(last: &v1::WorkloadStatus, now: &v1::WorkloadStatus) -> bool {
    let causes = |status: &v1::WorkloadStatus| {
        let cause = |cause: &v1::BlockCause| (cause.reason.clone(), cause.units.clone(), cause.more_units);
        status.causes.iter().map(cause).collect::<Vec<_>>()
    };
    let policy = |status: &v1::WorkloadStatus| {
        let stages =
            |policy: v1::PolicyRollout| (policy.state, policy.message, policy.stages, policy.blocking);
        status.policy.clone().map(stages)
    };
    (last.state, &last.counts) != (now.state, &now.counts)
        || policy(last) != policy(now)
        || causes(last) != causes(now)
        || last.revisions.first() != now.revisions.first()
}

fn show(status: &v1::WorkloadStatus, output: ViewOutput) -> anyhow::Result<()> {
    match output {
        // One document a line, and one a change.
        ViewOutput::Json => print::json_line(status),
        ViewOutput::Yaml => print::yaml_document(status),
        ViewOutput::Text | ViewOutput::Wide => {
            let mut page = Page::new(text::terminal_width());
            let time = Timestamp::now().round(Unit::Second).unwrap_or(Timestamp::MIN);
            text::status::render_line(&mut page, &time.to_string(), status);
            print::text(&page.into_text())
        }
    }
}
