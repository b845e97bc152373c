//! The log on standard error.

use std::io::{IsTerminal as _, stderr};

use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, Layer, Registry, filter::ParseError, fmt, layer::Layered};

/// Libraries whose own events tell little to who operates a process.
const QUIET: &str = "h2=warn,hyper=warn,hyper_util=warn,kube=warn,kube_client=warn,tonic=warn,tower=warn";
/// What these say about exports is said once by [`crate::traces`], not once a batch.
const SILENT: &str = "opentelemetry=off,opentelemetry_sdk=off,opentelemetry-otlp=off";

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Human,
    /// One JSON object per line
    Json,
}

/// What stands below the log.
type Below<L> = Layered<Option<L>, Registry>;

/// Writes what the filter lets pass.
pub(crate) fn layer<L: Layer<Registry>>(
    format: LogFormat,
    filter: &str,
) -> Result<Box<dyn Layer<Below<L>> + Send + Sync>, ParseError> {
    // What is asked for comes last and wins.
    let filter = EnvFilter::builder().parse(format!("{QUIET},{SILENT},{filter}"))?;
    let log = fmt::layer().with_writer(stderr);
    Ok(match format {
        LogFormat::Human => log.with_ansi(stderr().is_terminal()).with_filter(filter).boxed(),
        LogFormat::Json => log.json().flatten_event(true).with_filter(filter).boxed(),
    })
}
