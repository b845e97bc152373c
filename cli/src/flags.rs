//! The flags that several commands have.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use nodewise_client::args::TlsArgs;
use nodewise_proto::v1;

/// The source of the cluster's objects.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// What `kubectl get deployments,replicasets,daemonsets,controllerrevisions,pods,nodes -A -o json` (or yaml) prints, and where the
    /// kind is installed also `kubectl get rolloutpolicies -A -o json`; `-` reads standard input; may be given several times. Without it the objects are read from a cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) files: Vec<PathBuf>,
    /// The kubeconfig of the cluster [default: KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// How changes are checked.
#[derive(Debug, Args)]
pub(crate) struct DryRunArgs {
    /// Merge the change here instead of asking the apiserver: without its defaults, validation, webhooks and policies, and without
    /// the right to patch the workload
    #[arg(long)]
    pub(crate) local: bool,
    /// The field manager in whose name a manifest is applied. Fields that it owns and that the manifest leaves out are removed
    #[arg(long, value_name = "NAME", default_value = "kubectl")]
    pub(crate) field_manager: String,
}

/// A planning service.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Use this planning service, for example http://127.0.0.1:7443 or dns:///planner.example:7443, instead of the planner in
    /// this binary. May be repeated or separated by commas; one that can be reached answers
    #[arg(long, env = "NODEWISE_SERVER", value_delimiter = ',', value_name = "URL")]
    pub(crate) server: Vec<String>,
    /// TLS flags for the service
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// The longest time of one call of the planning service, over all servers that are asked
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_timeout)]
    pub(crate) server_timeout: Duration,
}

/// The planner, and its options.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    #[command(flatten)]
    pub(crate) service: ServerArgs,
    /// The time to plan for, such as 2026-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) now: Option<Timestamp>,
    /// The deviations from the built-in controller that are enabled
    #[arg(long, env = "NODEWISE_PROFILE", value_enum, default_value_t)]
    pub(crate) profile: Profile,
}

/// A set of deviations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// The built-in controller's behaviour, with its known defects fixed
    #[default]
    Default,
    /// Exactly the built-in controller's behaviour
    UpstreamStrict,
}

impl From<Profile> for v1::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Default => Self::Default,
            Profile::UpstreamStrict => Self::UpstreamStrict,
        }
    }
}

/// Parses a timeout of 1 ms to 24 h.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let duration: SignedDuration = text
        .parse()
        .map_err(|_| "not a duration such as 30s or 2m".to_owned())?;
    if !(SignedDuration::from_millis(1)..=SignedDuration::from_hours(24)).contains(&duration) {
        return Err("not from 1ms to 24h".to_owned());
    }
    Ok(duration.unsigned_abs())
}

/// Parses the longest time of a watch. As with kubectl, 0 is no limit.
pub(crate) fn parse_watch_time(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    parse_timeout(text)
}

/// 0001-01-01T00:00:00Z, the first time of a Protobuf timestamp.
const FIRST: Timestamp = Timestamp::constant(-62_135_596_800, 0);
/// 9999-12-30T00:00:00Z, the last time that the service accepts.
const LAST: Timestamp = Timestamp::constant(253_402_128_000, 0);

pub(crate) fn parse_time(text: &str) -> Result<Timestamp, String> {
    let time: Timestamp = text
        .parse()
        .map_err(|_| "not a time such as 2026-01-31T12:00:00Z".to_owned())?;
    if !(FIRST..=LAST).contains(&time) {
        return Err(format!("not from {FIRST} to {LAST}"));
    }
    Ok(time)
}
