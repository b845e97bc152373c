//! The log on standard error.

use std::{
    fmt as std_fmt,
    io::{IsTerminal as _, stderr},
};

use clap::ValueEnum;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::ParseError,
    fmt::{
        self, FmtContext,
        format::{FormatEvent, FormatFields, Writer},
    },
    layer::Layered,
    registry::LookupSpan,
};

use crate::propagation;

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
    let colours = stderr().is_terminal();
    Ok(match format {
        LogFormat::Human => log
            .with_ansi(colours)
            .map_event_format(move |line| {
                let line = line.with_ansi(colours);
                Correlated { line, format }
            })
            .with_filter(filter)
            .boxed(),
        LogFormat::Json => log
            .json()
            .flatten_event(true)
            .map_event_format(move |line| Correlated { line, format })
            .with_filter(filter)
            .boxed(),
    })
}

/// Ends each line with the ids of the span that it belongs to, where there is one that is traced.
struct Correlated<F> {
    line: F,
    format: LogFormat,
}

impl<S, N, F> FormatEvent<S, N> for Correlated<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std_fmt::Result {
        let span = propagation::current();
        if !span.is_valid() {
            return self.line.format_event(context, writer, event);
        }
        let mut line = String::new();
        self.line.format_event(context, Writer::new(&mut line), event)?;
        let (trace, span) = (span.trace_id(), span.span_id());
        let line = line.trim_end_matches('\n');
        match self.format {
            LogFormat::Human => writeln!(writer, "{line} trace_id={trace} span_id={span}"),
            LogFormat::Json => {
                let object = line.strip_suffix('}').unwrap_or(line);
                writeln!(writer, r#"{object},"trace_id":"{trace}","span_id":"{span}"}}"#)
            }
        }
    }
}
