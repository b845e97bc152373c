//! The `nodewise` command as a library, so that the binary stays three lines.
//!
//! `plan` and `explain` read a picture of a cluster (`input`), turn it into the protocol's requests (`question`), have
//! them answered by the planner in this process or by a service (`engine`), and print the answer (`text`). They decide
//! nothing themselves. `demo` runs the service and the executor on a simulated cluster (`demo`).

mod args;
mod demo;
mod engine;
mod explain;
mod input;
mod plan;
mod print;
mod question;
mod text;

use std::{ffi::OsString, path::Path, process::ExitCode};

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};
use nodewise_telemetry::traces::SpanLayer;
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::args::{Cli, Command};

/// Runs a command line and tells how the process is to end: 0 when the answer was given, 1 on any error.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match parse(args.into_iter().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // 2, clap's own choice, means "something would change" here.
            return if error.use_stderr() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    run(cli).unwrap_or_else(|error| {
        print::error(&error);
        ExitCode::FAILURE
    })
}

/// Reads a text as `plan` and `explain` read a file, under the name `input`, and tells how many objects it found. For
/// programs that try the reader with whatever may come.
pub fn read_text(text: Vec<u8>) -> Result<usize, impl std::error::Error> {
    input::Cluster::read_text("input", text).map(|cluster| cluster.objects())
}

/// The logs of the service and the executor inside `demo`, and of the Kubernetes client, for whoever asks for them: with
/// `NODEWISE_LOG=debug` or a filter such as `nodewise_executor=debug`. `spans` get what is traced.
fn observe(spans: Option<SpanLayer>) -> anyhow::Result<()> {
    let log = std::env::var_os("NODEWISE_LOG").map(|filter| {
        let filter = EnvFilter::builder()
            .parse(filter.to_string_lossy())
            .context("NODEWISE_LOG is no log filter such as debug or nodewise_executor=debug")?;
        let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        anyhow::Ok(log.with_filter(filter))
    });
    tracing_subscriber::registry()
        .with(spans)
        .with(log.transpose()?)
        .init();
    Ok(())
}

/// Under the name kubectl-nodewise it is called as `kubectl nodewise`, and says so in its usage.
fn parse(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let called = args.first().and_then(|path| Path::new(path).file_stem());
    let mut command = Cli::command();
    if called.is_some_and(|name| name == "kubectl-nodewise") {
        command = command.bin_name("kubectl nodewise");
    }
    Cli::from_arg_matches(&command.try_get_matches_from(args)?)
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the async runtime")?;
    runtime.block_on(async {
        match cli.command {
            Command::Plan(args) => {
                observe(None)?;
                plan::run(&args).await
            }
            Command::Explain(args) => {
                observe(None)?;
                explain::run(&args).await
            }
            Command::Demo(args) => demo::run(&args).await,
        }
    })
}
