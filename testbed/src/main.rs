//! `nodewise-testbed`: builds the testbed's tools, and runs a control plane for manual use.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand, ValueEnum};
use nodewise_testbed::{ControlPlane, Tool};
use tokio::signal::unix::{SignalKind, signal};

/// A real Kubernetes control plane for tests, built from Go modules.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build every tool that tests need and that is not built yet; not Kubernetes' end-to-end suite (`tool e2e.test`).
    Build,
    /// Print the path of one tool, and build it first if necessary.
    Tool {
        /// The tool's name.
        #[arg(value_parser = tool)]
        tool: Tool,
    },
    /// Run a control plane until Ctrl-C.
    Up(Up),
}

#[derive(clap::Args)]
struct Up {
    /// How many fake nodes to create.
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// The components beside etcd and kube-apiserver.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "controller-manager,scheduler,kwok"
    )]
    with: Vec<Part>,
    /// The controllers that kube-controller-manager runs: a comma list of names, `-name` and `*`, as in its own flag
    /// `--controllers`. With '' it runs none. The DaemonSet controller is off by default, because Nodewise replaces it.
    #[arg(long, default_value = "*,-daemonset-controller")]
    controllers: String,
    /// The Collector to which the apiserver and etcd export their spans: http://HOST:PORT, OTLP over gRPC.
    #[arg(long, value_name = "URL")]
    traces: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Garbage collection, quotas, node lifecycle and so on.
    ControllerManager,
    /// Binds pods to nodes.
    Scheduler,
    /// Fake kubelets: nodes and pods become ready.
    Kwok,
    /// No further component.
    None,
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(action: Action) -> Result<()> {
    match action {
        Action::Build => Tool::ALL
            .into_iter()
            .filter(|tool| tool.is_built_ahead())
            .try_for_each(|tool| tool.path().map(drop)),
        Action::Tool { tool } => {
            println!("{}", tool.path()?.display());
            Ok(())
        }
        Action::Up(args) => tokio::runtime::Runtime::new()
            .context("starting the async runtime")?
            .block_on(up(args)),
    }
}

fn tool(name: &str) -> Result<Tool, String> {
    Tool::ALL
        .into_iter()
        .find(|tool| tool.name() == name)
        .ok_or_else(|| {
            let names: Vec<_> = Tool::ALL.into_iter().map(Tool::name).collect();
            format!("the tools are: {}", names.join(", "))
        })
}

async fn up(args: Up) -> Result<()> {
    // The handlers are installed first, so that a Ctrl-C during the start also cleans up.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shown = async {
        let control_plane = start(&args).await?;
        watch(&control_plane).await
    };
    tokio::select! {
        result = shown => result,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }?;
    eprintln!("testbed: stopped, and nothing is left of it");
    Ok(())
}

async fn start(args: &Up) -> Result<ControlPlane> {
    eprintln!("testbed: starting a control plane");
    let mut builder = ControlPlane::builder()
        .scheduler(args.with.contains(&Part::Scheduler))
        .kwok(args.with.contains(&Part::Kwok))
        .audit_log(true);
    if args.with.contains(&Part::ControllerManager) {
        builder = builder.controllers(&args.controllers);
    }
    if let Some(collector) = &args.traces {
        builder = builder.tracing(collector);
    }
    let control_plane = builder.start().await?;
    if args.nodes > 0 {
        eprintln!("testbed: creating {} nodes", args.nodes);
        control_plane.create_nodes(args.nodes).await?;
    }
    let kubectl = tokio::task::spawn_blocking(|| Tool::Kubectl.path()).await??;
    eprintln!(
        "testbed: {} is up, with {} nodes",
        control_plane.server(),
        args.nodes
    );
    eprintln!(
        "testbed: logs are in {}",
        control_plane.workdir().logs().display()
    );
    eprintln!("testbed: stop it with Ctrl-C; in another terminal:");
    println!("export KUBECONFIG={}", control_plane.kubeconfig().display());
    println!("alias kubectl={}", kubectl.display());
    Ok(control_plane)
}

/// Returns only if a component has ended, which is an error.
async fn watch(control_plane: &ControlPlane) -> Result<()> {
    let mut seconds = tokio::time::interval(std::time::Duration::from_secs(1));
    loop {
        seconds.tick().await;
        control_plane.check_running()?;
    }
}
