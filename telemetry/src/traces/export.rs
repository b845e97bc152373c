//! The OTLP export of spans.

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

/// The longest time for the export of the last spans at shutdown.
const LAST_SPANS: Duration = Duration::from_secs(3);
/// The standard variable for the size of the span queue, and its default.
const MAX_QUEUE_SIZE: (&str, usize) = ("OTEL_BSP_MAX_QUEUE_SIZE", 2_048);

/// The layer that turns `tracing` spans into OpenTelemetry spans.
pub type SpanLayer = Filtered<OpenTelemetryLayer<Registry, SdkTracer>, FilterFn, Registry>;

/// The number of spans that were not exported. Call it after [`shut_down`].
#[must_use]
pub fn lost() -> u64 {
    TALLY.dropped() + TALLY.waiting() as u64
}

/// Exports the queued spans, for at most three seconds.
pub async fn shut_down(provider: SdkTracerProvider) {
    // `shutdown_with_timeout` blocks its thread, and the export needs the runtime's threads.
    let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(LAST_SPANS));
    // The result is of no use: it is Ok also if the collector refuses the spans.
    let _ = tokio::time::timeout(LAST_SPANS, flushed).await;
}

/// A tracer provider that exports spans to the destination in `traces`. `None` if traces are off. The error is the reason, for
/// people.
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
    let most = queue_size(|name| std::env::var(name).ok());
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

/// The TLS settings of the exporter, with the present contents of the files.
fn certificates(endpoint: &str, tls: Files) -> Result<ClientTlsConfig, String> {
    if tls.authorities.is_none() && !system_has_authorities() {
        return Err(format!(
            "this system has no certificate authorities, so the collector at {endpoint} cannot be trusted: set \
             OTEL_EXPORTER_OTLP_CERTIFICATE to a file with the collector's authority"
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
    // Check the files: the exporter's transport would ignore invalid ones.
    Connector::new(tls).map_err(|error| error.to_string())?;
    Ok(config)
}

/// The layer that exports `tracing` spans to `provider`. The first provider also gets the spans that are made without `tracing`.
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

/// Selects the spans of the Nodewise crates up to DEBUG, and their events up to INFO. Spans of libraries, including those of the
/// exporter itself, are left out.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    let finest = if metadata.is_span() {
        Level::DEBUG
    } else {
        Level::INFO
    };
    metadata.target().starts_with("nodewise") && *metadata.level() <= finest
}

/// The size of the span queue from the environment. An invalid value means the default, as in the SDK.
fn queue_size(read: impl Fn(&str) -> Option<String>) -> usize {
    let (variable, default) = MAX_QUEUE_SIZE;
    let asked = read(variable).and_then(|text| text.trim().parse().ok());
    asked.filter(|most| *most > 0).unwrap_or(default)
}

/// The resource attributes of this process. Environment variables override the defaults.
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
    async fn an_unusable_configuration_is_an_error() {
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
    fn the_service_name_is_that_of_the_program_by_default() {
        let name = |service| {
            let resource = resource("nodewise-test", service);
            resource.get(&"service.name".into()).map(|name| name.to_string())
        };
        assert_eq!(name(None).as_deref(), Some("nodewise-test"));
        assert_eq!(name(Some("other".to_owned())).as_deref(), Some("other"));
    }

    #[test]
    fn the_queue_size_comes_from_the_environment() {
        for (value, expected) in [
            (None, 2_048),
            (Some(" 10 "), 10),
            (Some("0"), 2_048),
            (Some("x"), 2_048),
        ] {
            assert_eq!(queue_size(|_| value.map(str::to_owned)), expected, "{value:?}");
        }
    }
}
