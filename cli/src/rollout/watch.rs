//! Follows a rollout and prints a line for each change.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context as _, bail};
use jiff::{Timestamp, Unit};
use kube::Client;
use nodewise_proto::v1::{self, RolloutState};
use tokio::time::{Instant, sleep_until};

use super::{args::RolloutStatusArgs, exit::exit_code};
use crate::{
    engine::Engine,
    flags::EngineArgs,
    input::{Change, Follower, Served, connect},
    kind::Kind,
    output::ViewOutput,
    print,
    refusals::Refusals,
    request::RequestFactory,
    text::{self, Page},
    view,
};

/// Events that follow each other are shown together.
const TOGETHER: Duration = Duration::from_millis(150);
/// Without an event the status is computed again: a pod may be late by now.
const AGAIN: Duration = Duration::from_secs(2);

/// Follows a workload.
pub(super) struct Rollout<'a> {
    args: &'a RolloutStatusArgs,
    engine: &'a Engine,
    client: Client,
    follower: Follower,
    kind: Kind,
    namespace: String,
    name: String,
}

impl<'a> Rollout<'a> {
    pub(super) async fn start(
        args: &'a RolloutStatusArgs,
        engine: &'a Engine,
        workload: &Served,
    ) -> anyhow::Result<Self> {
        let source = &args.source;
        let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
        Ok(Self {
            args,
            engine,
            follower: Follower::start(&client, &url, workload.kind, &workload.namespace),
            client,
            kind: workload.kind,
            namespace: workload.namespace.clone(),
            name: workload.name.clone(),
        })
    }

    /// The next status: after events, or after a while without one.
    ///
    /// # Errors
    /// The workload is gone, or the cluster or the service refuses.
    pub(super) async fn next(&mut self) -> anyhow::Result<v1::WorkloadStatus> {
        let again = Instant::now() + AGAIN;
        let mut until = again;
        loop {
            tokio::select! {
                change = self.follower.next() => match change? {
                    Change::Objects => until = until.min(Instant::now() + TOGETHER),
                    Change::Failed(problem) => {
                        print::note(&format!("{problem}; it is tried again"));
                        until = again;
                    }
                },
                () = sleep_until(until), if self.follower.is_complete() => return self.status().await,
            }
        }
    }

    async fn status(&self) -> anyhow::Result<v1::WorkloadStatus> {
        let cluster = &self.follower.cluster;
        let mut found = cluster.workloads_in(self.kind, &self.namespace);
        let Some(workload) = found.find(|one| one.name == self.name) else {
            bail!(
                "{} {}/{} was deleted",
                self.kind.name(),
                self.namespace,
                self.name
            );
        };
        let refusals = Refusals::ask(&self.client, std::iter::once(workload)).await;
        let engine_args: &EngineArgs = &self.args.engine;
        let requests = RequestFactory::new(cluster, engine_args);
        let source = view::Source {
            cluster,
            engine: self.engine,
            requests: &requests,
        };
        source.status(workload, refusals.of(&workload.uid)).await
    }
}

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
        let status = tokio::select! {
            status = rollout.next() => status?,
            () = sleep_until(deadline.unwrap_or_else(far)), if deadline.is_some() => {
                let last = last.context("the apiserver has not answered in the time of --wait-for")?;
                print::note(&format!("--wait-for is over: {}", last.message));
                return Ok(exit_code(&last));
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
