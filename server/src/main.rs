//! The `nodewise-server` command.

use std::{process::ExitCode, time::Duration};

use anyhow::Context as _;
use clap::Parser as _;
use nodewise_server::{Listeners, args::Args, run};
use nodewise_telemetry::{Settings, Traces};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long planning threads may take to notice that their callers are gone.
const THREADS_TIMEOUT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let args = Args::parse();
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nodewise-server: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &Args) -> anyhow::Result<()> {
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
        let tls = args.tls.acceptor(args.listen)?;
        let listener = TcpListener::bind(args.listen)
            .await
            .with_context(|| format!("listening on {}", args.listen))?;
        let http = match args.http_listen {
            Some(address) => Some(
                TcpListener::bind(address)
                    .await
                    .with_context(|| format!("listening on {address}"))?,
            ),
            None => None,
        };
        let listeners = Listeners {
            grpc: listener,
            tls,
            http,
        };
        let shutdown = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        run(args.config(), listeners, shutdown)
            .await
            .map_err(anyhow::Error::from)
    });
    runtime.block_on(telemetry.shutdown());
    // A plan that still runs after the drain must not keep the process alive.
    runtime.shutdown_timeout(THREADS_TIMEOUT);
    result.map(|_| ())
}
