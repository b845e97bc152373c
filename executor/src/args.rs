//! Command-line flags. Each flag also has an environment variable.

use std::{collections::BTreeMap, net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{ArgAction, Parser, ValueEnum};
use nodewise_client::{args::TlsArgs, target::Target};
use nodewise_projection::OwnershipSelector;
use nodewise_proto::v1;
use nodewise_runtime::{apply::DEFAULT_CONCURRENCY, lead::Timing, trace::DEFAULT_TRACED_CALLS};
use nodewise_telemetry::LogFormat;

use crate::analysis::{self, hosts::AllowedHost};
use crate::config::{Config, ConfigError, ControllerConfig};
use crate::controllers::{Controller, Entry, ModeEntry, is_enabled, mode_of};

/// The burst if writes are a window: four times as many as are under way at a time by default. A longer plan waits less often for its last answers,
/// but the executor looks at a workload between plans only.
const WINDOW_BURST: u32 = 1_000;

/// Runs DaemonSets, ReplicaSets and Deployments with the plans of a nodewise-server: watches the apiserver, asks for plans,
/// applies them and reports the outcomes.
#[derive(Debug, Clone, Parser)]
#[command(name = "nodewise-executor", version)]
pub struct Args {
    /// Address of the service: https://HOST:PORT or http://HOST:PORT for one replica; dns:///HOST:PORT for a replica at
    /// each address of the name; kubernetes:///SERVICE.NAMESPACE:PORT for a replica at each endpoint of a Service.
    /// Repeat the flag or separate addresses with commas for more
    #[arg(
        long,
        env = "NODEWISE_SERVER",
        required = true,
        value_delimiter = ',',
        value_name = "TARGET"
    )]
    pub server: Vec<Target>,

    /// TLS to the service
    #[command(flatten)]
    pub tls: TlsArgs,

    /// Kubeconfig file of the cluster [default: KUBECONFIG, else the service account of the pod]
    #[arg(long, env = "NODEWISE_KUBECONFIG", value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,

    /// Controllers to run: `*` for all, `NAME` to enable one, `-NAME` to disable one, as in kube-controller-manager. The
    /// names are daemonset-controller, deployment-controller and replicaset-controller, or without `-controller`
    #[arg(
        long,
        env = "NODEWISE_CONTROLLERS",
        value_delimiter = ',',
        default_value = "daemonset-controller",
        value_name = "LIST",
        allow_hyphen_values = true
    )]
    pub controllers: Vec<Entry>,

    /// Whether to write to the cluster; there is no default, because `own` takes over every workload of the cluster. `own`:
    /// act as the controller; the built-in one must be off. `observe`: write nothing and log what would be written; for
    /// running beside the built-in controller. `companion`: run beside the built-in controller and only delete or evict old
    /// pods of DaemonSets with strategy OnDelete that have a RolloutPolicy, or the annotation `nodewise.dev/rollout: managed`
    /// and then within `nodewise.dev/max-unavailable`. One controller may have another mode: `own,deployment-controller=observe`
    #[arg(
        long,
        env = "NODEWISE_MODE",
        required = true,
        value_delimiter = ',',
        value_name = "MODE"
    )]
    pub mode: Vec<ModeEntry>,

    /// Work only while holding a Lease, so that several executors can run; not in mode observe [default: true in the
    /// other modes]
    #[arg(long, env = "NODEWISE_LEADER_ELECT", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL")]
    pub leader_elect: Option<bool>,

    /// Namespace of the Lease
    #[arg(
        long,
        env = "NODEWISE_LEASE_NAMESPACE",
        default_value = "kube-system",
        value_name = "NAMESPACE"
    )]
    pub lease_namespace: String,

    /// How long other executors respect the Lease after its last renewal
    #[arg(long, env = "NODEWISE_LEASE_DURATION", default_value = "15s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub lease_duration: Duration,

    /// How long the leader keeps working without a renewal
    #[arg(long, env = "NODEWISE_RENEW_DEADLINE", default_value = "10s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub renew_deadline: Duration,

    /// Pause between two attempts to acquire or renew the Lease
    #[arg(long, env = "NODEWISE_RETRY_PERIOD", default_value = "2s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub retry_period: Duration,

    /// Watch workloads, pods and revisions of this namespace only [default: all]
    #[arg(long, env = "NODEWISE_NAMESPACE", value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Own only workloads whose labels match, in the syntax of kubectl --selector: app=agent,tier in (a,b) [default: all]
    #[arg(
        long,
        env = "NODEWISE_SELECTOR",
        default_value = "",
        hide_default_value = true,
        value_name = "SELECTOR"
    )]
    pub selector: OwnershipSelector,

    /// DaemonSets reconciled concurrently. One extra worker takes only urgent ones: new DaemonSets, and all of them when a node is added
    #[arg(
        long,
        env = "NODEWISE_CONCURRENT_DAEMONSET_SYNCS",
        alias = "concurrent-syncs",
        default_value = "2",
        value_name = "N"
    )]
    pub concurrent_daemonset_syncs: NonZeroUsize,

    /// Deployments reconciled concurrently
    #[arg(
        long,
        env = "NODEWISE_CONCURRENT_DEPLOYMENT_SYNCS",
        default_value = "5",
        value_name = "N"
    )]
    pub concurrent_deployment_syncs: NonZeroUsize,

    /// ReplicaSets reconciled concurrently
    #[arg(
        long,
        env = "NODEWISE_CONCURRENT_REPLICASET_SYNCS",
        default_value = "5",
        value_name = "N"
    )]
    pub concurrent_replicaset_syncs: NonZeroUsize,

    /// Concurrent writes to the apiserver for one workload
    #[arg(long, env = "NODEWISE_CONCURRENT_WRITES", default_value_t = DEFAULT_CONCURRENCY, value_name = "N")]
    pub concurrent_writes: NonZeroUsize,

    /// Maximum creates, and separately maximum deletes, of one plan [default: 1000; as upstream, 250 for DaemonSets and 500 for
    /// ReplicaSets, with the profile upstream-strict and with a limited rate]
    #[arg(long, env = "NODEWISE_BURST", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub burst: Option<u32>,

    /// Which fixes of upstream defects are enabled
    #[arg(long, env = "NODEWISE_PROFILE", value_enum, default_value_t = ProfileArg::Default)]
    pub profile: ProfileArg,

    /// Deviations to enable in addition to those of the profile, such as surge-honours-backoff
    #[arg(long, env = "NODEWISE_ENABLE_DEVIATION", value_delimiter = ',', value_name = "NAME",
          value_parser = parse_deviation)]
    pub enable_deviation: Vec<v1::Deviation>,

    /// Deviations to disable
    #[arg(long, env = "NODEWISE_DISABLE_DEVIATION", value_delimiter = ',', value_name = "NAME",
          value_parser = parse_deviation)]
    pub disable_deviation: Vec<v1::Deviation>,

    /// Feature gates that change plans, as the cluster's kube-controller-manager has them: PodDeletionCost=false; docs/protocol.md
    /// lists them
    #[arg(long, env = "NODEWISE_FEATURE_GATES", value_delimiter = ',', value_name = "NAME=BOOL",
          value_parser = parse_feature_gate)]
    pub feature_gates: Vec<(v1::FeatureGate, bool)>,

    /// Number of buckets that nodes and pods are divided into (the pods of a ReplicaSet, up to four times as many); unchanged buckets
    /// are not sent again
    #[arg(long, env = "NODEWISE_BUCKETS", default_value_t = 64, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub buckets: u32,

    /// Timeout of one plan; after a third of it without an answer, the next replica is asked
    #[arg(long, env = "NODEWISE_PLAN_TIMEOUT", default_value = "30s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub plan_timeout: Duration,

    /// Also ask a second replica if a plan has not arrived after this time, and use the first answer [default: never]
    #[arg(long, env = "NODEWISE_HEDGE_AFTER", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub hedge_after: Option<Duration>,

    /// Timeout of one request to the apiserver
    #[arg(long, env = "NODEWISE_API_TIMEOUT", default_value = "30s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub api_timeout: Duration,

    /// Maximum requests per second to the apiserver for plans; watches and the Lease are not limited [default: no
    /// limit; the apiserver's priority and fairness applies]
    #[arg(long, env = "NODEWISE_CLIENT_QPS", value_name = "N")]
    pub client_qps: Option<std::num::NonZeroU64>,

    /// Maximum pods created per second, by all plans together, first come, first served [default: no limit]
    #[arg(long, env = "NODEWISE_CREATE_RATE", value_name = "PODS")]
    pub create_rate: Option<std::num::NonZeroU64>,

    /// Maximum time from SIGTERM until the writes under way have ended; the executor does not wait for the service
    #[arg(long, env = "NODEWISE_DRAIN_TIMEOUT", default_value = "20s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub drain_timeout: Duration,

    /// Host that checks of RolloutPolicies may ask, as `HOST` (every port of it) or `HOST:PORT`; `HOST[:PORT]=CREDENTIAL` also allows
    /// to send it the token in the file CREDENTIAL of --analysis-credentials, over TLS or on loopback only. Whoever writes a policy
    /// chooses what such a host is asked. Repeat the flag or separate hosts with commas for more [default: none]
    #[arg(
        long,
        env = "NODEWISE_ANALYSIS_HOST",
        value_delimiter = ',',
        value_name = "HOST"
    )]
    pub analysis_host: Vec<AllowedHost>,

    /// Timeout of one call to such a host; the interval of the check bounds it as well
    #[arg(long, env = "NODEWISE_ANALYSIS_TIMEOUT", default_value = "10s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub analysis_timeout: Duration,

    /// Folder with a file for each credential that --analysis-host names: a bearer token, which is read for each call
    #[arg(long, env = "NODEWISE_ANALYSIS_CREDENTIALS", value_name = "DIR")]
    pub analysis_credentials: Option<PathBuf>,

    /// File with the certificate authorities of such hosts [default: those of the system; the images have none]
    #[arg(long, env = "NODEWISE_ANALYSIS_CA", value_name = "FILE")]
    pub analysis_ca: Option<PathBuf>,

    /// Address of /healthz, /readyz and /metrics; port 0 picks a free port, which is logged
    #[arg(
        long,
        env = "NODEWISE_HTTP_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDRESS"
    )]
    pub http_listen: SocketAddr,

    /// Maximum actions of a batch whose requests to the apiserver get their own spans; a larger batch gets one span
    /// with counts. Tracing itself is enabled and sampled by the standard OTEL_* variables
    #[arg(long, env = "NODEWISE_TRACE_CALLS", default_value_t = DEFAULT_TRACED_CALLS, value_name = "N")]
    pub trace_calls: usize,

    /// Give created pods the annotation nodewise.dev/traceparent, so that later reconciles and other tools can find the
    /// trace of their creation
    #[arg(long, env = "NODEWISE_TRACE_ANNOTATIONS")]
    pub trace_annotations: bool,

    /// Format of the log on standard error
    #[arg(long, env = "NODEWISE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,

    /// Log filter: a level, or directives such as `info,nodewise_executor=debug`
    #[arg(long, env = "NODEWISE_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
}

