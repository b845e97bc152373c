//! Follows a rollout and prints a line for each change.

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use jiff::{Timestamp, Unit};
use nodewise_proto::v1::{self, RolloutState};
use tokio::time::{Instant, sleep_until};

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
};

/// Follows the rollout until it is complete, or until the time of `--wait-for` is over.
pub(super) async fn run(
    args: &RolloutStatusArgs,
    engine: &Engine,
    workload: &Served,
) -> anyhow::Result<ExitCode> {
    let deadline = args.wait_for.map(|time| Instant::now() + time);
    let mut rollout = Rollout::start(args, engine, workload).await?;
    let mut last: Option<v1::WorkloadStatus> = None;
    loop {
        let news = tokio::select! {
            news = rollout.next() => news?,
            () = sleep_until(deadline.unwrap_or_else(far)), if deadline.is_some() => {
                let last = last.context("the apiserver has not answered in the time of --wait-for")?;
                print::note(&format!("--wait-for is over: {}", last.message));
                return Ok(exit_code(&last));
            }
        };
        let status = match news {
            News::Status(status) => *status,
            News::Problem(problem) => {
                print::note(&problem);
                continue;
            }
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

/// A moment that no command waits for.
fn far() -> Instant {
    Instant::now() + Duration::from_hours(24)
}

/// Whether people would want to read about it: not if only times have passed.
fn is_news(last: &v1::WorkloadStatus, now: &v1::WorkloadStatus) -> bool {
    let causes = |status: &v1::WorkloadStatus| {
        let cause = |cause: &v1::BlockCause| (cause.reason.clone(), cause.units.clone(), cause.more_units);
        status.causes.iter().map(cause).collect::<Vec<_>>()
    };
    (last.state, &last.counts) != (now.state, &now.counts)
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
