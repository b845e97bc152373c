//! Traces: whether they are exported and where to, as the OpenTelemetry specification's variables say, and the export itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry::{Context, KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    resource::{EnvResourceDetector, TelemetryResourceDetector},
    trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor},
};
use tracing::{Level, Metadata, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterFn, Filtered, filter_fn},
};

/// How long the last spans may hold up the end of the process.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traces {
    /// Nowhere: no span is recorded.
    Off,
    /// To a collector, over OTLP/gRPC.
    Otlp {
        /// Its URL, such as `http://localhost:4317`.
        endpoint: String,
        /// The name of this service, if not the program's.
        service: Option<String>,
    },
    /// Nowhere, although they are asked for: why not.
    Unusable(String),
}

impl Traces {
    /// What the environment says. They go to `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, or else to `OTEL_EXPORTER_OTLP_ENDPOINT`,
    /// unless `OTEL_SDK_DISABLED` is `true` or `OTEL_TRACES_EXPORTER` names another exporter. Headers, time-outs, the sampler,
    /// resource attributes and the queue's size are read by the SDK from the variables of the specification.
    #[must_use]
    pub fn from_env(read: impl Fn(&str) -> Option<String>) -> Self {
        // The specification has empty values count as unset.
        let get = |name| {
            read(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let either = |of_traces, of_all| get(of_traces).or_else(|| get(of_all));
        let disabled = get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let elsewhere = get("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter != "otlp");
        let endpoint = either(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        );
        let Some(endpoint) = endpoint.filter(|_| !disabled && !elsewhere) else {
            return Self::Off;
        };
        match either(
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ) {
            Some(protocol) if protocol != "grpc" => Self::Unusable(format!(
                "OTLP goes out over grpc only, and the environment asks for {protocol}"
            )),
            _ => Self::Otlp {
                endpoint,
                service: get("OTEL_SERVICE_NAME"),
            },
        }
    }
}

/// The export of spans.
#[derive(Debug)]
pub(crate) struct Exporting {
    provider: SdkTracerProvider,
    tally: Arc<Tally>,
}

/// Spans of this process become spans of OpenTelemetry.
type SpanLayer = Filtered<OpenTelemetryLayer<Registry, SdkTracer>, FilterFn, Registry>;

impl Exporting {
    /// Begins to export, if asked to. Nothing is connected yet.
    pub(crate) fn start(program: &'static str, traces: Traces) -> Result<Option<Self>, String> {
        let (endpoint, service) = match traces {
            Traces::Off => return Ok(None),
            Traces::Unusable(reason) => return Err(reason),
            Traces::Otlp { endpoint, service } => (endpoint, service),
        };
        let exporter = OtlpExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .build()
            .map_err(|error| error.to_string())?;
        let tally = Arc::new(Tally::default());
        let batches = BatchSpanProcessor::builder(CountedExporter {
            inner: exporter,
            tally: Arc::clone(&tally),
        });
        let provider = SdkTracerProvider::builder()
            .with_resource(resource(program, service))
            .with_span_processor(CountedProcessor {
                inner: batches.build(),
                tally: Arc::clone(&tally),
            })
            .build();
        Ok(Some(Self { provider, tally }))
    }

    pub(crate) fn layer(&self) -> SpanLayer {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("nodewise"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(
                filter_fn(is_exported as fn(&Metadata<'_>) -> bool).with_max_level_hint(LevelFilter::DEBUG),
            )
    }

    pub(crate) async fn shutdown(self) {
        let Self { provider, tally } = self;
        // It blocks its thread until the export, which needs the runtime's, is done.
        let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(LAST_SPANS));
        // Whether it succeeds says nothing: it does also when the collector refuses.
        let _ = tokio::time::timeout(LAST_SPANS, flushed).await;
        let lost = tally.lost();
        if lost > 0 {
            tracing::warn!(lost, "spans were not exported");
        }
    }
}

/// Our own spans, with what is worth a line in the log at the default level. The spans of the libraries below, among them
/// those that export, would drown them.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    let finest = if metadata.is_span() {
        Level::DEBUG
    } else {
        Level::INFO
    };
    metadata.target().starts_with("nodewise") && *metadata.level() <= finest
}

/// Who sends the spans. What the environment says wins.
fn resource(program: &'static str, service: Option<String>) -> Resource {
    let detected = Resource::builder_empty()
        .with_service_name(program)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_detectors(&[
            Box::new(TelemetryResourceDetector),
            Box::new(EnvResourceDetector::new()),
        ]);
    match service {
        Some(service) => detected.with_service_name(service).build(),
        None => detected.build(),
    }
}

/// How many spans ended and how many of them the collector took. The SDK itself keeps silent about what it loses.
#[derive(Debug, Default)]
struct Tally {
    ended: AtomicU64,
    taken: AtomicU64,
    /// The last export failed.
    failing: AtomicBool,
}

impl Tally {
    fn lost(&self) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        self.ended.load(Ordering::Relaxed).saturating_sub(taken)
    }

    /// Tells the log when the collector stops taking spans, and when it takes them again.
    fn exported(&self, spans: usize, result: &OTelSdkResult) {
        match result {
            Ok(()) => {
                self.taken.fetch_add(spans as u64, Ordering::Relaxed);
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(lost = self.lost(), "the collector takes spans again");
                }
            }
            Err(error) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "the collector does not take spans; they are lost until it does");
                }
            }
        }
    }
}

