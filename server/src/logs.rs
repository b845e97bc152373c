//! The log on standard error.

use tracing_subscriber::{EnvFilter, filter::ParseError, fmt};

use crate::args::LogFormat;

/// Libraries whose own events tell nothing to who operates a server.
const QUIET: [&str; 4] = ["h2=warn", "hyper=warn", "tonic=warn", "tower=warn"];

/// Sends the events of this process to standard error.
///
/// # Panics
/// When it was called before.
pub fn init(format: LogFormat, filter: &str) -> Result<(), ParseError> {
    // What is asked for comes last, so that it wins over what is quiet by default.
    let filter = EnvFilter::builder().parse(format!("{},{filter}", QUIET.join(",")))?;
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Human => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
