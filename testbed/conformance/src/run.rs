//! Runs cases: several lanes, each with a control plane of its own, take them from one queue.

use std::{
    cell::RefCell,
    collections::VecDeque,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use futures::{StreamExt as _, future, stream};

use crate::{
    binaries::binaries,
    case::{Case, Script},
    cluster::Cluster,
    executor::{Executor, Running},
    proxy::FaultProxy,
    report::Outcome,
    scene::{Scene, Solo},
    server::Server,
};

/// Cases that share an executor and are under way at the same time.
const AT_ONCE: usize = 8;

/// How to run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The executor's command, for `sh -c "exec COMMAND"`.
    pub executor: String,
    /// Control planes at the same time.
    pub lanes: usize,
    /// How long anything may take that is waited for.
    pub deadline: Duration,
    /// Where to keep the logs of all processes, in a folder for each lane.
    pub logs: Option<PathBuf>,
}

/// What a lane takes at a time.
#[derive(Debug)]
enum Job {
    /// These share an executor.
    Shared(Vec<Case>),
    /// This one needs one for itself.
    Solo(Case),
}

impl Run {
    /// Runs these cases and tells each outcome as it comes. Gives all, in the order of the cases.
    ///
    /// # Errors
    /// The testbed fails; what an executor does wrong is an outcome.
    pub async fn run(&self, cases: &[Case], told: impl FnMut(&Outcome)) -> Result<Vec<Outcome>> {
        tokio::task::spawn_blocking(binaries).await??;
        let (shared, solos): (Vec<_>, Vec<_>) = cases
            .iter()
            .partition(|case| matches!(case.script, Script::Shared(_)));
        let mut jobs: VecDeque<Job> = solos.into_iter().map(Job::Solo).collect();
        if !shared.is_empty() {
            // First, since it takes the longest.
            jobs.push_front(Job::Shared(shared));
        }
        let lanes = self.lanes.clamp(1, jobs.len().max(1));
        let (jobs, told) = (RefCell::new(jobs), RefCell::new(told));
        let outcomes = RefCell::new(Vec::new());
        let tell = |outcome: Outcome| {
            told.borrow_mut()(&outcome);
            outcomes.borrow_mut().push(outcome);
        };
        let running = (1..=lanes).map(|number| self.lane(number, &jobs, &tell));
        future::try_join_all(running).await?;
        let mut all = outcomes.take();
        let place = |outcome: &Outcome| cases.iter().position(|case| case.id == outcome.id);
        all.sort_by_key(place);
        Ok(all)
    }

    async fn lane(&self, number: usize, jobs: &RefCell<VecDeque<Job>>, tell: &dyn Fn(Outcome)) -> Result<()> {
        let next = || jobs.borrow_mut().pop_front();
        let cluster = Arc::new(Cluster::start().await?);
        let lane = Lane {
            command: Arc::from(self.executor.as_str()),
            deadline: self.deadline,
            cluster: Arc::clone(&cluster),
            tell,
        };
        let mut result = Ok(());
        while result.is_ok()
            && let Some(job) = next()
        {
            result = match job {
                Job::Shared(cases) => lane.shared(cases).await,
                Job::Solo(case) => lane.solo(case).await,
            };
        }
        if let Some(logs) = &self.logs {
            cluster.keep_logs(&logs.join(format!("lane-{number}")))?;
        }
        result
    }
}

/// A control plane and what runs on it.
struct Lane<'a> {
    command: Arc<str>,
    deadline: Duration,
    cluster: Arc<Cluster>,
    tell: &'a dyn Fn(Outcome),
}

impl Lane<'_> {
    async fn shared(&self, cases: Vec<Case>) -> Result<()> {
        let plane = self.cluster.plane();
        let server = Server::start(plane, "127.0.0.1:0", &[]).await?;
        let proxy = Arc::new(FaultProxy::to(server.address()).await?);
        let kubeconfig = self.cluster.executor_kubeconfig()?;
        let executor = Running::default();
        let servers = [proxy.url()];
        executor.set(Some(Executor::start(
            plane,
            "executor",
            &self.command,
            &kubeconfig,
            &servers,
            &[],
        )?));
        let results = stream::iter(cases).map(|case| {
            let (proxy, executor) = (&proxy, &executor);
            async move {
                let Script::Shared(script) = case.script else {
                    return Ok(());
                };
                let began = Instant::now();
                let scene = Scene::set(&self.cluster, proxy, case.id, self.deadline).await?;
                let result = judged(script(&scene), executor).await;
                self.told(case, result, began);
                cleared(case, scene.clear().await);
                Ok(())
            }
        });
        let results: Vec<Result<()>> = results.buffer_unordered(AT_ONCE).collect().await;
        results.into_iter().collect()
    }

    async fn solo(&self, case: Case) -> Result<()> {
        let Script::Solo(script) = case.script else {
            return Ok(());
        };
        let began = Instant::now();
        let mut solo = Solo::set(&self.cluster, &self.command, case.id, self.deadline).await?;
        let executor = solo.executor();
        let result = judged(script(&mut solo), &executor).await;
        self.told(case, result, began);
        cleared(case, solo.clear().await);
        Ok(())
    }

    fn told(&self, case: Case, result: Result<()>, began: Instant) {
        (self.tell)(Outcome::new(&case, result, began.elapsed()));
    }
}

/// What comes of a script, or of an executor that ends while it should run; with the end of its log when it is at fault.
async fn judged(script: impl Future<Output = Result<()>>, executor: &Running) -> Result<()> {
    let result = tokio::select! {
        result = script => result,
        ended = executor.ended() => return Err(ended),
    };
    result.map_err(|error| match executor.get() {
        Some(executor) => anyhow!(
            "{error:#}\nthe end of the executor's log:\n{}",
            executor.log_tail()
        ),
        None => error,
    })
}

/// What a case leaves is no failure of the executor; the next one has nodes and a namespace of its own.
fn cleared(case: Case, result: Result<()>) {
    if let Err(error) = result {
        eprintln!("conformance: {} left something behind: {error:#}", case.id);
    }
}
