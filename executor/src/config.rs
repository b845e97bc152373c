//! What an executor is told, after flags and environment have been read.

use std::{fmt, num::NonZeroU64, time::Duration};

use nodewise_client::{ClientTls, args::TlsError, target::Target};
use nodewise_proto::v1;

use crate::{
    lead::{Timing, TimingError},
    selection::Selection,
};

/// Settings of an executor.
#[derive(Debug, Clone)]
pub struct Config {
    /// Replicas of the service; at least one.
    pub servers: Vec<Target>,
    /// TLS to those that are looked up, and what is believed of the others that speak it.
    pub tls: Option<ClientTls>,
    /// Whether plain text is spoken to servers that are not on loopback.
    pub plaintext: bool,
    /// Where the cluster is, for traces; `None`: they do not tell.
    pub apiserver: Option<http::Uri>,
    /// Whether to write.
    pub mode: Mode,
    /// How to take part in leader election; `None`: work at once.
    pub election: Option<Election>,
    /// The only namespace to watch; `None`: all.
    pub namespace: Option<String>,
    /// Which DaemonSets are owned.
    pub selection: Selection,
    /// Workloads in work at the same time.
    pub concurrent_syncs: usize,
    /// Writes of one workload under way at the same time.
    pub concurrent_writes: usize,
    /// Most calls per second that plans may cause; `None`: no limit.
    pub calls_per_second: Option<NonZeroU64>,
    /// Most pods that are created per second.
    pub creates_per_second: Option<NonZeroU64>,
    /// How the service is asked to plan.
    pub options: v1::PlanOptions,
    /// Buckets that nodes and pods are divided into.
    pub buckets: u32,
    /// Longest wait for one plan.
    pub plan_timeout: Duration,
    /// When a second replica is asked for a plan that has not come; `None`: never.
    pub hedge_after: Option<Duration>,
    /// Longest wait for one answer of the apiserver.
    pub api_timeout: Duration,
    /// Most actions of a batch whose calls are traced one by one.
    pub traced_calls: usize,
    /// Whether created pods carry the trace context of their batch.
    pub trace_annotations: bool,
    /// Longest time from the request to stop to the end of the work under way.
    pub drain_timeout: Duration,
}

/// Whether to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Apply plans.
    Own,
    /// Only say what would be written.
    Observe,
    /// Apply plans for rollouts alone, beside the built-in controller.
    Companion,
}

impl Mode {
    /// Whether anything is written.
    #[must_use]
    pub fn writes(self) -> bool {
        self != Self::Observe
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Observe => "observe",
            Self::Companion => "companion",
        })
    }
}

/// How to take part in leader election.
#[derive(Debug, Clone)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// A name that no other process has.
    pub identity: String,
    /// How long everything takes.
    pub timing: Timing,
}

/// Settings that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is nobody to ask.
    #[error("no server is given: name at least one with --server")]
    NoServer,
    /// A Lease is written, and who works must get it.
    #[error("--mode observe writes nothing, so it takes no lease: leave --leader-elect out")]
    ObserverElection,
    /// Leader election would be unsafe or never settle.
    #[error("leader election: {0}")]
    Timing(#[from] TimingError),
    /// No server can be asked as it is wanted.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Every call would fail.
    #[error("{0} must be longer than zero")]
    ZeroTimeout(&'static str),
}

impl Config {
    /// Checks the settings.
    pub fn validate(self) -> Result<Self, ConfigError> {
        if self.servers.is_empty() {
            return Err(ConfigError::NoServer);
        }
        if let Some(election) = &self.election {
            if self.mode == Mode::Observe {
                return Err(ConfigError::ObserverElection);
            }
            election.timing.validate()?;
        }
        for (name, timeout) in [
            ("--plan-timeout", self.plan_timeout),
            ("--api-timeout", self.api_timeout),
            ("--hedge-after", self.hedge_after.unwrap_or(Duration::MAX)),
        ] {
            if timeout.is_zero() {
                return Err(ConfigError::ZeroTimeout(name));
            }
        }
        Ok(self)
    }
}
