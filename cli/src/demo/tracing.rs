//! The tracing of the demo: to a collector, to the terminal, or off.

use anyhow::{anyhow, bail};
use nodewise_telemetry::traces::{self, Traces};
use opentelemetry_sdk::trace::SdkTracerProvider;

use super::trace::{SlowestReconcile, Trace};
use crate::{args::DemoArgs, print};

/// The service name: service and executor are in one process.
const SERVICE: &str = "nodewise-demo";

/// The tracing of the demo.
pub(super) struct Tracing {
    provider: Option<SdkTracerProvider>,
    slowest: SlowestReconcile,
    /// The URL of `--otlp`.
    collector: Option<String>,
}

impl Tracing {
    /// Starts tracing, if it is configured, and logging.
    pub(super) fn start(args: &DemoArgs) -> anyhow::Result<Self> {
        let slowest = SlowestReconcile::default();
        let read = |name: &str| std::env::var(name).ok();
        let asked = match &args.otlp {
            Some(url) => Traces::to(url, read),
            None => Traces::from_env(read),
        };
        let exporting = match traces::provider(SERVICE, asked) {
            Ok(exporting) => exporting,
            Err(reason) if args.otlp.is_some() => return Err(anyhow!(reason).context("cannot send traces")),
            // The OTEL_* variables may be meant for other programs, so this is only a note.
            Err(reason) => {
                print::note(&format!("traces are not sent: {reason}"));
                None
            }
        };
        let kept = args.trace.then(|| slowest.clone());
        let provider = exporting
            .or_else(|| args.trace.then(SdkTracerProvider::builder))
            .map(|traces| match kept {
                Some(kept) => traces.with_span_processor(kept).build(),
                None => traces.build(),
            });
        crate::init_logging(provider.as_ref().map(traces::layer))?;
        Ok(Self {
            provider,
            slowest,
            collector: args.otlp.clone(),
        })
    }

    /// The slowest reconcile so far.
    pub(super) fn slowest(&self) -> Option<Trace> {
        self.slowest.trace()
    }

    /// Exports the queued spans. With `--otlp` it is an error if the collector did not accept all spans.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        let Some(provider) = self.provider else {
            return Ok(());
        };
        traces::shut_down(provider).await;
        match (self.collector, traces::lost()) {
            (Some(url), lost @ 1..) => bail!("{lost} spans were not taken by the collector at {url}"),
            _ => Ok(()),
        }
    }
}
