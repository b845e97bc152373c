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
        self, FmtContext, MakeWriter,
        format::{FormatEvent, FormatFields, Writer},
    },
    layer::Layered,
    registry::LookupSpan,
};

use crate::propagation;

/// Libraries whose events are of little use to operators. `kube_client::client` logs whole responses that it cannot parse as
/// warnings.
const QUIET: &str = "h2=warn,hyper=warn,hyper_util=warn,kube=warn,kube_client=warn,kube_client::client=error,tonic=warn,tower=warn";
/// Libraries that log each failed export. [`crate::traces`] logs only the first one.
const SILENT: &str = "opentelemetry=off,opentelemetry_sdk=off,opentelemetry-otlp=warn";

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Human,
    /// One JSON object per line
    Json,
}

/// The subscriber below the log layer.
type Inner<L> = Layered<Option<L>, Registry>;

/// The layer that writes the events that pass the filter.
pub(crate) fn layer<L: Layer<Registry>>(
    format: LogFormat,
    filter: &str,
) -> Result<Box<dyn Layer<Inner<L>> + Send + Sync>, ParseError> {
    layer_to(stderr, stderr().is_terminal(), format, filter)
}

fn layer_to<S, W>(
    writer: W,
    colours: bool,
    format: LogFormat,
    filter: &str,
) -> Result<Box<dyn Layer<S> + Send + Sync>, ParseError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // The configured filter comes last, so it overrides the defaults.
    let filter = EnvFilter::builder().parse(format!("{QUIET},{SILENT},{filter}"))?;
    let log = fmt::layer().with_writer(writer);
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

/// Appends the trace id and span id to each line within a traced span.
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

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("lock").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Logs one event outside of any span and one within a span. Returns the lines and the ids of that span.
    fn lines(format: LogFormat) -> (Vec<String>, String, String) {
        let written = Written::default();
        let writer = written.clone();
        let provider = SdkTracerProvider::builder().build();
        let log = layer_to(move || writer.clone(), false, format, "info").expect("a good filter");
        let layers = tracing_subscriber::registry()
            .with(crate::traces::layer(&provider))
            .with(log);
        let _guard = layers.set_default();
        tracing::info!("outside");
        let span = tracing::info_span!("work", key = "a/b");
        let (trace, id) = span.in_scope(|| {
            tracing::warn!(reason = "it broke", "inside");
            let span = propagation::current();
            (span.trace_id().to_string(), span.span_id().to_string())
        });
        let text = String::from_utf8(written.0.lock().expect("lock").clone()).expect("text");
        (text.lines().map(str::to_owned).collect(), trace, id)
    }

    #[test]
    fn a_line_within_a_traced_span_ends_with_its_ids() {
        let (lines, trace, id) = lines(LogFormat::Human);
        let [outside, inside] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(outside.ends_with("outside"), "{outside}");
        let end = format!(r#"inside reason="it broke" trace_id={trace} span_id={id}"#);
        assert!(
            inside.contains("work{key=\"a/b\"}") && inside.ends_with(&end),
            "{inside}"
        );
    }

    #[test]
    fn a_line_of_json_stays_one_object() {
        let (lines, trace, id) = lines(LogFormat::Json);
        let objects: Vec<serde_json::Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(objects[0]["message"], "outside");
        assert!(objects[0]["trace_id"].is_null());
        assert_eq!(objects[1]["reason"], "it broke");
        assert_eq!(
            (&objects[1]["trace_id"], &objects[1]["span_id"]),
            (&trace.into(), &id.into())
        );
    }
}
