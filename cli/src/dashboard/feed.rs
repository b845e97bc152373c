//! Keeps the board up to date: computes the statuses of workloads whose objects have changed.

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::ensure;
use jiff::Timestamp;
use kube::Client;
use nodewise_dashboard::{self as dashboard, Board, Workload};
use nodewise_projection::Key;
use nodewise_proto::v1;
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::block_in_place,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{commands, divergence::Watched, objects::Objects, questions::Question, told_cache::ToldCache};
use crate::{
    engine::Engine,
    input::{Change, Served},
    kind::Kind,
    refusals::Told,
    request::{NodeBuckets, RequestFactory},
    simulate::play::When,
    view,
};

/// Events that follow each other are shown together.
const TOGETHER: Duration = Duration::from_millis(150);
/// The status of a workload that is not done is computed again after this time: a pod may be late by now.
const AGAIN: Duration = Duration::from_secs(2);
/// At most one part in this many of the time is spent on computing what did not change.
const SHARE: u32 = 5;
/// The statuses of a long computation are shown this often.
const SHOWN: Duration = Duration::from_millis(250);

/// The kinds that the page shows.
pub(super) const KINDS: [Kind; 3] = [Kind::DaemonSet, Kind::Deployment, Kind::ReplicaSet];

/// Where the objects are from.
pub(super) struct Origin {
    /// The URL of the apiserver, or the names of files.
    pub(super) source: String,
    pub(super) namespaces: Vec<String>,
    /// See `Cluster::trace_url`.
    pub(super) trace_url: String,
    /// Reads Events. `None` for files.
    pub(super) client: Option<Client>,
    pub(super) now: Option<Timestamp>,
    pub(super) profile: v1::Profile,
}

/// Feeds a board.
pub(super) struct Feed {
    objects: Objects,
    origin: Origin,
    engine: Arc<Engine>,
    board: Arc<Board>,
    questions: mpsc::Receiver<Question>,
    divergences: Watched,
    /// `None` for files.
    refusals: Option<ToldCache>,
    buckets: NodeBuckets,
    /// The workloads that must be looked at again without an event.
    unfinished: HashSet<dashboard::Key>,
    /// Whether all workloads are new.
    is_first: bool,
    /// When the unfinished ones are looked at again.
    again: Instant,
    problem: String,
    /// Whether nothing is read any more.
    has_ended: bool,
}

impl Feed {
    pub(super) fn new(
        objects: Objects,
        origin: Origin,
        engine: Arc<Engine>,
        board: Arc<Board>,
        questions: mpsc::Receiver<Question>,
    ) -> Self {
        let feed = Self {
            objects,
            refusals: origin.client.clone().map(ToldCache::new),
            origin,
            engine,
            board,
            questions,
            divergences: Watched::default(),
            buckets: NodeBuckets::default(),
            unfinished: HashSet::new(),
            is_first: true,
            again: Instant::now(),
            problem: String::new(),
            has_ended: false,
        };
        feed.say();
        feed
    }

    /// Feeds until `end` is cancelled.
    ///
    /// # Errors
    /// The user has no right to list a kind, or an object cannot be read.
    pub(super) async fn run(mut self, end: CancellationToken) -> anyhow::Result<()> {
        let mut until = Instant::now();
        loop {
            tokio::select! {
                change = self.objects.next() => match change {
                    Ok(Change::Objects | Change::Failed(_)) => {
                        self.set_problem(self.objects.problem());
                        until = until.min(Instant::now() + TOGETHER);
                    }
                    Err(error) => {
                        self.has_ended = true;
                        self.set_problem(error.to_string());
                        return Err(error.into());
                    }
                },
                Some(question) = self.questions.recv() => {
                    let when = When { now: self.origin.now, profile: self.origin.profile };
                    block_in_place(|| question.answer(&self.objects, when));
                }
                () = sleep_until(until), if self.objects.is_complete() => {
                    let began = Instant::now();
                    self.refresh().await;
                    let idle = if self.unfinished.is_empty() { Duration::from_hours(1) } else { AGAIN };
                    until = began + idle.max(began.elapsed() * SHARE);
                }
                () = end.cancelled() => return Ok(()),
            }
        }
    }

    fn set_problem(&mut self, problem: String) {
        if self.problem != problem {
            self.problem = problem;
            self.say();
        }
    }

    fn say(&self) {
        self.board.set_cluster(dashboard::Cluster {
            source: self.origin.source.clone(),
            namespaces: self.origin.namespaces.clone(),
            trace_url: self.origin.trace_url.clone(),
            dump: self.objects.cluster().is_dump,
            complete: !self.is_first,
            problem: self.problem.clone(),
            ended: self.has_ended,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        });
    }

