//! A very large cluster: the memory of the executor's caches, and a plan made from them by the real server.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::de::DeserializeOwned;

use crate::objects::LargeSize;
use crate::programs;
use crate::report::Finding;

mod finding;
pub mod process;

pub use process::Caches;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The cluster.
    pub cluster: LargeSize,
    /// The number of calls in a round: all inline, one pod changed.
    pub calls: [usize; 2],
    /// The number of rounds, each with new processes.
    pub rounds: usize,
}

/// The programs that are measured.
#[derive(Clone, Debug)]
pub struct Programs {
    /// nodewise-bench-caches, which has the caches.
    pub caches: PathBuf,
    /// nodewise-server.
    pub server: PathBuf,
}

impl Programs {
    /// Those next to this program.
    ///
    /// # Errors
    /// One was not built.
    pub fn find() -> Result<Self> {
        Ok(Self {
            caches: programs::find("nodewise-bench-caches")?,
            server: programs::find("nodewise-server")?,
        })
    }
}

/// The measurements of a round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Of the process with all nodes and pods, and of the plans.
    pub caches: Caches,
    /// The resident memory of another process with the same pods and without a node, in MB.
    pub pods_alone_mb: f64,
}

/// Measures the given number of rounds.
///
/// # Errors
/// A program ends with an error.
pub async fn measure(size: Size, programs: &Programs) -> Result<Finding> {
    let mut rounds = Vec::new();
    for number in 1..=size.rounds {
        let round = run(size, programs).await?;
        eprintln!("round {number} of {}: {}", size.rounds, round.caches);
        rounds.push(round);
    }
    finding::of(size, &rounds)
}

/// One round, in new processes.
///
/// # Errors
/// As [`measure`].
pub async fn run(size: Size, programs: &Programs) -> Result<Round> {
    let mut without_nodes = command(size, programs);
    without_nodes.arg("--pods-alone");
    Ok(Round {
        caches: output(command(size, programs), programs).await?,
        pods_alone_mb: output(without_nodes, programs).await?,
    })
}

/// Runs the program with the caches. Returns what it measured.
async fn output<T: DeserializeOwned>(command: std::process::Command, programs: &Programs) -> Result<T> {
    let output = tokio::process::Command::from(command)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("running {}", programs.caches.display()))?;
    ensure!(
        output.status.success(),
        "{} failed; what it said is above",
        programs.caches.display()
    );
    serde_json::from_slice(&output.stdout).context("reading what it measured")
}

fn command(size: Size, programs: &Programs) -> std::process::Command {
    let LargeSize {
        nodes,
        pods,
        daemon_sets,
    } = size.cluster;
    let [inline, changed] = size.calls;
    let mut command = programs::command(&programs.caches);
    for (flag, value) in [
        ("--nodes", nodes),
        ("--pods", pods),
        ("--daemon-sets", daemon_sets),
        ("--inline-calls", inline),
        ("--changed-calls", changed),
    ] {
        command.arg(flag).arg(value.to_string());
    }
    let server: &Path = &programs.server;
    command.arg("--server").arg(server);
    command
}
