//! `nodewise-upstream-e2e`: runs Kubernetes' own end-to-end tests of DaemonSets, ReplicaSets and Deployments against both owners,
//! and compares them.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use nodewise_upstream_e2e::{
    comparison::Comparison,
    owner::Owner,
    report::SuiteRun,
    suite::{self, Programs},
};
use tokio::signal::unix::{SignalKind, signal};

/// Runs Kubernetes' own end-to-end tests of DaemonSets, ReplicaSets and Deployments twice, each time on a new control plane: with
/// kube-controller-manager and with Nodewise as the owner of the workloads. Exits with status 0 if both pass and Nodewise
/// takes at most a second longer for each spec.
#[derive(Debug, Parser)]
#[command(name = "nodewise-upstream-e2e", version)]
struct Args {
    /// Keep the logs of all processes and the reports in this folder, with a subfolder for each owner
    #[arg(long, default_value = "target/upstream-e2e", value_name = "DIR")]
    logs: PathBuf,

    /// Additional flags of nodewise-executor
    #[arg(last = true, value_name = "EXECUTOR_FLAG")]
    executor_flags: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("upstream-e2e: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether Nodewise did as well as kube-controller-manager.
fn run(args: &Args) -> Result<bool> {
    let runtime = tokio::runtime::Runtime::new().context("starting the async runtime")?;
    let comparison = runtime.block_on(async {
        // On Ctrl-C the control plane must be dropped too, so that its processes end.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::select! {
            comparison = both(args) => comparison,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })?;
    println!("\n{}", comparison.table());
    let objections = comparison.objections();
    for objection in &objections {
        println!("{objection}\n");
    }
    println!("Logs and reports are in {}.", args.logs.display());
    if objections.is_empty() {
        println!("Nodewise passed all specs, and took no longer than it may.");
    }
    Ok(objections.is_empty())
}

async fn both(args: &Args) -> Result<Comparison> {
    let programs = tokio::task::spawn_blocking(Programs::build).await??;
    Ok(Comparison {
        peer: one(args, &programs, Owner::KubeControllerManager).await?,
        nodewise: one(args, &programs, Owner::Nodewise).await?,
    })
}

async fn one(args: &Args, programs: &Programs, owner: Owner) -> Result<SuiteRun> {
    let name = owner.name();
    eprintln!(
        "upstream-e2e: running the suite with {name} as owner of the workloads (three or four minutes)"
    );
    let logs = args.logs.join(name);
    let run = suite::run(owner, &args.executor_flags, programs, &logs)
        .await
        .with_context(|| {
            format!(
                "running the suite with {name}; logs, if there are any, are in {}",
                logs.display()
            )
        })?;
    let passed = run.specs.iter().filter(|spec| spec.failure.is_none()).count();
    eprintln!(
        "upstream-e2e: {name}: {passed} of {} specs passed",
        run.specs.len()
    );
    Ok(run)
}