/// Which fixes of upstream defects are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// The fixes that are enabled by default
    Default,
    /// No fixes: the behaviour of Kubernetes, including its defects
    UpstreamStrict,
}

impl Args {
    /// Converts the flags to settings; `host` is the name of this machine or pod.
    pub fn config(&self, host: &str) -> Result<Config, ConfigError> {
        let controllers = self.enabled()?;
        let writes = controllers.iter().any(|controller| controller.mode.writes());
        let timing = Timing {
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
        };
        // An observer writes nothing. It needs no Lease and must not take it from an executor that writes.
        let elect = self.leader_elect.unwrap_or(writes);
        let config = Config {
            servers: self.server.clone(),
            tls: self.tls.client(&self.server)?,
            plaintext: self.tls.plaintext,
            controllers,
            election: elect.then(|| crate::config::Election {
                namespace: self.lease_namespace.clone(),
                identity: nodewise_runtime::lead::identity(host),
                timing,
            }),
            namespace: self.namespace.clone(),
            selection: self.selector.clone(),
            concurrent_writes: self.concurrent_writes.get(),
            calls_per_second: self.client_qps,
            creates_per_second: self.create_rate,
            options: self.plan_options(),
            buckets: self.buckets,
            plan_timeout: self.plan_timeout,
            hedge_after: self.hedge_after,
            api_timeout: self.api_timeout,
            apiserver: None,
            traced_calls: self.trace_calls,
            trace_annotations: self.trace_annotations,
            drain_timeout: self.drain_timeout,
            analysis: analysis::Settings {
                hosts: self.analysis_host.clone(),
                timeout: self.analysis_timeout,
                credentials: self.analysis_credentials.clone(),
                authorities: self.analysis_ca.clone(),
            },
        };
        config.validate()
    }

