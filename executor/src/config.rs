//! Settings of an executor, after flags and environment variables have been read.

use std::{fmt, num::NonZeroU64, time::Duration};

use nodewise_client::{ClientTls, args::TlsError, target::Target};
use nodewise_projection::OwnershipSelector;
use nodewise_proto::v1;
use nodewise_runtime::lead::{Timing, TimingError};

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
    /// Whether to write to the cluster.
    pub mode: Mode,
    /// Leader election; `None`: work without election.
    pub election: Option<Election>,
    /// The only namespace to watch; `None`: all namespaces.
    pub namespace: Option<String>,
    /// The DaemonSets that the executor owns.
    pub selection: OwnershipSelector,
    /// Workloads reconciled concurrently.
    pub concurrent_syncs: usize,
    /// Concurrent writes of one workload.
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
}

/// Whether to write to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Apply plans.
    Own,
    /// Only log what would be written.
    Observe,
    /// Apply plans of scope `ROLLOUTS` only, beside the built-in controller.
    Companion,
}

impl Mode {
    /// Whether the mode writes to the cluster.
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
