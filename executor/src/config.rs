//! Settings of an executor, after flags and environment variables have been read.

use std::{fmt, num::NonZeroU64, time::Duration};

use nodewise_client::{ClientTls, args::TlsError, target::Target};
use nodewise_projection::OwnershipSelector;
use nodewise_proto::v1;
use nodewise_runtime::lead::{Timing, TimingError};
use serde_json::json;

use crate::analysis;
use crate::controllers::Controller;
pub use crate::mode::Mode;

/// Settings of an executor.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses of the service; at least one.
    pub servers: Vec<Target>,
    /// TLS settings of the client: the trusted certificate authorities, its own certificate, and the expected server
    /// name.
    pub tls: Option<ClientTls>,
    /// Whether plain text is allowed to servers that are not on loopback.
    pub plaintext: bool,
    /// Address of the apiserver, for traces; `None`: traces do not contain it.
    pub apiserver: Option<http::Uri>,
    /// The controllers to run; at least one.
    pub controllers: Vec<ControllerConfig>,
    /// Leader election; `None`: work without election.
    pub election: Option<Election>,
    /// The only namespace to watch; `None`: all namespaces.
    pub namespace: Option<String>,
    /// The workloads that the executor owns.
    pub selection: OwnershipSelector,
    /// Concurrent writes of one workload, if no rate is limited.
    pub concurrent_writes: usize,
    /// Maximum requests per second for plans; `None`: no limit.
    pub calls_per_second: Option<NonZeroU64>,
    /// Maximum pods created per second; `None`: no limit.
    pub creates_per_second: Option<NonZeroU64>,
    /// Options that are sent with each plan request.
    pub options: v1::PlanOptions,
    /// Number of buckets that nodes and pods are divided into.
    pub buckets: u32,
    /// Timeout of one plan.
    pub plan_timeout: Duration,
    /// Delay after which a second replica is asked for the same plan; `None`: never.
    pub hedge_after: Option<Duration>,
    /// Timeout of one request to the apiserver.
    pub api_timeout: Duration,
    /// Maximum actions of a batch whose requests get their own spans.
    pub traced_calls: usize,
    /// Whether created pods carry the trace context of their batch.
    pub trace_annotations: bool,
    /// Maximum time from the request to stop until the work under way has ended.
    pub drain_timeout: Duration,
    /// Whom the executor may call for the analysis of RolloutPolicies, and how.
    pub analysis: analysis::Settings,
}

/// A controller to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Which one.
    pub controller: Controller,
    /// Whether it writes to the cluster.
    pub mode: Mode,
    /// Workloads reconciled concurrently.
    pub workers: usize,
}

/// `NAME=MODE`.
impl fmt::Display for ControllerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.controller, self.mode)
    }
}

/// Settings of leader election.
#[derive(Debug, Clone)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// The identity of this process: unique among all processes.
    pub identity: String,
    /// Durations of the election.
    pub timing: Timing,
}

/// Settings that are invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no server to ask.
    #[error("no server is given: name at least one with --server")]
    NoServer,
    /// There would be nothing to do.
    #[error("--controllers enables no controller")]
    NoController,
    /// A controller has no mode.
    #[error("--mode does not say whether {0} writes: add {0}=MODE, or a MODE for all controllers")]
    NoMode(Controller),
    /// Only DaemonSets have a mode in which another controller does the rest.
    #[error(
        "--mode companion is for daemonset-controller only: give {0} the mode own or observe, or disable it"
    )]
    NoCompanion(Controller),
    /// An election writes a Lease, and an observer must not take it from an executor that writes.
    #[error("--mode observe writes nothing, so it takes no lease: leave --leader-elect out")]
    ObserverElection,
    /// Leader election would be unsafe or would never settle.
    #[error("leader election: {0}")]
    Timing(#[from] TimingError),
    /// The TLS settings fit none of the servers.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// With a timeout of zero every call would fail.
    #[error("{0} must be longer than zero")]
    ZeroTimeout(&'static str),
    /// A snapshot has no room for more.
    #[error("{0} hosts are given with --analysis-host, and at most {most} are taken", most = analysis::MOST_HOSTS)]
    TooManyHosts(usize),
    /// A credential cannot be found.
    #[error(
        "--analysis-host names the credential {0:?}: say with --analysis-credentials which folder has it"
    )]
    NoCredentials(String),
}

