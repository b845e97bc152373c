//! The export of spans.

use std::{path::Path, time::Duration};

use nodewise_tls::client::{Connector, Files, Identity, system_has_authorities};
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{
    SpanExporter as OtlpExporter, WithExportConfig as _, WithTonicConfig as _,
    tonic_types::transport::{Certificate, ClientTlsConfig, Identity as PemIdentity},
};
use opentelemetry_sdk::{
    Resource,
    resource::{EnvResourceDetector, TelemetryResourceDetector},
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider, TracerProviderBuilder},
};
use tracing::{Level, Metadata, level_filters::LevelFilter};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::{
    Layer, Registry,
    filter::{FilterFn, Filtered, filter_fn},
};

use super::{
    Traces, scheme,
    tally::{Bounded, Counted, TALLY},
};

/// How long the last spans may hold up the end of the process.
const LAST_SPANS: Duration = Duration::from_secs(3);
/// The specification's variable for the most spans that wait, and its default.
const MAX_QUEUE_SIZE: (&str, usize) = ("OTEL_BSP_MAX_QUEUE_SIZE", 2_048);

/// Spans of this process become spans of OpenTelemetry.
pub type SpanLayer = Filtered<OpenTelemetryLayer<Registry, SdkTracer>, FilterFn, Registry>;

/// Spans that no collector took, after everything was shut down.
#[must_use]
pub fn lost() -> u64 {
    TALLY.dropped() + TALLY.waiting() as u64
}

/// Sends what still waits, for at most three seconds.
pub async fn shut_down(provider: SdkTracerProvider) {
    // It blocks its thread until the export, which needs the runtime's, is done.
    let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(LAST_SPANS));
    // Whether it succeeds says nothing: it does also when the collector refuses.
    let _ = tokio::time::timeout(LAST_SPANS, flushed).await;
}

/// What sends the spans of `program` where `traces` says; none where they are off. The reason is a sentence's part.
pub fn provider(program: &'static str, traces: Traces) -> Result<Option<TracerProviderBuilder>, String> {
    let (endpoint, tls, service) = match traces {
        Traces::Off => return Ok(None),
        Traces::Unusable(reason) => return Err(reason),
        Traces::Otlp {
            endpoint,
            tls,
            service,
        } => (endpoint, tls, service),
    };
    let mut exporter = OtlpExporter::builder().with_tonic();
    if scheme(&endpoint).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) {
        exporter = exporter.with_tls_config(certificates(&endpoint, tls)?);
    }
    let exporter = exporter
        .with_endpoint(endpoint)
        .build()
        .map_err(|error| error.to_string())?;
    let counted = Counted {
        inner: exporter,
        tally: &TALLY,
    };
    let most = most_waiting(|name| std::env::var(name).ok());
    let config = BatchConfigBuilder::default().with_max_queue_size(most).build();
    let bounded = Bounded {
        inner: BatchSpanProcessor::builder(counted)
            .with_batch_config(config)
            .build(),
        most,
        tally: &TALLY,
    };
    Ok(Some(
        SdkTracerProvider::builder()
            .with_resource(resource(program, service))
            .with_span_processor(bounded),
    ))
}

/// What is in the files, as it is now.
fn certificates(endpoint: &str, tls: Files) -> Result<ClientTlsConfig, String> {
    if tls.authorities.is_none() && !system_has_authorities() {
        return Err(format!(
            "this system has no authorities, so nobody at {endpoint} can be believed: OTEL_EXPORTER_OTLP_CERTIFICATE must name \
             a file with the collector's"
        ));
    }
    let read =
        |path: &Path| std::fs::read(path).map_err(|error| format!("reading {}: {error}", path.display()));
    let mut config = ClientTlsConfig::new();
    config = match &tls.authorities {
        None => config.with_native_roots(),
        Some(path) => config.ca_certificate(Certificate::from_pem(read(path)?)),
    };
    if let Some(Identity { certificate, key }) = &tls.identity {
        config = config.identity(PemIdentity::from_pem(read(certificate)?, read(key)?));
    }
    // The transport takes a file that is of no use, and says nothing of it.
    Connector::new(tls).map_err(|error| error.to_string())?;
    Ok(config)
}

/// The layer that gives the spans of this process to `provider`. Those that `tracing` does not see go to the first one.
pub fn layer(provider: &SdkTracerProvider) -> SpanLayer {
    let tracer = provider.tracer("nodewise");
    super::TRACER.get_or_init(|| tracer.clone());
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_target(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(
            filter_fn(is_exported as fn(&Metadata<'_>) -> bool).with_max_level_hint(LevelFilter::DEBUG),
        )
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

/// Most spans that may wait, as the environment says. What cannot be read is the default, as with the SDK.
fn most_waiting(read: impl Fn(&str) -> Option<String>) -> usize {
    let (variable, default) = MAX_QUEUE_SIZE;
    let asked = read(variable).and_then(|text| text.trim().parse().ok());
    asked.filter(|most| *most > 0).unwrap_or(default)
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

#[cfg(test)]
mod tests {
    use nodewise_tls::testing::{assert_said, write};

    use super::*;

    fn reason(endpoint: &str, tls: Files) -> String {
        let traces = Traces::Otlp {
            endpoint: endpoint.to_owned(),
            tls,
            service: None,
        };
        provider("test", traces).expect_err("unusable")
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_a_reason_and_no_panic() {
        let said = reason("not a url", Files::default());
        assert!(said.contains("not a url"), "{said}");
        let dir = tempfile::tempdir().expect("a folder");
        let empty = write(dir.path(), "empty.crt", "");
        for endpoint in ["https://collector:4317", "HTTPS://collector:4317"] {
            let tls = Files {
                authorities: Some(empty.clone()),
                identity: None,
            };
            let said = reason(endpoint, tls);
            assert_said(&said, &[&empty.display().to_string(), "PEM"]);
        }
        assert!(provider("test", Traces::Off).expect("fine").is_none());
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

    #[test]
    fn the_queue_is_as_long_as_the_environment_says() {
        for (value, expected) in [
            (None, 2_048),
            (Some(" 10 "), 10),
            (Some("0"), 2_048),
            (Some("x"), 2_048),
        ] {
            assert_eq!(most_waiting(|_| value.map(str::to_owned)), expected, "{value:?}");
        }
    }
}
