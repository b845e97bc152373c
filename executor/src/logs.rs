//! The log on standard error.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::{EnvFilter, filter::ParseError, fmt};

use crate::args::LogFormat;

/// Libraries whose own events tell little to who operates an executor.
const QUIET: &str = "h2=warn,hyper=warn,hyper_util=warn,kube=warn,kube_client=warn,tonic=warn,tower=warn";

/// Sends the events of this process to standard error.
///
/// # Panics
/// When it was called before.
pub fn init(format: LogFormat, filter: &str) -> Result<(), ParseError> {
    // What is asked for comes last and wins.
    let filter = EnvFilter::builder().parse(format!("{QUIET},{filter}"))?;
    let builder = fmt().with_env_filter(filter).with_writer(stderr);
    match format {
        LogFormat::Human => builder.with_ansi(stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