/// Counts what goes into the queue, or is dropped because it is full.
#[derive(Debug)]
struct CountedProcessor {
    inner: BatchSpanProcessor,
    tally: Arc<Tally>,
}

impl SpanProcessor for CountedProcessor {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        self.tally.ended.fetch_add(1, Ordering::Relaxed);
        self.inner.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Counts what the collector took.
#[derive(Debug)]
struct CountedExporter {
    inner: OtlpExporter,
    tally: Arc<Tally>,
}

impl SpanExporter for CountedExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.inner.export(batch).await;
        self.tally.exported(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Traces {
        Traces::from_env(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn otlp(endpoint: &str, service: Option<&str>) -> Traces {
        Traces::Otlp {
            endpoint: endpoint.to_owned(),
            service: service.map(str::to_owned),
        }
    }

    #[test]
    fn traces_are_off_unless_a_collector_is_named() {
        const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4317");
        const OF_TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4317");
        let all = otlp("http://all:4317", None);
        for (variables, expected) in [
            (&[][..], Traces::Off),
            (&[("OTEL_SERVICE_NAME", "x")], Traces::Off),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], Traces::Off),
            (&[ALL], all.clone()),
            (&[ALL, OF_TRACES], otlp("http://traces:4317", None)),
            (
                &[ALL, ("OTEL_SERVICE_NAME", "x")],
                otlp("http://all:4317", Some("x")),
            ),
            (&[ALL, ("OTEL_SDK_DISABLED", "True")], Traces::Off),
            (&[ALL, ("OTEL_SDK_DISABLED", "1")], all.clone()),
            (&[ALL, ("OTEL_TRACES_EXPORTER", "none")], Traces::Off),
            (&[ALL, ("OTEL_TRACES_EXPORTER", "otlp")], all.clone()),
            (&[ALL, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], all),
        ] {
            assert_eq!(read(variables), expected, "{variables:?}");
        }
        let http = read(&[ALL, ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")]);
        assert!(matches!(http, Traces::Unusable(reason) if reason.contains("http/protobuf")));
    }

    #[tokio::test]
    async fn an_endpoint_that_cannot_be_used_is_a_reason_and_no_panic() {
        for endpoint in ["https://needs-tls:4317", "not a url"] {
            let reason = Exporting::start("test", otlp(endpoint, None)).expect_err("unusable");
            assert!(reason.contains(endpoint), "{reason}");
        }
        assert!(Exporting::start("test", Traces::Off).expect("fine").is_none());
    }

    #[test]
    fn what_ended_and_was_not_taken_is_lost() {
        let tally = Tally::default();
        tally.ended.store(10, Ordering::Relaxed);
        tally.exported(4, &Ok(()));
        tally.exported(4, &Err(opentelemetry_sdk::error::OTelSdkError::AlreadyShutdown));
        assert_eq!(tally.lost(), 6);
        assert!(tally.failing.load(Ordering::Relaxed));
    }

    #[test]
    fn a_service_is_called_like_its_program_unless_it_is_named() {
        let name = |service| {
            let resource = resource("nodewise-test", service);
            resource.get(&"service.name".into()).map(|name| name.to_string())
        };
        assert_eq!(name(None).as_deref(), Some("nodewise-test"));
        assert_eq!(name(Some("other".to_owned())).as_deref(), Some("other"));
    }
}
