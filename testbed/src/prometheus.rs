//! Runs a Prometheus that scrapes the targets of a test.

pub(crate) mod api;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use self::api::{Alert, Api, Exemplar, Sample, Target};
use crate::ports::free_ports;
use crate::process::{Process, port_was_taken};
use crate::tools::Tool;
use crate::wait::eventually;
use crate::workdir::Workdir;

/// How long Prometheus may take to become ready; less than a second on an idle machine.
const READY_DEADLINE: Duration = Duration::from_mins(1);

/// How often a start is retried because another process took the port first.
const PORT_TRIES: usize = 5;

/// The interval between scrapes of a target and between evaluations of a rule.
const INTERVAL: &str = "1s";

/// The configuration of a [`Prometheus`]; [`PrometheusBuilder::start`] starts it.
#[derive(Clone, Debug, Default)]
pub struct PrometheusBuilder {
    targets: BTreeMap<String, Vec<SocketAddr>>,
    rules: Vec<PathBuf>,
}

impl PrometheusBuilder {
    /// Scrapes `/metrics` of this address every second, with this `job` label.
    #[must_use]
    pub fn target(mut self, job: impl Into<String>, address: SocketAddr) -> Self {
        self.targets.entry(job.into()).or_default().push(address);
        self
    }

    /// Evaluates the rules of this file every second.
    #[must_use]
    pub fn rules(mut self, file: impl Into<PathBuf>) -> Self {
        self.rules.push(file.into());
        self
    }

    /// Starts Prometheus on a free port and waits until it is ready.
    ///
    /// # Errors
    /// The program is missing or cannot be started, or it rejects the rules; the error has the end of its log.
    pub async fn start(self) -> Result<Prometheus> {
        let program = tokio::task::spawn_blocking(|| Tool::Prometheus.path()).await??;
        let workdir = Workdir::new()?;
        let config = workdir.path().join("prometheus.json");
        fs::write(&config, self.configuration()?.to_string()).context("writing Prometheus' configuration")?;
        let mut tries = 1;
        loop {
            let [port] = free_ports().context("looking for a free port")?;
            let mut command = Command::new(&program);
            command
                .current_dir(workdir.path())
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg(format!(
                    "--storage.tsdb.path={}",
                    workdir.path().join("data").display()
                ))
                .arg("--enable-feature=exemplar-storage")
                // The delay before the first scrape; five seconds by default.
                .arg(format!("--scrape.discovery-reload-interval={INTERVAL}"));
            let targets = self.targets.values().map(Vec::len).sum();
            match Prometheus::start_at(&workdir, port, command, targets).await {
                Err(error) if tries < PORT_TRIES && port_was_taken(&error) => tries += 1,
                result => return result,
            }
        }
    }

    fn configuration(&self) -> Result<serde_json::Value> {
        let rules = self
            .rules
            .iter()
            .map(|file| {
                file.canonicalize()
                    .with_context(|| format!("looking for {}", file.display()))
            })
            .collect::<Result<Vec<_>>>()?;
        let jobs: Vec<_> = self
            .targets
            .iter()
            .map(|(job, targets)| json!({"job_name": job, "static_configs": [{"targets": targets}]}))
            .collect();
        // JSON is valid YAML.
        Ok(json!({
            "global": {
                "scrape_interval": INTERVAL,
                "scrape_timeout": INTERVAL,
                "evaluation_interval": INTERVAL,
            },
            "rule_files": rules,
            "scrape_configs": jobs,
        }))
    }
}

/// A Prometheus process. It keeps exemplars. Its data is deleted when the value is dropped.
#[derive(Debug)]
pub struct Prometheus {
    process: Process,
    api: Api,
    /// The number of configured targets.
    targets: usize,
}

impl Prometheus {
    /// Configures a Prometheus; see [`PrometheusBuilder`].
    #[must_use]
    pub fn builder() -> PrometheusBuilder {
        PrometheusBuilder::default()
    }

    async fn start_at(workdir: &Arc<Workdir>, port: u16, command: Command, targets: usize) -> Result<Self> {
        let prometheus = Self {
            process: Process::spawn_in(workdir, "prometheus", command)?.into_environment(),
            api: Api::new(port)?,
            targets,
        };
        // If the process has ended it does not come back, so stop waiting and report it.
        let ended = eventually(READY_DEADLINE, "a ready Prometheus", async || {
            if let Err(ended) = prometheus.process.check_running() {
                return Ok(Some(ended));
            }
            prometheus.api.ready().await?;
            Ok(None)
        })
        .await?;
        ended.map_or(Ok(prometheus), Err)
    }

    /// The URL of its UI and HTTP API.
    #[must_use]
    pub fn url(&self) -> &str {
        self.api.url()
    }

    /// Evaluates a `PromQL` query now. Returns one sample per series; a scalar is one sample without labels.
    ///
    /// # Errors
    /// Prometheus rejects the query or does not answer, or the result is neither a scalar nor an instant vector.
    pub async fn query(&self, promql: &str) -> Result<Vec<Sample>> {
        self.api.query(promql).await
    }

    /// The targets, with the result of the last scrape.
    ///
    /// # Errors
    /// Prometheus does not answer.
    pub async fn targets(&self) -> Result<Vec<Target>> {
        self.api.targets().await
    }

    /// Waits until all targets have been scraped successfully.
    ///
    /// # Errors
    /// The deadline passed; the error has the result of the last scrapes.
    pub async fn wait_until_up(&self, deadline: Duration) -> Result<()> {
        eventually(deadline, "a scrape of each target", async || {
            let targets = self.targets().await?;
            // Prometheus discovers the targets some time after its start.
            let up = targets.iter().filter(|target| target.up).count();
            ensure!(up == self.targets, "{up} of {} are up: {targets:?}", self.targets);
            Ok(())
        })
        .await
    }

    /// All exemplars of the series that a `PromQL` query selects.
    ///
    /// # Errors
    /// Prometheus rejects the query or does not answer.
    pub async fn exemplars(&self, promql: &str) -> Result<Vec<Exemplar>> {
        self.api.exemplars(promql).await
    }

    /// The alerts that are pending or firing.
    ///
    /// # Errors
    /// Prometheus does not answer.
    pub async fn alerts(&self) -> Result<Vec<Alert>> {
        self.api.alerts().await
    }
}
