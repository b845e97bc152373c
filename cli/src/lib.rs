//! The `nodewise` command as a library. The binary only calls [`main`].
//!
//! `plan` and `explain` read the objects of a cluster (`input`), build the protocol's requests (`request`), send them to the
//! planner in this process or to a service (`engine`), and print the response (`text`). They make no decisions. `simulate` plays a change
//! to its end on a simulated cluster. `overhead` asks which DaemonSets would run on nodes that need not exist. `demo` runs the
//! service and the executor on a simulated cluster (`demo`).

mod args;
mod causes;
mod check;
mod dashboard;
mod demo;
mod dry_run;
mod engine;
mod events;
mod explain;
mod flags;
mod gaps;
mod input;
mod kind;
mod output;
mod output_file;
mod overhead;
mod plan;
mod print;
mod refusals;
mod request;
mod rollout;
mod shell;
mod simulate;
mod status;
mod target;
mod terminal;
mod text;
mod view;
mod watches;

use std::{ffi::OsString, path::Path, process::ExitCode};

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _};
use nodewise_telemetry::traces::SpanLayer;
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::args::{Cli, Command};

/// Runs a command line. The exit code is 0 on success and 1 on any error, or 2 with `plan --detailed-exitcode` if something would
/// change. `simulate` has exit codes of its own.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match parse(args.into_iter().collect()) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // clap's default is 2, which means "something would change" here.
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

/// Reads a text as `plan` and `explain` read a file, and returns the number of objects. Used for fuzzing.
pub fn read_text(text: Vec<u8>) -> Result<usize, impl std::error::Error> {
    input::Cluster::read_text("input", text).map(|cluster| cluster.objects())
}

/// Starts logging to standard error if `NODEWISE_LOG` is set, for example to `debug` or `nodewise_executor=debug`. `spans` is the
/// layer that exports traces.
fn init_logging(spans: Option<SpanLayer>) -> anyhow::Result<()> {
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

/// Parses the command line. If the binary is called kubectl-nodewise, the usage text shows `kubectl nodewise`.
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
                init_logging(None)?;
                plan::run(&args).await
            }
            Command::Explain(args) => {
                init_logging(None)?;
                explain::run(&args).await
            }
            Command::Demo(args) => demo::run(&args).await,
            Command::Simulate(args) => {
                init_logging(None)?;
                simulate::run(&args).await
            }
            Command::Overhead(args) => {
                init_logging(None)?;
                overhead::run(&args).await
            }
            Command::Check(args) => {
                init_logging(None)?;
                check::run(&args).await
            }
            Command::Completion(args) => shell::completion(&args),
            Command::Man(args) => shell::man(&args),
            Command::Status(args) => {
                init_logging(None)?;
                status::run(&args).await
            }
            Command::Rollout(command) => {
                init_logging(None)?;
                rollout::run(&command).await
            }
            Command::Dashboard(args) => {
                init_logging(None)?;
                dashboard::run(&args).await
            }
        }
    })
}