    /// The controllers that are enabled, with their settings.
    fn enabled(&self) -> Result<Vec<ControllerConfig>, ConfigError> {
        let on = Controller::ALL.into_iter();
        let on = on.filter(|controller| is_enabled(&self.controllers, *controller));
        on.map(|controller| {
            let workers = match controller {
                Controller::DaemonSet => self.concurrent_daemonset_syncs,
                Controller::Deployment => self.concurrent_deployment_syncs,
                Controller::ReplicaSet => self.concurrent_replicaset_syncs,
            };
            Ok(ControllerConfig {
                controller,
                mode: mode_of(&self.mode, controller).ok_or(ConfigError::NoMode(controller))?,
                workers: workers.get(),
            })
        })
        .collect()
    }

    fn plan_options(&self) -> v1::PlanOptions {
        let profile = match self.profile {
            ProfileArg::Default => v1::Profile::Default,
            ProfileArg::UpstreamStrict => v1::Profile::UpstreamStrict,
        };
        // As with the flag of the same name in Kubernetes, the last value of a gate counts.
        let gates: BTreeMap<v1::FeatureGate, bool> = self.feature_gates.iter().copied().collect();
        let gates = |value: bool| {
            let wanted = gates.iter().filter(move |(_, is_enabled)| **is_enabled == value);
            wanted.map(|(gate, _)| i32::from(*gate)).collect()
        };
        let mut options = v1::PlanOptions {
            profile: profile.into(),
            enabled_deviations: self
                .enable_deviation
                .iter()
                .map(|&deviation| deviation.into())
                .collect(),
            disabled_deviations: self
                .disable_deviation
                .iter()
                .map(|&deviation| deviation.into())
                .collect(),
            feature_gates: gates(true),
            disabled_feature_gates: gates(false),
            burst: self.burst,
            scope: v1::Scope::Workload.into(),
        };
        // The writes of a plan are a window, so a long plan waits less. At a limited rate it would take too long until the executor
        // looks at the workload again.
        let is_limited = self.client_qps.is_some() || self.create_rate.is_some();
        let is_window = options.enables(v1::Deviation::SlowStartAcrossPlans)
            && options.enables(v1::Deviation::IdempotentCreates);
        if is_window && !is_limited {
            options.burst.get_or_insert(WINDOW_BURST);
        }
        options
    }
}