    /// Computes what may have changed.
    async fn refresh(&mut self) {
        let touched = self.objects.take_touched();
        if touched.has_nodes() || self.is_first {
            self.buckets = NodeBuckets::of(self.objects.cluster());
        }
        let is_again = Instant::now() >= self.again;
        if is_again {
            self.again = Instant::now() + AGAIN;
        }
        let cluster = self.objects.cluster();
        let requests = RequestFactory::with_nodes(
            cluster,
            self.buckets.clone(),
            self.origin.now,
            self.origin.profile,
        );
        let computing = Computing {
            source: view::Source {
                cluster,
                engine: &self.engine,
                requests: &requests,
            },
            refusals: self.refusals.as_ref(),
            lacks_nodes: self.objects.lacks_nodes(),
        };
        let mut there = HashSet::new();
        let mut ready = Vec::new();
        let mut shown = Instant::now();
        for workload in shown_workloads(cluster) {
            let key = key(workload);
            there.insert(key.clone());
            let is_due = self.is_first
                || touched.has(cluster, workload)
                || (is_again && self.unfinished.contains(&key));
            if !is_due {
                continue;
            }
            let (status, plan) = computing.status(workload).await;
            let planned = Key::new(workload.kind.name(), &workload.namespace, &workload.name);
            let now = (requests.now(), Instant::now());
            let (divergence, differs) = self.divergences.record(&planned, &plan, now);
            let is_done = status.state() == v1::RolloutState::Complete && !differs;
            if is_done || cluster.is_dump {
                self.unfinished.remove(&key);
            } else {
                self.unfinished.insert(key);
            }
            ready.push(Workload {
                commands: commands::of(&status),
                status,
                divergence,
            });
            if shown.elapsed() >= SHOWN {
                self.board.put(std::mem::take(&mut ready));
                shown = Instant::now();
                tokio::task::yield_now().await;
            }
        }
        self.board.put(ready);
        for gone in self.board.keys().iter().filter(|key| !there.contains(*key)) {
            self.unfinished.remove(gone);
            if let Some(kind) = Kind::parse(&gone.kind, None) {
                self.divergences
                    .forget(&Key::new(kind.name(), &gone.namespace, &gone.name));
            }
        }
        self.board.retain(|key| there.contains(key));
        if self.is_first {
            self.is_first = false;
            self.say();
        }
    }
}

/// The workloads that are shown: a ReplicaSet of a Deployment is part of that.
fn shown_workloads(cluster: &crate::input::Cluster) -> impl Iterator<Item = &Served> {
    let all = KINDS.into_iter();
    all.flat_map(|kind| cluster.workloads(kind))
        .filter(|one| one.kind != Kind::ReplicaSet || one.controller.is_none())
}

fn key(workload: &Served) -> dashboard::Key {
    dashboard::Key {
        kind: workload.kind.name().to_owned(),
        namespace: workload.namespace.clone(),
        name: workload.name.clone(),
    }
}

/// Computes statuses.
struct Computing<'a> {
    source: view::Source<'a>,
    refusals: Option<&'a ToldCache>,
    lacks_nodes: bool,
}

impl Computing<'_> {
    /// The status of a workload, and its plan. If it cannot be computed, the status says why.
    async fn status(&self, workload: &Served) -> (v1::WorkloadStatus, v1::Plan) {
        self.computed(workload).await.unwrap_or_else(|error| {
            let status = v1::WorkloadStatus {
                kind: workload.kind.name().to_owned(),
                namespace: workload.namespace.clone(),
                name: workload.name.clone(),
                uid: workload.uid.clone(),
                message: format!("the status cannot be computed: {error:#}"),
                ..v1::WorkloadStatus::default()
            };
            (status, v1::Plan::default())
        })
    }

    async fn computed(&self, workload: &Served) -> anyhow::Result<(v1::WorkloadStatus, v1::Plan)> {
        ensure!(
            workload.kind != Kind::DaemonSet || !self.lacks_nodes,
            "the right to list nodes is missing"
        );
        let (plan, explanation) = match self.source.engine {
            // The planner of this process computes. Meanwhile other threads do what this one would.
            Engine::InProcess(_) => {
                block_in_place(|| Handle::current().block_on(self.source.planned(workload)))?
            }
            Engine::Remote(_) => self.source.planned(workload).await?,
        };
        let told = match self.refusals {
            Some(refusals) if nodewise_status::lacks_a_pod(&plan, &explanation) => refusals.told(workload),
            _ => Told::default(),
        };
        let status = self.source.status_told(workload, &told, &plan, &explanation)?;
        Ok((status, plan))
    }
}
