//! What the processes of Nodewise tell about themselves: the log on standard error, and traces over OTLP.
//!
//! Traces are off unless the standard `OTEL_*` variables name a collector ([`Traces::from_env`]), and never stand in the way
//! of the work: spans are queued and exported by a thread of their own, and are lost when the collector cannot take them.
//! [`grpc`] carries a trace from a caller to a server, [`metrics`] leads from a measurement to the trace that it was part of.

mod causes;
pub mod grpc;
pub mod http;
mod logs;
pub mod metrics;
mod process;
pub mod propagation;
#[cfg(feature = "testing")]
pub mod testing;
mod told;
pub mod traces;

use opentelemetry_sdk::trace::{SdkTracerProvider, TracerProviderBuilder};
use tracing_subscriber::{filter::ParseError, layer::SubscriberExt as _, util::SubscriberInitExt as _};

pub use causes::with_causes;
pub use logs::LogFormat;
pub use told::in_short;
pub use traces::Traces;

/// What a process is to tell.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the program, unless the environment names the service otherwise.
    pub service: &'static str,
    /// The form of the log.
    pub log_format: LogFormat,
    /// What to log: a level, or directives such as `info,nodewise_server=debug`.
    pub log_filter: String,
    /// Where traces go.
    pub traces: Traces,
}

/// The telemetry of this process while it lives.
#[derive(Debug)]
#[must_use = "spans that still wait are lost without a shutdown"]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

/// Sends the events of this process to standard error, and its spans to the collector if there is one.
///
/// Fails when the log's filter cannot be read. A collector that cannot be used is a warning: traces must not stop the work.
///
/// # Panics
/// When it was called before, or, with a collector, outside a tokio runtime.
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
    /// Sends the spans that still wait, for at most three seconds. Spans that end later are lost.
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