/// Parses a deviation's name: `surge-honours-backoff` for DEVIATION_SURGE_HONOURS_BACKOFF.
fn parse_deviation(name: &str) -> Result<v1::Deviation, String> {
    v1::Deviation::from_str_name(&format!("DEVIATION_{}", name.to_uppercase().replace('-', "_")))
        .filter(|deviation| *deviation != v1::Deviation::Unspecified)
        .ok_or_else(|| format!("there is no deviation {name:?}; docs/upstream-differences.md lists them"))
}

/// Parses a feature gate in Kubernetes' syntax: `PodDeletionCost=false` for `FEATURE_GATE_POD_DELETION_COST`.
fn parse_feature_gate(text: &str) -> Result<(v1::FeatureGate, bool), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not of the form NAME=true or NAME=false"))?;
    let value = match value.trim() {
        "true" => true,
        "false" => false,
        other => {
            return Err(format!(
                "feature gate {name}: {other:?} is neither true nor false"
            ));
        }
    };
    let mut gates = (1..).map_while(|number| v1::FeatureGate::try_from(number).ok());
    let named = |gate: &v1::FeatureGate| {
        let words = gate.as_str_name().trim_start_matches("FEATURE_GATE_");
        words.replace('_', "").eq_ignore_ascii_case(name.trim())
    };
    let gate = gates.find(named).ok_or_else(|| {
        format!("there is no feature gate {name:?} that changes plans; docs/protocol.md lists them")
    })?;
    Ok((gate, value))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::config::Mode;

    const SERVER: [&str; 3] = ["nodewise-executor", "--server", "http://127.0.0.1:7443"];

    /// Settings for these flags, in mode own unless the flags say otherwise.
    fn config(flags: &[&str]) -> Result<Config, ConfigError> {
        let mode: &[&str] = if flags.iter().any(|flag| flag.starts_with("--mode")) {
            &[]
        } else {
            &["--mode", "own"]
        };
        Args::try_parse_from(SERVER.iter().chain(mode).chain(flags))
            .expect("flags")
            .config("host")
    }

    #[test]
    fn the_mode_has_no_default() {
        let error = Args::try_parse_from(SERVER).expect_err("no mode is given");
        assert!(error.to_string().contains("--mode"), "{error}");
    }

    #[test]
    fn every_flag_is_an_environment_variable_of_the_same_name() {
        let command = Args::command();
        command.clone().debug_assert();
        let flags: Vec<_> = command
            .get_arguments()
            .filter(|flag| !["help", "version"].contains(&flag.get_id().as_str()))
            .collect();
        assert!(flags.len() > 15, "{} flags", flags.len());
        for flag in flags {
            let name = flag
                .get_long()
                .expect("a long name")
                .to_uppercase()
                .replace('-', "_");
            assert_eq!(
                flag.get_env().and_then(|env| env.to_str()),
                Some(format!("NODEWISE_{name}").as_str())
            );
        }
    }

    // Defaults of the election; two workers.
    #[test]
    fn defaults() {
        let config = config(&[]).expect("valid");
        let election = config.election.expect("on in mode own");
        assert_eq!(
            (election.timing, election.namespace.as_str()),
            (Timing::default(), "kube-system")
        );
        assert!(election.identity.starts_with("host_"));
        assert_eq!(config.options.burst, Some(WINDOW_BURST));
        // An executor of an earlier version ran DaemonSets only: an upgrade must not take over more.
        let only = ControllerConfig {
            controller: Controller::DaemonSet,
            mode: Mode::Own,
            workers: 2,
        };
        assert_eq!(config.controllers, [only]);
        // The burst of a DaemonSet, as in the Go and Python clients.
        let of_library = nodewise_runtime::apply::Options::default().concurrency;
        assert_eq!((config.concurrent_writes, of_library), (250, 250));
    }

    // Writes that wait for their turn are held back neither by a failure nor by a stop.
    #[test]
    fn no_more_writes_are_under_way_than_may_begin_within_a_second() {
        for (flags, expected) in [
            (&[][..], 250),
            (&["--create-rate=20", "--client-qps=30"], 20),
            (&["--client-qps=30"], 30),
            (&["--create-rate=1000"], 250),
            (&["--create-rate=20", "--concurrent-writes=4"], 4),
        ] {
            let config = config(flags).expect("valid");
            assert_eq!(config.writes_under_way(), expected, "{flags:?}");
        }
    }

    // D-75: without a burst, the service uses that of the kind, as upstream.
    #[test]
    fn a_plan_is_longer_if_its_writes_are_a_window() {
        for (flags, expected) in [
            (&[][..], Some(WINDOW_BURST)),
            (&["--burst=7"], Some(7)),
            (&["--profile=upstream-strict"], None),
            (&["--profile=upstream-strict", "--burst=7"], Some(7)),
            (&["--disable-deviation=slow-start-across-plans"], None),
            (&["--disable-deviation=idempotent-creates"], None),
            (&["--client-qps=20"], None),
            (&["--create-rate=20"], None),
        ] {
            assert_eq!(config(flags).expect("valid").options.burst, expected, "{flags:?}");
        }
    }

    // L-32: nobody is asked without the operator's word.
    #[test]
    fn hosts_of_the_analysis() {
        let defaults = config(&[]).expect("valid").analysis;
        assert_eq!(
            (defaults.hosts, defaults.timeout),
            (vec![], Duration::from_secs(10))
        );
        let flags = [
            "--analysis-host=prometheus:9090=prom,checks",
            "--analysis-host=[::1]:80",
        ];
        let error = config(&flags).expect_err("no folder");
        assert!(error.to_string().contains("\"prom\""), "{error}");
        let given = config(&[flags[0], flags[1], "--analysis-credentials=/credentials"]).expect("valid");
        let shown = given.to_json();
        let hosts = r#""analysisHosts":["prometheus:9090","checks","[::1]:80"]"#;
        assert!(shown.contains(hosts), "{shown}");
        let many = format!("--analysis-host={}", vec!["a"; 101].join(","));
        for (flag, part) in [
            (&*many, "101 hosts"),
            ("--analysis-timeout=0s", "--analysis-timeout"),
        ] {
            let error = config(&[flag]).expect_err(flag).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn observers_take_no_lease() {
        assert!(config(&["--mode", "observe"]).expect("valid").election.is_none());
        let error = config(&["--mode", "observe", "--leader-elect"]).expect_err("it would write");
        assert!(matches!(error, ConfigError::ObserverElection), "{error}");
        assert!(
            config(&["--leader-elect=false"])
                .expect("valid")
                .election
                .is_none()
        );
    }

    #[test]
    fn a_companion_asks_for_rollouts_alone() {
        let companion = config(&["--mode", "companion"]).expect("valid");
        assert_eq!(companion.controllers[0].mode.scope(), v1::Scope::Rollouts);
        assert!(companion.election.is_some(), "it writes");
        for mode in ["own", "observe"] {
            let config = config(&["--mode", mode]).expect("valid");
            assert_eq!(config.controllers[0].mode.scope(), v1::Scope::Workload);
        }
        let error = config(&["--mode=companion", "--controllers=*"]).expect_err("of DaemonSets only");
        assert!(error.to_string().contains("deployment-controller"), "{error}");
    }

    // The list, workers by controller, and modes by controller.
    #[test]
    fn controllers_have_their_own_modes_and_workers() {
        let flags = [
            "--controllers=*,-replicaset",
            "--mode=own,deployment=observe",
            "--concurrent-deployment-syncs=7",
        ];
        let of = |controller, mode, workers| ControllerConfig {
            controller,
            mode,
            workers,
        };
        assert_eq!(
            config(&flags).expect("valid").controllers,
            [
                of(Controller::DaemonSet, Mode::Own, 2),
                of(Controller::Deployment, Mode::Observe, 7)
            ]
        );
        for (flags, part) in [
            (["--controllers=-daemonset", "--mode=own"], "no controller"),
            (
                ["--controllers=*", "--mode=daemonset=own"],
                "deployment-controller",
            ),
        ] {
            let error = config(&flags).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
        let unknown = Args::try_parse_from(SERVER.iter().chain(&["--mode=own", "--controllers=job"]));
        let error = unknown.expect_err("no such controller").to_string();
        assert!(error.contains("there is no controller `job`"), "{error}");
    }

    #[test]
    fn invalid_settings_are_refused() {
        for flags in [
            ["--renew-deadline", "15s"],
            ["--retry-period", "9s"],
            ["--plan-timeout", "0s"],
            ["--hedge-after", "0s"],
        ] {
            assert!(config(&flags).is_err(), "{flags:?}");
        }
    }

    #[test]
    fn a_bad_target_is_named_with_what_is_wrong() {
        for (target, reason) in [
            (
                "ftp://127.0.0.1:7443",
                "must be https://HOST:PORT, http://HOST:PORT, dns:///HOST:PORT or",
            ),
            ("127.0.0.1:7443", "must be https://HOST:PORT"),
            ("dns://8.8.8.8/planner:7443", "three slashes"),
        ] {
            let flags = ["nodewise-executor", "--mode=own", "--server", target];
            let error = Args::try_parse_from(flags).expect_err(target).to_string();
            assert!(error.contains(target) && error.contains(reason), "{error}");
        }
        let more = ["--server", "dns:///planner:7443,kubernetes:///planner.tools:grpc"];
        let error = config(&more).expect_err("in plain text").to_string();
        assert!(
            error.contains("dns:///planner:7443") && error.contains("--plaintext"),
            "{error}"
        );
        let servers = config(&[&more[..], &["--plaintext"]].concat())
            .expect("valid")
            .servers;
        assert_eq!(servers.len(), 3);
    }

    #[test]
    fn a_bad_selector_is_refused_with_what_is_wrong() {
        let of =
            |selector| Args::try_parse_from(SERVER.iter().chain(&["--mode=own", "--selector", selector]));
        let selection = of("app=agent,!legacy").expect("valid").selector;
        assert_eq!(selection.to_string(), "app=agent,!legacy");
        assert_eq!(
            config(&[]).expect("valid").selection,
            OwnershipSelector::default()
        );
        let error = of("app=agent,").expect_err("a comma too many").to_string();
        for part in ["--selector", "'app=agent,'", "it ends with a comma"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn deviations_have_readable_names() {
        let config = config(&[
            "--profile=upstream-strict",
            "--enable-deviation=surge-honours-backoff,delete-with-uid",
            "--disable-deviation=earliest-requeue",
        ])
        .expect("valid");
        assert_eq!(config.options.profile(), v1::Profile::UpstreamStrict);
        let enabled: Vec<_> = config.options.enabled_deviations().collect();
        assert_eq!(
            enabled,
            [v1::Deviation::SurgeHonoursBackoff, v1::Deviation::DeleteWithUid]
        );
        assert_eq!(
            config.options.disabled_deviations,
            [v1::Deviation::EarliestRequeue as i32]
        );
        assert!(parse_deviation("unspecified").is_err() && parse_deviation("none").is_err());
    }

    // The syntax and the names are those of kube-controller-manager's flag.
    #[test]
    fn feature_gates_have_kubernetes_names() {
        let gates = "--feature-gates=TaintTolerationComparisonOperators=true,PodDeletionCost=true,PodDeletionCost=false";
        let options = config(&[
            gates,
            "--feature-gates=DeploymentReplicaSetTerminatingReplicas=false",
        ])
        .expect("valid")
        .options;
        let operators = i32::from(v1::FeatureGate::TaintTolerationComparisonOperators);
        assert_eq!(options.feature_gates, [operators]);
        assert_eq!(
            options.disabled_feature_gates,
            [2, 3],
            "PodDeletionCost and DeploymentReplicaSetTerminatingReplicas"
        );
        for wrong in ["PodDeletionCost", "PodDeletionCost=no", "AllAlpha=true", "=true"] {
            assert!(parse_feature_gate(wrong).is_err(), "{wrong}");
        }
    }
}
