//! The plans per second of CPU time of a server, and the throughput of two servers compared with one.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;

use crate::figure::figure;
use crate::generator::{Client, Load};
use crate::measure::{self, Spread};
use crate::replica::Replica;
use crate::report::{Bar, Chart, Finding, Shape, Target};
use crate::{cores, programs};

const NODES: usize = 5_000;
/// The number of workloads, each with one call in progress.
const WORKLOADS: usize = 8;
/// The number of changes of each workload in a run.
const CHANGES: usize = 750;
/// The goals.
const PER_CPU_SECOND: f64 = 6_000.0;
const TWICE: f64 = 1.8;

/// Measures the given number of rounds.
///
/// # Errors
/// The server was not built or answers incorrectly, or there are fewer than two cores.
pub async fn measure(rounds: usize) -> Result<Finding> {
    let program = programs::find("nodewise-server")?;
    let measured = tokio::task::spawn_blocking(move || {
        let load = Load::new(NODES, WORKLOADS, CHANGES)?;
        let bytes = load.bytes_per_change();
        Ok::<_, anyhow::Error>((runs(&program, &load, rounds)?, bytes))
    });
    let (rounds, bytes) = measured.await.context("measuring panicked")??;
    finding(&rounds, bytes)
}

/// The measurements of one run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The number of plans.
    pub plans: usize,
    /// The time from the first request to the last response.
    pub wall: Duration,
    /// The CPU time of all servers.
    pub servers: Duration,
    /// The CPU time of the load generator.
    pub generator: Duration,
    /// The number of servers, each on its own core.
    pub replicas: usize,
    /// Whether the generator shared the servers' cores.
    pub shared: bool,
}

/// Runs the load for one and for two replicas in each round, with new servers each time.
///
/// # Errors
/// As [`measure`].
pub fn runs(program: &Path, load: &Load, rounds: usize) -> Result<Vec<[Run; 2]>> {
    let cores = cores::allowed()?;
    ensure!(
        cores.len() >= 2,
        "two replicas need two cores; this process may use {cores:?}"
    );
    let round = |_| Ok([run(program, load, &cores, 1)?, run(program, load, &cores, 2)?]);
    (0..rounds).map(round).collect()
}

/// Runs the load for `replicas` replicas, each on one of the first cores. The generator uses the remaining cores, or
/// all cores if none remain.
fn run(program: &Path, load: &Load, cores: &[usize], replicas: usize) -> Result<Run> {
    let (theirs, left) = cores.split_at(replicas);
    let started = theirs.iter().map(|&core| Replica::start_on(core, program));
    let servers: Vec<_> = started.collect::<Result<_>>()?;
    let shared = left.is_empty();
    cores::on(if shared { cores } else { left }, || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let connections = try_join_all(servers.iter().map(Replica::connect)).await?;
            let clients: Vec<_> = connections.into_iter().map(Client::new).collect();
            load.warm_up(&clients).await.context("the first questions")?;
            let before = (taken(&servers)?, measure::cpu_time(std::process::id())?);
            let begun = Instant::now();
            load.run(&clients).await?;
            let wall = begun.elapsed();
            Ok(Run {
                plans: load.changes(),
                wall,
                servers: taken(&servers)?.saturating_sub(before.0),
                generator: measure::cpu_time(std::process::id())?.saturating_sub(before.1),
                replicas,
                shared,
            })
        })
    })
    .with_context(|| format!("{replicas} replicas"))
}

