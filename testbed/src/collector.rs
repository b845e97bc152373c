//! Runs the OpenTelemetry Collector, and reads the spans that it received.

mod sink;
pub(crate) mod span;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tonic::Code;

use self::sink::Sink;
use self::span::Span;
use crate::ports::free_ports;
use crate::process::{Process, port_was_taken};
use crate::tools::Tool;
use crate::wait::eventually;
use crate::workdir::Workdir;

/// How long the Collector may take to listen; less than a second on an idle machine.
const READY_DEADLINE: Duration = Duration::from_mins(1);

/// The line that it prints when it listens.
const READY: &str = "Everything is ready";

/// How often a start is retried because another process took the port first.
const PORT_TRIES: usize = 5;

/// The TLS files of a Collector that requires client certificates.
#[derive(Debug, Clone)]
pub struct CollectorTls {
    /// The Collector's certificate, for 127.0.0.1.
    pub certificate: PathBuf,
    /// The private key of that certificate.
    pub key: PathBuf,
    /// The CA of the senders' certificates.
    pub clients: PathBuf,
}

/// An OpenTelemetry Collector process that keeps the spans it receives.
///
/// It accepts OTLP over gRPC without queue or batching: a sender gets a success response only once its spans are in
/// [`Collector::spans`].
///
/// A test can make it fail in three ways: [`Collector::stop`], [`Collector::hang`] and [`Collector::refuse`].
#[derive(Debug)]
pub struct Collector {
    // The process is dropped before the sink that it sends to.
    process: Mutex<Option<Process>>,
    sink: Sink,
    port: u16,
    tls: Option<CollectorTls>,
    workdir: Arc<Workdir>,
}

impl Collector {
    /// Starts a Collector on a free port.
    ///
    /// # Errors
    /// It cannot be built or started, or does not listen in time; the error has the end of its log.
    pub async fn start() -> Result<Self> {
        Self::start_with(None).await
    }

    /// The same, over TLS.
    ///
    /// # Errors
    /// As for [`Collector::start`], or the Collector does not accept the files.
    pub async fn start_with_tls(tls: CollectorTls) -> Result<Self> {
        Self::start_with(Some(tls)).await
    }

    async fn start_with(tls: Option<CollectorTls>) -> Result<Self> {
        let workdir = Workdir::new()?;
        let sink = Sink::start()?;
        let mut tries = 1;
        loop {
            let [port] = free_ports().context("looking for a free port")?;
            match spawn(&workdir, port, tls.as_ref(), &sink).await {
                Err(error) if tries < PORT_TRIES && port_was_taken(&error) => tries += 1,
                result => {
                    return Ok(Self {
                        process: Mutex::new(Some(result?)),
                        sink,
                        port,
                        tls,
                        workdir,
                    });
                }
            }
        }
    }

    /// Its endpoint for OTLP over gRPC, in the form of `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// All spans so far, in the order of arrival.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.sink.spans()
    }

    /// The spans of one trace.
    #[must_use]
    pub fn trace(&self, trace_id: &str) -> Vec<Span> {
        let mut spans = self.spans();
        spans.retain(|span| span.trace_id == trace_id);
        spans
    }

    /// Waits for a span that `wanted` accepts, and returns the first one.
    ///
    /// # Errors
    /// The deadline passed; the error names the spans that have arrived.
    pub async fn wait_for_span(
        &self,
        deadline: Duration,
        what: &str,
        wanted: impl Fn(&Span) -> bool,
    ) -> Result<Span> {
        eventually(deadline, format!("the span {what}"), async || {
            let spans = self.spans();
            let names: BTreeSet<_> = spans
                .iter()
                .map(|span| format!("{} of {}", span.name, span.service))
                .collect();
            spans
                .into_iter()
                .find(&wanted)
                .with_context(|| format!("{names:?} is all that has come"))
        })
        .await
    }

    /// Kills the Collector. Connections are refused until [`Collector::start_again`].
    ///
    /// # Errors
    /// It does not run.
    pub fn stop(&self) -> Result<()> {
        let process = self.process().take();
        process.context("the Collector does not run")?.kill9()
    }

    /// Starts the Collector again after [`Collector::stop`], at the same endpoint. Earlier spans are kept.
    ///
    /// # Errors
    /// It runs, or cannot be started.
    pub async fn start_again(&self) -> Result<()> {
        ensure!(self.process().is_none(), "the Collector already runs");
        let process = spawn(&self.workdir, self.port, self.tls.as_ref(), &self.sink).await?;
        *self.process() = Some(process);
        Ok(())
    }

    /// Pauses the process: connections are accepted and stay open, but get no response until [`Collector::resume`].
    ///
    /// # Errors
    /// It does not run.
    pub fn hang(&self) -> Result<()> {
        self.running(Process::pause)
    }

    /// Resumes the process after [`Collector::hang`]. It then accepts the spans that were sent meanwhile.
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&self) -> Result<()> {
        self.running(Process::resume)
    }

    /// Answers every export with this code until [`Collector::accept`], as when the backend of a Collector fails.
    /// [`Code::Unavailable`] makes the sender retry, [`Code::InvalidArgument`] makes it drop the spans.
    pub fn refuse(&self, code: Code) {
        self.sink.refuse(Some(code));
    }

    /// Accepts spans again after [`Collector::refuse`].
    pub fn accept(&self) {
        self.sink.refuse(None);
    }

    /// Fails if the process has ended by itself; the error has the end of its log.
    ///
    /// # Errors
    /// See above.
    pub fn check_running(&self) -> Result<()> {
        self.running(Process::check_running)
    }

    fn running(&self, act: impl FnOnce(&Process) -> Result<()>) -> Result<()> {
        match &*self.process() {
            Some(process) => act(process),
            None => bail!("the Collector does not run"),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the process and waits until it listens on `port`.
async fn spawn(
    workdir: &Arc<Workdir>,
    port: u16,
    tls: Option<&CollectorTls>,
    sink: &Sink,
) -> Result<Process> {
    let program = tokio::task::spawn_blocking(|| Tool::Otelcol.path()).await??;
    let config = workdir.path().join("otelcol.json");
    fs::write(&config, configuration(port, tls, sink).to_string())
        .context("writing the Collector's configuration")?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&config).current_dir(workdir.path());
    let process = Process::spawn_in(workdir, "otelcol", command)?.into_environment();
    process.wait_for_log_line(READY, READY_DEADLINE).await?;
    Ok(process)
}

fn configuration(port: u16, tls: Option<&CollectorTls>, sink: &Sink) -> serde_json::Value {
    let tls = tls
        .map(|tls| json!({"cert_file": tls.certificate, "key_file": tls.key, "client_ca_file": tls.clients}));
    // JSON is valid YAML.
    json!({
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": format!("127.0.0.1:{port}"), "tls": tls}}}},
        "exporters": {
            // One line per span in the Collector's log.
            "debug": {"verbosity": "normal"},
            "otlp_grpc": {
                "endpoint": sink.address().to_string(),
                "tls": {"insecure": true},
                "compression": "none",
                // Return an error to the sender at once.
                "sending_queue": {"enabled": false},
                "retry_on_failure": {"enabled": false},
            },
        },
        "service": {
            // The Collector's own metrics would need a port.
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["debug", "otlp_grpc"]}},
        },
    })
}
