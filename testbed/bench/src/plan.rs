//! The time to decide: upstream's sync and Nodewise's planner on the same objects and the same core, in turns.

use std::collections::HashSet;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use nodewise_client::Digest;
use nodewise_planner::daemonset::plan_cache::PlanCache;
use nodewise_planner::snapshot::Snapshot;
use nodewise_planner::{
    daemonset::DaemonSet,
    plan::{Plan, Verdict},
};
use nodewise_proto::bucket::Receiver;
use nodewise_server::{Engine, Refusal, never};
use nodewise_testbed::{Tool, Workdir};

use crate::cores;
use crate::measure::Spread;
use crate::objects::{self, Caches, Cluster};
use crate::report::Finding;

mod finding;

/// The cluster sizes that are measured for both sides, and for the planner only.
const WITH_UPSTREAM: [usize; 3] = [1_000, 5_000, 15_000];
const ALONE: [usize; 2] = [50_000, 100_000];
/// The amount of work in a round: nodes in upstream's syncs, nodes in plans from scratch, and plans after a change.
const UPSTREAM_NODES: usize = 30_000;
const PLANNED_NODES: usize = 300_000;
const CHANGES: usize = 200;
/// Measures the given number of rounds.
///
/// # Errors
/// Upstream's program cannot be built, or a side finds something to do in a settled cluster.
pub fn measure(rounds: usize) -> Result<Finding> {
    let sizes = WITH_UPSTREAM.map(|nodes| (nodes, true)).into_iter();
    let sizes: Vec<_> = sizes.chain(ALONE.map(|nodes| (nodes, false))).collect();
    finding::finding(&times(&sizes, rounds)?)
}

/// The times at one size, in µs.
#[derive(Debug)]
pub struct Times {
    /// The number of nodes.
    pub nodes: usize,
    /// Upstream, if measured.
    pub upstream: Option<Spread>,
    /// The planner, from scratch.
    pub scratch: Spread,
    /// The planner, after one pod changed.
    pub changed: Spread,
}

/// Measures clusters of these sizes, with upstream where the flag is set.
///
/// # Errors
/// As [`measure`].
pub fn times(sizes: &[(usize, bool)], rounds: usize) -> Result<Vec<Times>> {
    ensure!(rounds > 0, "nothing is measured in no round");
    let program = if sizes.iter().any(|(_, upstream)| *upstream) {
        Some(Tool::UpstreamPlain.path()?)
    } else {
        None
    };
    let core = *cores::allowed()?.last().context("there is no core")?;
    cores::on(&[core], || {
        let made = sizes.iter().map(|&(nodes, with_upstream)| {
            let upstream = program.as_deref().filter(|_| with_upstream);
            Sides::new(nodes, upstream).with_context(|| format!("at {nodes} nodes"))
        });
        let mut all: Vec<_> = made.collect::<Result<_>>()?;
        for _ in 0..rounds {
            for sides in &mut all {
                sides
                    .round()
                    .with_context(|| format!("at {} nodes", sides.nodes))?;
            }
        }
        all.into_iter().map(Sides::times).collect()
    })
}

/// Both sides at one size.
struct Sides {
    nodes: usize,
    upstream: Option<Upstream>,
    planner: Planner,
    /// In µs, one value per round.
    upstream_times: Vec<f64>,
    scratch_times: Vec<f64>,
    changed_times: Vec<f64>,
}

impl Sides {
    fn new(nodes: usize, program: Option<&Path>) -> Result<Self> {
        let cluster = Arc::new(Cluster::settled(nodes, 1)?);
        let mut sides = Self {
            nodes,
            upstream: program
                .map(|program| Upstream::start(program, &cluster))
                .transpose()?,
            planner: Planner::new(&cluster)?,
            upstream_times: Vec::new(),
            scratch_times: Vec::new(),
            changed_times: Vec::new(),
        };
        // Warm-up, because the first calls take longer.
        if let Some(upstream) = &mut sides.upstream {
            upstream.syncs(2)?;
        }
        sides.planner.scratch(1)?;
        sides.planner.after_changes(2)?;
        Ok(sides)
    }

    fn round(&mut self) -> Result<()> {
        if let Some(upstream) = &mut self.upstream {
            let count = (UPSTREAM_NODES / self.nodes).clamp(2, 100);
            self.upstream_times.push(upstream.syncs(count)?);
        }
        let count = (PLANNED_NODES / self.nodes).clamp(3, 1_000);
        self.scratch_times.push(self.planner.scratch(count)?);
        self.changed_times.push(self.planner.after_changes(CHANGES)?);
        Ok(())
    }

    fn times(self) -> Result<Times> {
        Ok(Times {
            nodes: self.nodes,
            upstream: self
                .upstream
                .map(|_| Spread::of(self.upstream_times))
                .transpose()?,
            scratch: Spread::of(self.scratch_times)?,
            changed: Spread::of(self.changed_times)?,
        })
    }
}

/// Upstream's program with one cluster. It is killed on drop.
#[derive(Debug)]
struct Upstream {
    process: Child,
    input: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The folder with the case file.
    _workdir: Arc<Workdir>,
}

