//! The process of a real server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_testbed::Process;
use tonic::transport::{Channel, Endpoint};

use crate::measure::ThreadTimes;
use crate::{cores, measure, programs};

/// How long a server may take to listen. Much longer than needed.
const LOG_DEADLINE: Duration = Duration::from_secs(20);
/// The deadline of a call.
const LONGEST_CALL: Duration = Duration::from_secs(20);
/// The text before the addresses in the server's log.
const GRPC: &str = "serve: listening on ";
const HTTP: &str = "health and metrics: listening on ";
/// The environment variable with the endpoint for spans.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A server process. It is killed on drop.
#[derive(Debug)]
pub struct Replica {
    process: Process,
}

impl Replica {
    /// Starts a server with the defaults and these arguments, on a free port.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_sending(program, arguments, None)
    }

    /// Starts a server that exports its spans to this endpoint, if given.
    ///
    /// # Errors
    /// As [`Replica::start`].
    pub fn start_sending(program: &Path, arguments: &[&str], endpoint: Option<&str>) -> Result<Self> {
        let mut command = programs::command(program);
        command
            .args(["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
            .args(arguments)
            .envs(endpoint.map(|endpoint| (ENDPOINT, endpoint)));
        Ok(Self {
            process: Process::spawn("server", command)?,
        })
    }

    /// Starts a server that is pinned to one core.
    ///
    /// # Errors
    /// As [`Replica::start`], or the core may not be used.
    pub fn start_on(core: usize, program: &Path) -> Result<Self> {
        cores::on(&[core], || Self::start(program, &[]))
    }

    /// Connects to the server once it listens.
    ///
    /// # Errors
    /// The server ends, or does not listen in time.
    pub async fn connect(&self) -> Result<Channel> {
        let address = self.says(GRPC).await?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.timeout(LONGEST_CALL);
        endpoint
            .connect()
            .await
            .with_context(|| format!("connecting to {address}"))
    }

    /// A client on a new connection, which accepts responses of any size.
    ///
    /// # Errors
    /// As [`Replica::connect`].
    pub async fn client(&self) -> Result<ReconcileServiceClient<Channel>> {
        Ok(ReconcileServiceClient::new(self.connect().await?).max_decoding_message_size(usize::MAX))
    }

    /// The text of its metrics.
    ///
    /// # Errors
    /// The server does not serve them.
    pub async fn metrics(&self) -> Result<String> {
        let address = self.says(HTTP).await?;
        let client = kube::Client::try_from(kube::Config::new(format!("http://{address}").parse()?))?;
        let request = http::Request::get("/metrics").body(Vec::new())?;
        client.request_text(request).await.context("asking for metrics")
    }

    /// The address after these words in its log.
    async fn says(&self, words: &str) -> Result<SocketAddr> {
        let line = self.process.wait_for_log_line(words, LOG_DEADLINE).await?;
        let (_, address) = line.rsplit_once(words).context("the line has the words")?;
        let address = address.split_whitespace().next().unwrap_or_default();
        address
            .parse()
            .with_context(|| format!("the address in {line:?}"))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its CPU time so far.
    ///
    /// # Errors
    /// The server has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        measure::cpu_time(self.process.pid())
    }

    /// Its CPU time by thread, with a finer resolution.
    ///
    /// # Errors
    /// As [`ThreadTimes::of`].
    pub fn thread_times(&self) -> Result<ThreadTimes> {
        ThreadTimes::of(self.process.pid())
    }
}
