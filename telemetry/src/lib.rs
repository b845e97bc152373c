//! Logs, traces and the HTTP endpoints for health and metrics of the Nodewise processes.
//!
//! The log goes to standard error. Traces are exported over OTLP if the standard `OTEL_*` variables name a collector
//! ([`Traces::from_env`]). Export never blocks the process: spans are queued and exported by a thread of their own, and dropped if
//! the collector does not accept them. [`grpc`] propagates traces from client to server, and [`metrics`] adds exemplars with trace
//! ids.

mod causes;
pub mod grpc;
pub mod http;
mod logs;
pub mod metrics;
mod process;
pub mod propagation;
#[cfg(feature = "testing")]
pub mod testing;
pub mod traces;
mod truncate;

use opentelemetry_sdk::trace::{SdkTracerProvider, TracerProviderBuilder};
use tracing_subscriber::{filter::ParseError, layer::SubscriberExt as _, util::SubscriberInitExt as _};

pub use causes::with_causes;
pub use logs::LogFormat;
pub use traces::Traces;
pub use truncate::{in_short, is_hidden, printable};

/// The telemetry settings of a process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The default of `service.name`. `OTEL_SERVICE_NAME` replaces it.
    pub service: &'static str,
    /// The format of the log.
    pub log_format: LogFormat,
    /// A log level, or directives such as `info,nodewise_server=debug`.
    pub log_filter: String,
    /// Where traces are exported to.
    pub traces: Traces,
}

/// The telemetry of this process. Call [`Self::shutdown`] before the process ends.
#[derive(Debug)]
#[must_use = "queued spans are lost without a shutdown"]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

/// Starts logging to standard error, and the export of spans if a collector is configured.
///
/// The error is an invalid log filter. A collector that cannot be used is only logged as a warning.
///
/// # Panics
/// If it is called twice, or, with a collector, outside a tokio runtime.
pub fn init(settings: Settings) -> Result<Telemetry, ParseError> {
    let log = logs::layer(settings.log_format, &settings.log_filter)?;
    let (provider, problem) = match traces::provider(settings.service, settings.traces) {
        Ok(exporting) => (exporting.map(TracerProviderBuilder::build), None),
        Err(problem) => (None, Some(problem)),
    };
    tracing_subscriber::registry()
        .with(provider.as_ref().map(traces::layer))
        .with(log)
        .init();
    if let Some(problem) = problem {
        tracing::warn!("traces are not exported: {problem}");
    }
    Ok(Telemetry { provider })
}

impl Telemetry {
    /// Exports the queued spans, for at most three seconds. Spans that end later are lost.
    pub async fn shutdown(self) {
        let Some(provider) = self.provider else {
            return;
        };
        traces::shut_down(provider).await;
        let lost = traces::lost();
        if lost > 0 {
            tracing::warn!(lost, "spans were not exported");
        }
    }
}
