//! The real server, in a process of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_testbed::Process;
use tonic::transport::{Channel, Endpoint};

use crate::measure::ThreadTimes;
use crate::{cores, measure, programs};

/// Much longer than a server takes to listen.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest call: one that takes so long would not be worth its figure.
const LONGEST_CALL: Duration = Duration::from_secs(20);
/// Before the addresses in its log.
const GRPC: &str = "serve: listening on ";
const HTTP: &str = "health and metrics: listening on ";
/// The variable that says where spans go.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Replica {
    process: Process,
}

impl Replica {
    /// Starts one as it is by default, but for these arguments; on a free port.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        Self::start_sending(program, arguments, None)
    }

    /// Starts one that sends its spans to this endpoint, if there is one.
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

    /// Starts one that keeps to one core, of which it then knows no other.
    ///
    /// # Errors
    /// As [`Replica::start`], or the core may not be used.
    pub fn start_on(core: usize, program: &Path) -> Result<Self> {
        cores::on(&[core], || Self::start(program, &[]))
    }

    /// A connection to it, once it listens.
    ///
    /// # Errors
    /// It ends instead, or does not come to it.
    pub async fn connect(&self) -> Result<Channel> {
        let address = self.says(GRPC).await?;
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.timeout(LONGEST_CALL);
        endpoint
            .connect()
            .await
            .with_context(|| format!("connecting to {address}"))
    }

    /// A client of its own connection, which takes answers of any size.
    ///
    /// # Errors
    /// As [`Replica::connect`].
    pub async fn client(&self) -> Result<ReconcileServiceClient<Channel>> {
        Ok(ReconcileServiceClient::new(self.connect().await?).max_decoding_message_size(usize::MAX))
    }

    /// Its metrics, as it serves them.
    ///
    /// # Errors
    /// It does not.
    pub async fn metrics(&self) -> Result<String> {
        let address = self.says(HTTP).await?;
        let client = kube::Client::try_from(kube::Config::new(format!("http://{address}").parse()?))?;
        let request = http::Request::get("/metrics").body(Vec::new())?;
        client.request_text(request).await.context("asking for metrics")
    }

    /// The address behind these words in its log.
    async fn says(&self, words: &str) -> Result<SocketAddr> {
        let line = self.process.wait_for_log_line(words, PATIENCE).await?;
        let (_, address) = line.rsplit_once(words).context("the line has the words")?;
        let address = address.split_whitespace().next().unwrap_or_default();
        address
            .parse()
            .with_context(|| format!("the address in {line:?}"))
    }

    /// CPU time that it has taken so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        measure::cpu_time(self.process.pid())
    }

    /// The same by its threads, and finer.
    ///
    /// # Errors
    /// As [`ThreadTimes::of`].
    pub fn thread_times(&self) -> Result<ThreadTimes> {
        ThreadTimes::of(self.process.pid())
    }
}
