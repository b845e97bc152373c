//! Runs cases in several lanes. Each lane has its own control plane, and all take jobs from one queue.

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
    controllers::Controllers,
    executor::{Executor, Running},
    fixture::{Fixture, SoloFixture},
    proxy::FaultProxy,
    report::Outcome,
    server::Server,
};

/// How many cases that share an executor run at the same time.
const AT_ONCE: usize = 8;

/// The settings of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// How many control planes run at the same time.
    pub lanes: usize,
    /// How long to wait for any condition.
    pub deadline: Duration,
    /// The folder for the logs of all processes, with one subfolder per lane.
    pub logs: Option<PathBuf>,
}

/// An executor, and the cases to run against it.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The executor's command, for `sh -c "exec COMMAND"`.
    pub executor: String,
    /// The cases.
    pub cases: Vec<Case>,
}

/// A job for a lane.
#[derive(Debug)]
struct Job {
    /// The index of the candidate.
    candidate: usize,
    controllers: Controllers,
    command: Arc<str>,
    script: JobScript,
}

#[derive(Debug)]
enum JobScript {
    /// These cases share an executor.
    Shared(Vec<Case>),
    /// This case has an executor to itself.
    Solo(Case),
}

impl Job {
    fn all_of(index: usize, candidate: &Candidate, controllers: Controllers) -> Vec<Self> {
        let job = |script| Self {
            candidate: index,
            controllers,
            command: Arc::from(controllers.command(&candidate.executor)),
            script,
        };
        let cases = candidate.cases.iter();
        let (shared, solos): (Vec<_>, Vec<_>) = cases
            .filter(|case| case.controllers == controllers)
            .partition(|case| matches!(case.script, Script::Shared(_)));
        let shared = (!shared.is_empty()).then_some(JobScript::Shared(shared));
        // The shared cases take the longest, so they start first.
        let scripts = shared.into_iter().chain(solos.into_iter().map(JobScript::Solo));
        scripts.map(job).collect()
    }
}

impl Run {
    /// Runs these cases against the executor and calls `told` with each outcome. Returns all outcomes, in the order of the
    /// cases.
    ///
    /// # Errors
    /// The testbed fails. A failure of the executor is an outcome, not an error.
    pub async fn run(&self, candidate: Candidate, told: impl FnMut(&Outcome)) -> Result<Vec<Outcome>> {
        let outcomes = self.run_all(&[candidate], told).await?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// The same for several executors, which take turns on the same control planes. Returns the outcomes of each.
    ///
    /// # Errors
    /// The testbed fails.
    pub async fn run_all(
        &self,
        candidates: &[Candidate],
        told: impl FnMut(&Outcome),
    ) -> Result<Vec<Vec<Outcome>>> {
        tokio::task::spawn_blocking(binaries).await??;
        let jobs: VecDeque<Job> = Controllers::ALL
            .into_iter()
            .flat_map(|controllers| {
                let candidates = candidates.iter().enumerate();
                candidates.flat_map(move |(index, candidate)| Job::all_of(index, candidate, controllers))
            })
            .collect();
        let lanes = self.lanes.clamp(1, jobs.len().max(1));
        let (jobs, told) = (RefCell::new(jobs), RefCell::new(told));
        let outcomes = RefCell::new(vec![Vec::new(); candidates.len()]);
        let tell = |candidate: usize, outcome: Outcome| {
            told.borrow_mut()(&outcome);
            outcomes.borrow_mut()[candidate].push(outcome);
        };
        let running = (1..=lanes).map(|number| self.lane(number, &jobs, &tell));
        future::try_join_all(running).await?;
        let mut all = outcomes.take();
        for (outcomes, candidate) in all.iter_mut().zip(candidates) {
            outcomes.sort_by_key(|outcome| candidate.cases.iter().position(|case| case.id == outcome.id));
        }
        Ok(all)
    }

    async fn lane(
        &self,
        number: usize,
        jobs: &RefCell<VecDeque<Job>>,
        tell: &dyn Fn(usize, Outcome),
    ) -> Result<()> {
        // Controllers that need another control plane come later in the queue.
        loop {
            let Some(controllers) = jobs.borrow().front().map(|job| job.controllers) else {
                return Ok(());
            };
            let cluster = Arc::new(controllers.start_cluster().await?);
            let next = || {
                let is_possible = |job: &mut Job| controllers.shares_cluster_with(job.controllers);
                jobs.borrow_mut().pop_front_if(is_possible)
            };
            let mut result = Ok(());
            while result.is_ok()
                && let Some(job) = next()
            {
                let lane = Lane {
                    command: job.command,
                    deadline: self.deadline,
                    cluster: Arc::clone(&cluster),
                    tell: &|outcome| tell(job.candidate, outcome),
                };
                result = match job.script {
                    JobScript::Shared(cases) => lane.shared(cases).await,
                    JobScript::Solo(case) => lane.solo(case).await,
                };
            }
            if let Some(logs) = &self.logs {
                cluster.keep_logs(&logs.join(controllers.log_folder(number)))?;
            }
            result?;
        }
    }
}

/// A control plane and the executor of the job that runs on it.
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
                let fixture = Fixture::prepare(&self.cluster, proxy, case.id, self.deadline).await?;
                let result = run_script(script(&fixture), executor).await;
                self.report(case, result, began);
                report_cleanup(case, fixture.clear().await);
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
        let mut solo = SoloFixture::prepare(&self.cluster, &self.command, case.id, self.deadline).await?;
        let executor = solo.executor();
        let result = run_script(script(&mut solo), &executor).await;
        self.report(case, result, began);
        report_cleanup(case, solo.clear().await);
        Ok(())
    }

    fn report(&self, case: Case, result: Result<()>, began: Instant) {
        (self.tell)(Outcome::new(&case, result, began.elapsed()));
    }
}

/// Runs a script. Fails if the script fails, with the end of the executor's log, or if an executor that should be
/// running ends.
async fn run_script(script: impl Future<Output = Result<()>>, executor: &Running) -> Result<()> {
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

/// A failed cleanup is not a failure of the executor, because the next case has its own nodes and namespace.
fn report_cleanup(case: Case, result: Result<()>) {
    if let Err(error) = result {
        eprintln!("conformance: {} left something behind: {error:#}", case.id);
    }
}