/// The CPU time of the servers so far.
fn taken(servers: &[Replica]) -> Result<Duration> {
    servers.iter().map(Replica::cpu_time).sum()
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
impl Run {
    /// Plans per second of wall-clock time.
    fn per_second(&self) -> f64 {
        self.plans as f64 / self.wall.as_secs_f64()
    }

    /// Plans per second of the servers' CPU time.
    fn per_cpu_second(&self) -> f64 {
        self.plans as f64 / self.servers.as_secs_f64()
    }

    /// The number of the servers' cores, minus the share that the generator used.
    fn cores_left(&self) -> f64 {
        let cores = self.replicas as f64;
        if self.shared {
            cores - self.generator.as_secs_f64() / self.wall.as_secs_f64()
        } else {
            cores
        }
    }

    /// Plans per second and core that was left to the servers.
    fn per_core_left(&self) -> f64 {
        self.per_second() / self.cores_left()
    }

    /// The generator's share of all CPU time, in percent.
    fn generators_share(&self) -> f64 {
        100.0 * self.generator.as_secs_f64() / (self.generator + self.servers).as_secs_f64()
    }
}

/// The throughput of two replicas divided by that of one: measured, and relative to the cores left to them.
fn scaling([one, two]: &[Run; 2]) -> [f64; 2] {
    [
        two.per_second() / one.per_second(),
        2.0 * two.per_core_left() / one.per_core_left(),
    ]
}

/// The table, the goals and the chart.
fn finding(rounds: &[[Run; 2]], bytes: f64) -> Result<Finding> {
    let shared = rounds.iter().any(|round| round[1].shared);
    let of =
        |which: usize, value: fn(&Run) -> f64| Spread::of(rounds.iter().map(|round| value(&round[which])));
    let row = |which: usize| -> Result<Vec<String>> {
        Ok(vec![
            figure(if which == 0 { 1.0 } else { 2.0 }),
            of(which, Run::per_second)?.to_string(),
            of(which, |run| run.servers.as_secs_f64())?.to_string(),
            of(which, |run| run.generator.as_secs_f64())?.to_string(),
            of(which, Run::generators_share)?.to_string(),
            of(which, Run::cores_left)?.to_string(),
            of(which, Run::per_cpu_second)?.to_string(),
        ])
    };
    let [raw, left] = [0, 1].map(|which| Spread::of(rounds.iter().map(|round| scaling(round)[which])));
    let (raw, left) = (raw?, left?);
    let (used, how) = if shared {
        (&left, "by the cores that the generator left them")
    } else {
        (&raw, "as it is: the generator has cores of its own")
    };
    Ok(Finding {
        title: "Plans per second, and replicas".to_owned(),
        about: about(shared, rounds, bytes, &raw, &left),
        columns: [
            "replicas",
            "plans/s",
            "servers' CPU, s",
            "generator's CPU, s",
            "generator's share, %",
            "cores left to servers",
            "plans per CPU second of the servers",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: vec![row(0)?, row(1)?],
        targets: vec![
            Target::at_least(
                "5,000 nodes, one change each, one replica on one core",
                PER_CPU_SECOND,
                of(0, Run::per_cpu_second)?.median(),
                "plans per CPU second",
            ),
            Target::at_least(
                format!("two replicas against one, {how}"),
                TWICE,
                used.median(),
                "times the plans",
            ),
        ],
        charts: vec![chart(
            &of(0, Run::per_second)?,
            &of(1, Run::per_second)?,
            &of(0, Run::per_core_left)?,
            &of(1, Run::per_core_left)?,
        )],
    })
}

fn about(shared: bool, rounds: &[[Run; 2]], bytes: f64, raw: &Spread, left: &Spread) -> String {
    let plans = rounds.first().map_or(0, |round| round[0].plans);
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let plans = figure(plans as f64);
    let why = if shared {
        "This machine has no core besides those of the two replicas. A single replica has its core to itself, because the \
         generator runs on the other core; two replicas share their cores with the generator. So the goal is compared with the \
         plans per second and core that was left to the replicas: twice those of two replicas, divided by those of one. While a \
         replica waits, its core counts as left to it."
    } else {
        "The generator has its own cores in both cases, so the goal is compared with the measured figure."
    };
    format!(
        "{WORKLOADS} DaemonSets on the same 5,000 nodes. Before each request one pod of its DaemonSet becomes ready or unready. \
         Its bucket is sent inline, everything else by digest ({kb} kB a request). A run is {plans} plans, with one replica and \
         then with two. Each replica is a new process, pinned to one core, with all buckets in its cache. Two replicas have \
         half of the DaemonSets each, as clients divide them by uid. For each DaemonSet one call is always in progress. The \
         load generator is one thread that sends requests encoded in advance and does not decode the responses. CPU time is \
         that of the processes according to the kernel.\n\n\
         Two replicas make {raw} times the plans of one as measured, and {left} times relative to the cores that were left to \
         them. {why}",
        kb = figure(bytes / 1e3),
    )
}

fn chart(one: &Spread, two: &Spread, one_left: &Spread, two_left: &Spread) -> Chart {
    let bar = |group: &str, who: &str, values: &Spread| Bar {
        group: group.to_owned(),
        who: who.to_owned(),
        values: values.clone(),
    };
    Chart {
        file: "replicas".to_owned(),
        title: "Plans per second, 5,000 nodes, one changed pod each".to_owned(),
        unit: "plans/s, more is better".to_owned(),
        logarithmic: false,
        shape: Shape::Bars(vec![
            bar("1 replica", "as it is", one),
            bar("1 replica", "per core left to the servers", one_left),
            bar("2 replicas", "as it is", two),
            bar("2 replicas", "per core left to the servers", two_left),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(replicas: usize, wall: f64, servers: f64, generator: f64, shared: bool) -> Run {
        Run {
            plans: 6_000,
            wall: Duration::from_secs_f64(wall),
            servers: Duration::from_secs_f64(servers),
            generator: Duration::from_secs_f64(generator),
            replicas,
            shared,
        }
    }

    fn measured(rounds: &[[Run; 2]]) -> Result<Vec<(String, bool)>> {
        let finding = finding(rounds, 14_000.0)?;
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert!(finding.about.contains("14 kB a request") && finding.about.contains("6,000 plans"));
        let told = finding
            .targets
            .into_iter()
            .map(|target| (target.measured, target.reached));
        Ok(told.collect())
    }

    /// One replica uses its core for two seconds. Two replicas and the generator use both cores for 1.25 seconds.
    #[test]
    fn scaling_subtracts_the_generators_share() -> Result<()> {
        let rounds = [[run(1, 2.0, 2.0, 0.5, false), run(2, 1.25, 2.0, 0.5, true)]];
        let [raw, left] = scaling(&rounds[0]);
        assert!(
            (raw - 1.6).abs() < 1e-9 && (left - 2.0).abs() < 1e-9,
            "{raw} {left}"
        );
        let expected = [("3,000 plans per CPU second", false), ("2 times the plans", true)];
        assert_eq!(
            measured(&rounds)?,
            expected.map(|(told, reached)| (told.to_owned(), reached))
        );
        Ok(())
    }

    #[test]
    fn generator_on_its_own_core_subtracts_nothing() -> Result<()> {
        let rounds = [[run(1, 2.0, 2.0, 0.5, false), run(2, 1.25, 2.0, 0.5, false)]];
        let expected = [
            ("3,000 plans per CPU second", false),
            ("1.6 times the plans", false),
        ];
        assert_eq!(
            measured(&rounds)?,
            expected.map(|(told, reached)| (told.to_owned(), reached))
        );
        Ok(())
    }
}
