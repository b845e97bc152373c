//! `nodewise-bench-caches`: the executor's caches of a very large cluster, for the section `scale` of `nodewise-bench`. Prints what it
//! measured.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use nodewise_bench::objects::LargeSize;
use nodewise_bench::scale::process;

/// That of the executor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Fills the executor's caches, and asks a server for plans.
#[derive(Debug, Parser)]
#[command(name = "nodewise-bench-caches", version)]
struct Args {
    /// The number of nodes
    #[arg(long)]
    nodes: usize,

    /// The number of pods
    #[arg(long)]
    pods: usize,

    /// The number of DaemonSets
    #[arg(long)]
    daemon_sets: usize,

    /// The number of calls with all inline
    #[arg(long)]
    inline_calls: usize,

    /// The number of calls after one pod changed
    #[arg(long)]
    changed_calls: usize,

    /// Caches the pods without a node, and asks for no plan
    #[arg(long)]
    pods_alone: bool,

    /// The program nodewise-server
    #[arg(long)]
    server: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let size = LargeSize {
        nodes: args.nodes,
        pods: args.pods,
        daemon_sets: args.daemon_sets,
    };
    if args.pods_alone {
        println!("{}", process::pods_alone(size)?);
        return Ok(());
    }
    let calls = [args.inline_calls, args.changed_calls];
    let round = process::run(size, &args.server, calls).await?;
    println!("{}", serde_json::to_string(&round)?);
    Ok(())
}
