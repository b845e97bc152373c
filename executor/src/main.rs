//! The `nodewise-executor` command.

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::Parser as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use nodewise_executor::{args::Args, run};
use nodewise_runtime::connect;
use nodewise_telemetry::{Settings, Traces, with_causes};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the shutdown waits for tasks that are still running at the end.
const TASK_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let args = Args::parse();
    match execute(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nodewise-executor: {}", with_causes(error.to_string(), &*error));
            ExitCode::FAILURE
        }
    }
}

fn execute(args: &Args) -> anyhow::Result<()> {
    let mut config = args.config(&host_name())?;
    let runtime = tokio::runtime::Runtime::new().context("starting the async runtime")?;
    let telemetry = {
        let _inside = runtime.enter();
        nodewise_telemetry::init(Settings {
            service: env!("CARGO_BIN_NAME"),
            log_format: args.log_format,
            log_filter: args.log.clone(),
            traces: Traces::from_env(|name| std::env::var(name).ok()),
        })
        .context("reading --log")?
    };
    let result = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        let cluster = cluster(args).await?;
        config.apiserver = Some(cluster.cluster_url.clone());
        let client = connect::client(cluster).context("connecting to the cluster")?;
        let listener = TcpListener::bind(args.http_listen)
            .await
            .with_context(|| format!("listening on {}", args.http_listen))?;
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping: finishing what is under way");
            stop.cancel();
        });
        run(config, client, listener, shutdown)
            .await
            .map_err(anyhow::Error::from)
    });
    runtime.block_on(telemetry.shutdown());
    runtime.shutdown_timeout(TASK_SHUTDOWN_TIMEOUT);
    result
}

/// The configuration of the connection to the cluster.
async fn cluster(args: &Args) -> anyhow::Result<kube::Config> {
    let file = match &args.kubeconfig {
        Some(path) => {
            Some(Kubeconfig::read_from(path).with_context(|| format!("reading {}", path.display()))?)
        }
        // Not ~/.kube/config: the user has to say which cluster is written to.
        None => Kubeconfig::from_env().context("reading KUBECONFIG")?,
    };
    match file {
        Some(file) => kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .context("using the kubeconfig"),
        None => {
            kube::Config::incluster().context("not in a cluster: name one with --kubeconfig, or KUBECONFIG")
        }
    }
}

/// The name of this machine or pod. It appears in the Lease.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "unknown-host".to_owned()
    } else {
        name.to_owned()
    }
}