impl Config {
    /// How many writes of a plan are under way at a time. At a limited rate no more than may begin within a second: others would only wait
    /// for their turn, and neither a failure nor a stop would hold them back.
    #[must_use]
    pub fn writes_under_way(&self) -> usize {
        let rates = [self.calls_per_second, self.creates_per_second];
        let rates = rates.into_iter().flatten();
        let rates = rates.map(|rate| usize::try_from(rate.get()).unwrap_or(usize::MAX));
        rates.fold(self.concurrent_writes, usize::min)
    }

    /// Whether any controller writes to the cluster.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.controllers.iter().any(|controller| controller.mode.writes())
    }

    /// The settings as JSON, for `/configz`. Certificates and keys are left out.
    #[must_use]
    pub fn to_json(&self) -> String {
        let seconds = |duration: Duration| duration.as_secs_f64();
        let controllers = self.controllers.iter().map(|of| {
            json!({"name": of.controller.name(), "mode": of.mode.to_string(), "concurrentSyncs": of.workers})
        });
        let election = self.election.as_ref().map(|election| {
            json!({
                "leaseNamespace": election.namespace,
                "identity": election.identity,
                "leaseDurationSeconds": seconds(election.timing.lease_duration),
                "renewDeadlineSeconds": seconds(election.timing.renew_deadline),
                "retryPeriodSeconds": seconds(election.timing.retry_period),
            })
        });
        let servers = self.servers.iter().map(ToString::to_string);
        let settings = json!({
            "controllers": controllers.collect::<Vec<_>>(),
            "servers": servers.collect::<Vec<_>>(),
            "tls": self.tls.is_some(),
            "leaderElection": election,
            "namespace": self.namespace,
            "selector": self.selection.to_string(),
            "concurrentWrites": self.concurrent_writes,
            "clientQps": self.calls_per_second,
            "createRate": self.creates_per_second,
            "planOptions": self.options,
            "buckets": self.buckets,
            "planTimeoutSeconds": seconds(self.plan_timeout),
            "hedgeAfterSeconds": self.hedge_after.map(seconds),
            "apiTimeoutSeconds": seconds(self.api_timeout),
            "drainTimeoutSeconds": seconds(self.drain_timeout),
            "traceCalls": self.traced_calls,
            "traceAnnotations": self.trace_annotations,
            "analysisHosts": self.analysis.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "analysisTimeoutSeconds": seconds(self.analysis.timeout),
        });
        json!({"nodewise-executor": settings}).to_string()
    }

    /// Checks the settings.
    pub fn validate(self) -> Result<Self, ConfigError> {
        if self.servers.is_empty() {
            return Err(ConfigError::NoServer);
        }
        if self.controllers.is_empty() {
            return Err(ConfigError::NoController);
        }
        for of in &self.controllers {
            if of.mode == Mode::Companion && of.controller != Controller::DaemonSet {
                return Err(ConfigError::NoCompanion(of.controller));
            }
        }
        if let Some(election) = &self.election {
            if !self.writes() {
                return Err(ConfigError::ObserverElection);
            }
            election.timing.validate()?;
        }
        for (name, timeout) in [
            ("--plan-timeout", self.plan_timeout),
            ("--api-timeout", self.api_timeout),
            ("--analysis-timeout", self.analysis.timeout),
            ("--hedge-after", self.hedge_after.unwrap_or(Duration::MAX)),
        ] {
            if timeout.is_zero() {
                return Err(ConfigError::ZeroTimeout(name));
            }
        }
        let hosts = &self.analysis.hosts;
        if hosts.len() > analysis::MOST_HOSTS {
            return Err(ConfigError::TooManyHosts(hosts.len()));
        }
        if self.analysis.credentials.is_none()
            && let Some(name) = hosts.iter().find_map(|host| host.credential())
        {
            return Err(ConfigError::NoCredentials(name.to_owned()));
        }
        Ok(self)
    }
}
