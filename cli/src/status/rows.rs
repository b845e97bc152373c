//! The statuses of all workloads of a command line, kept up to date with watches.

use std::{collections::HashMap, time::Instant};

use anyhow::bail;
use kube::Client;
use nodewise_proto::v1::{self, RolloutState};

use super::{is_shown, sort};
use crate::{
    args::StatusArgs,
    engine::Engine,
    input::{Cluster, Follower, Served, Touched, connect, one_line},
    kind::Kind,
    request::{NodeBuckets, RequestFactory},
    target::Target,
    view,
    watches::{AGAIN, Tick, Watches},
};

/// At most one part in this many of the time is spent on computing what did not change.
const SHARE: u32 = 5;

/// What `Rows::next` returns.
pub(super) enum News {
    /// The statuses may have changed.
    Statuses,
    /// A watch failed. It is tried again.
    Problem(String),
    /// The watches work again.
    Recovered,
}

/// The rows of the table.
pub(super) struct Rows<'a> {
    args: &'a StatusArgs,
    targets: &'a [Target],
    engine: Engine,
    client: Client,
    watches: Watches,
    buckets: NodeBuckets,
    /// What has changed since the statuses were computed. More than one if computing was cancelled.
    touched: Vec<Touched>,
    /// By the workload's uid. `None` until all are computed for the first time.
    by_uid: Option<HashMap<String, v1::WorkloadStatus>>,
    /// The worst first.
    pub(super) statuses: Vec<v1::WorkloadStatus>,
}

impl<'a> Rows<'a> {
    pub(super) async fn start(args: &'a StatusArgs, targets: &'a [Target]) -> anyhow::Result<Self> {
        let source = &args.source;
        let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
        // Watches are tried for ever. What does not answer at the beginning is a mistake. Any answer will do.
        if let Err(error) = client.apiserver_version().await
            && !matches!(error, kube::Error::Api(_))
        {
            bail!("{url}: {}", one_line(&error));
        }
        let mut kinds: Vec<Kind> = targets.iter().map(|target| target.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let follower = Follower::start(&client, &url, &kinds, args.namespace.as_slice());
        Ok(Self {
            args,
            targets,
            engine: Engine::new(&args.engine)?,
            client,
            watches: Watches::new(follower),
            buckets: NodeBuckets::default(),
            touched: Vec::new(),
            by_uid: None,
            statuses: Vec::new(),
        })
    }

    /// Whether the statuses are there.
    pub(super) fn is_complete(&self) -> bool {
        self.by_uid.is_some()
    }

    /// Waits until something has happened. May be cancelled: no event is lost.
    ///
    /// # Errors
    /// A workload that the command line names does not exist at the beginning, or the cluster refuses.
    pub(super) async fn next(&mut self) -> anyhow::Result<News> {
        Ok(match self.watches.next().await? {
            Tick::Due => {
                let began = Instant::now();
                self.compute().await?;
                self.watches.computed(AGAIN.max(began.elapsed() * SHARE));
                News::Statuses
            }
            Tick::Problem(problem) => News::Problem(problem),
            Tick::Recovered => News::Recovered,
        })
    }

    /// Computes the statuses that may have changed: those of changed objects, and those of rollouts that are not complete.
    async fn compute(&mut self) -> anyhow::Result<()> {
        let touched = self.watches.follower.take_touched();
        let cluster = &self.watches.follower.cluster;
        if touched.has_nodes() || self.by_uid.is_none() {
            self.buckets = NodeBuckets::of(cluster);
        }
        self.touched.push(touched);
        let engine = &self.args.engine;
        let requests = RequestFactory::with_nodes(cluster, self.buckets.clone(), None, engine.profile.into());
        let source = view::Source {
            cluster,
            engine: &self.engine,
            requests: &requests,
        };
        let before = self.by_uid.as_ref();
        let mut now = HashMap::new();
        for workload in self.workloads(cluster)? {
            let last = before.and_then(|before| before.get(&workload.uid));
            let is_touched = || self.touched.iter().any(|touched| touched.has(cluster, workload));
            let status = match last {
                Some(last) if last.state() == RolloutState::Complete && !is_touched() => last.clone(),
                _ => match source.status_with_events(workload, &self.client).await {
                    Ok(status) => status,
                    Err(error) => failed(workload, &error),
                },
            };
            now.insert(workload.uid.clone(), status);
        }
        self.touched.clear();
        self.statuses = now.values().cloned().collect();
        sort(&mut self.statuses);
        self.by_uid = Some(now);
        Ok(())
    }

    /// The workloads that the command line names. Later one of them may be deleted; at the beginning each must be there.
    fn workloads<'c>(&self, cluster: &'c Cluster) -> anyhow::Result<Vec<&'c Served>> {
        let namespace = self.args.namespace.as_deref();
        let mut found: Vec<&Served> = Vec::new();
        for target in self.targets {
            if self.by_uid.is_none() || target.name.is_none() {
                found.extend(cluster.find(target, namespace)?);
            } else if let Ok(there) = cluster.find(target, namespace) {
                found.extend(there);
            }
        }
        found.retain(|workload| is_shown(self.args, workload));
        Ok(found)
    }
}

/// The status of a workload that cannot be computed says why.
fn failed(workload: &Served, error: &anyhow::Error) -> v1::WorkloadStatus {
    let message = format!("{error:#}");
    v1::WorkloadStatus {
        kind: workload.kind.name().to_owned(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
        uid: workload.uid.clone(),
        message: message.clone(),
        causes: vec![v1::BlockCause {
            reason: "NotComputed".to_owned(),
            message,
            ..v1::BlockCause::default()
        }],
        ..v1::WorkloadStatus::default()
    }
}