impl Upstream {
    fn start(program: &Path, cluster: &Cluster) -> Result<Self> {
        let workdir = Workdir::new()?;
        let path = workdir.path().join("case.json");
        let mut file = BufWriter::new(File::create(&path).context("making the case's file")?);
        serde_json::to_writer(&mut file, &cluster.case()?).context("writing the case")?;
        file.flush().context("writing the case")?;
        let mut process = Command::new(program)
            .arg("bench")
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let (input, output) = process
            .stdin
            .take()
            .zip(process.stdout.take())
            .context("no pipes")?;
        Ok(Self {
            process,
            input,
            answers: BufReader::new(output),
            _workdir: workdir,
        })
    }

    /// The average time of `count` syncs, in µs.
    fn syncs(&mut self, count: usize) -> Result<f64> {
        let mut answer = String::new();
        writeln!(self.input, "{count}")
            .and_then(|()| self.answers.read_line(&mut answer))
            .context("asking upstream's program")?;
        ensure!(
            !answer.is_empty(),
            "upstream's program has ended; what it said is above"
        );
        let times: Vec<u64> = serde_json::from_str(&answer).context("reading its answer")?;
        ensure!(
            times.len() == count,
            "{} answers to {count} questions",
            times.len()
        );
        Ok(mean(Duration::from_nanos(times.iter().sum()), count))
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // The process may already have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Nodewise's planner with one cluster, and the executor's caches and the engine that feed it.
struct Planner {
    caches: Caches,
    engine: Engine,
    /// The buckets in the engine's cache.
    known: HashSet<Digest>,
    settled: Snapshot<DaemonSet>,
    memory: PlanCache,
    changes: usize,
}

impl Planner {
    fn new(cluster: &Arc<Cluster>) -> Result<Self> {
        let mut caches = Caches::of(cluster)?;
        let engine = objects::engine();
        let mut known = HashSet::new();
        let settled = snapshot(&mut caches, &engine, &mut known)?;
        Ok(Self {
            caches,
            engine,
            known,
            settled,
            memory: PlanCache::default(),
            changes: 0,
        })
    }

    /// The average time of `count` plans without memory of an earlier plan, in µs.
    fn scratch(&self, count: usize) -> Result<f64> {
        let begun = Instant::now();
        for _ in 0..count {
            let plan = black_box(nodewise_planner::daemonset::plan(black_box(&self.settled)));
            ensure!(
                plan.verdict == Verdict::Noop,
                "there is something to do: {plan:?}"
            );
        }
        Ok(mean(begun.elapsed(), count))
    }

    /// The average time of `count` plans, each after a change of one pod, in µs.
    fn after_changes(&mut self, count: usize) -> Result<f64> {
        let mut all = Duration::ZERO;
        for _ in 0..count {
            let ready = self.changes % 2 == 1;
            // A node in another bucket than before.
            let node = (self.changes / 2 * 7_919) % self.caches.nodes();
            self.changes += 1;
            self.caches.set_ready(0, node, ready)?;
            let snapshot = snapshot(&mut self.caches, &self.engine, &mut self.known)?;
            let begun = Instant::now();
            let plan = black_box(again(black_box(&snapshot), &mut self.memory)?);
            all += begun.elapsed();
            let expected = if ready { Verdict::Noop } else { Verdict::Apply };
            ensure!(plan.verdict == expected, "after a change the plan is {plan:?}");
        }
        Ok(mean(all, count))
    }
}

/// A plan that uses the memory of the last one, as in the engine.
fn again(snapshot: &Snapshot<DaemonSet>, memory: &mut PlanCache) -> Result<Plan> {
    let unique = memory.identify(&snapshot.buckets);
    unique.map_err(|twice| anyhow!("pods are there twice: {twice:?}"))?;
    nodewise_planner::daemonset::plan_until(snapshot, memory, &never).context("nobody stopped it")
}

/// The decoded snapshot of a request with only the buckets that the engine does not have.
fn snapshot(
    caches: &mut Caches,
    engine: &Engine,
    known: &mut HashSet<Digest>,
) -> Result<Snapshot<DaemonSet>> {
    let request = caches.request(0, &Receiver::new(&|digest| known.contains(digest)));
    known.extend(objects::digests(&request));
    match engine.snapshot(request, &never) {
        // The engine has evicted buckets in the meantime.
        Err(Refusal::MissingBuckets(_)) => Ok(engine.snapshot(caches.request(0, &Receiver::EMPTY), &never)?),
        answer => Ok(answer?),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn mean(all: Duration, count: usize) -> f64 {
    all.as_secs_f64() * 1e6 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_planner_is_measured_alone() -> Result<()> {
        let times = times(&[(20, false), (40, false)], 2)?;
        let nodes: Vec<_> = times
            .iter()
            .map(|times| (times.nodes, times.scratch.rounds()))
            .collect();
        assert_eq!(nodes, [(20, 2), (40, 2)]);
        assert!(
            times
                .iter()
                .all(|times| times.changed.min() > 0.0 && times.upstream.is_none())
        );
        Ok(())
    }
}
