//! Where the traces of the demo go: to a collector, into the terminal, or nowhere.

use anyhow::{anyhow, bail};
use nodewise_telemetry::traces::{self, Traces};
use opentelemetry_sdk::trace::SdkTracerProvider;

use super::trace::{Slowest, Trace};
use crate::{args::DemoArgs, print};

/// The service and the executor are one process here.
const SERVICE: &str = "nodewise-demo";

/// The tracing of a demo.
pub(super) struct Tracing {
    provider: Option<SdkTracerProvider>,
    slowest: Slowest,
    /// The collector that was asked for.
    collector: Option<String>,
}

impl Tracing {
    /// Traces as far as that is asked for, and begins to log.
    pub(super) fn start(args: &DemoArgs) -> anyhow::Result<Self> {
        let slowest = Slowest::default();
        let read = |name: &str| std::env::var(name).ok();
        let asked = match &args.otlp {
            Some(url) => Traces::to(url, read),
            None => Traces::from_env(read),
        };
        let exporting = match traces::provider(SERVICE, asked) {
            Ok(exporting) => exporting,
            Err(reason) if args.otlp.is_some() => return Err(anyhow!(reason).context("cannot send traces")),
            // That is for other programs as well.
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
        crate::observe(provider.as_ref().map(traces::layer))?;
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

    /// Sends what still waits. An error when the collector did not take everything.
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
