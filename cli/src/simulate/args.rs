//! The flags of `nodewise simulate`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use nodewise_forecast::Bounds;

use crate::flags::{DryRunArgs, Profile, ServerArgs, parse_time};

/// The most nodes or replicas of a play, unless a flag says otherwise.
pub(crate) const MAX_NODES: usize = 20_000;

#[derive(Debug, Args)]
#[command(override_usage = "nodewise simulate <KIND>/<NAME> [--image [CONTAINER=]IMAGE] [-f FILE] [OPTIONS]")]
#[command(after_help = "\
Examples:
  nodewise simulate ds/agent -n monitoring --image registry.example/agent:2
  nodewise simulate ds/agent --image agent=registry.example/agent:2 --ready-after 30s --fail 4%
  nodewise simulate ds/agent -f new.yaml --svg rollout.svg
  (kubectl get daemonsets,controllerrevisions,pods,nodes -A -o json; kubectl get rolloutpolicies -A -o json) | \\
    nodewise simulate ds/agent --dump - --image agent:2

The play runs the planner in a loop against a simulated cluster with the objects of the real one. Nothing is written.
Where the kind RolloutPolicy is not installed, the second kubectl in the last example fails, and what the first one prints is enough.
With neither --image nor -f it plays what remains of the present rollout.
The apiserver first checks and completes the change, in a dry run that stores nothing; --local and --dump leave that out.

Exit status: 0 when the rollout ends, 1 on error, 2 when a bound is reached before its end, 3 when it gets stuck.")]
pub(crate) struct SimulateArgs {
    /// The workload, as for kubectl: `KIND NAME` or `KIND/NAME`, such as ds/agent
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    pub(crate) target: Vec<String>,
    /// The workload's namespace; not needed while only one namespace has a workload of this kind and name
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// A new image: of the only container, or of the named one. May be repeated
    #[arg(long = "image", value_name = "[CONTAINER=]IMAGE")]
    pub(crate) images: Vec<String>,
    /// A manifest of the workload, as for `kubectl apply`; `-` reads standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) assumed: AssumptionArgs,
    /// Also write the chart to this file. An existing file is replaced only if it is an SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
    /// What `kubectl get daemonsets,controllerrevisions,pods,nodes -A -o json` (or yaml) prints, and where the kind is installed also
    /// `kubectl get rolloutpolicies -A -o json`; `-` reads standard input; may be given several times. Without it the objects are read from a cluster
    #[arg(long = "dump", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) dumps: Vec<PathBuf>,
    /// The kubeconfig of the cluster [default: KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// The time at which the change is made, such as 2026-01-31T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) now: Option<Timestamp>,
    /// The deviations from the built-in controller that are enabled
    #[arg(long, env = "NODEWISE_PROFILE", value_enum, default_value_t)]
    pub(crate) profile: Profile,
    /// How to print the play
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Format,
}

/// How pods behave, and the bounds of a play.
#[derive(Debug, Args)]
#[command(next_help_heading = "Assumptions and bounds of the play")]
pub(crate) struct AssumptionArgs {
    /// The time from a pod's creation until it is ready [default: the median of the workload's pods that became ready once; 10s if there is none]
    #[arg(long, value_name = "DURATION", value_parser = parse_assumed)]
    pub(crate) ready_after: Option<Duration>,
    /// The time from a pod's deletion until it is gone [default: the template's terminationGracePeriodSeconds, the longest it may take]
    #[arg(long, value_name = "DURATION", value_parser = parse_assumed)]
    pub(crate) gone_after: Option<Duration>,
    /// The share of the new pods that never become ready, such as 4% or 0.04; rounded up to whole pods
    #[arg(long = "fail", value_name = "SHARE", default_value = "0%", value_parser = parse_share)]
    pub(crate) failing: f64,
    /// Chooses which pods fail
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The longest virtual time
    #[arg(long, value_name = "DURATION", default_value = "168h", value_parser = parse_assumed)]
    pub(crate) max_time: Duration,
    /// The most steps
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) max_steps: usize,
    /// The most nodes of a DaemonSet, or replicas of another workload. A planning service has a limit of its own
    #[arg(long, value_name = "N", default_value_t = MAX_NODES, conflicts_with = "server")]
    pub(crate) max_nodes: usize,
    /// Print every step with all its names; without it, at most 40 steps with 5 names each
    #[arg(long)]
    pub(crate) all_steps: bool,
}

impl AssumptionArgs {
    /// The first flag that changes a play or how it is printed, for commands that have nothing to play.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let default = Bounds::default();
        let flags = [
            ("--ready-after", self.ready_after.is_some()),
            ("--gone-after", self.gone_after.is_some()),
            ("--fail", self.failing > 0.0),
            ("--seed", self.seed != 0),
            ("--max-time", self.max_time != default.time),
            ("--max-steps", self.max_steps != default.steps),
            ("--max-nodes", self.max_nodes != default.nodes),
            ("--all-steps", self.all_steps),
        ];
        flags
            .into_iter()
            .find(|(_, is_given)| *is_given)
            .map(|(flag, _)| flag)
    }
}

/// The output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// A chart
    Svg,
}

/// The longest duration that is assumed: about ten years.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 3_660);

/// Parses a duration of 0 s to ten years.
fn parse_assumed(text: &str) -> Result<Duration, String> {
    let duration: SignedDuration = text
        .parse()
        .map_err(|_| "not a duration such as 30s or 2m".to_owned())?;
    if !(SignedDuration::ZERO..=LONGEST).contains(&duration) {
        return Err("not from 0s to ten years".to_owned());
    }
    Ok(duration.unsigned_abs())
}

/// Parses `4%` or `0.04`.
fn parse_share(text: &str) -> Result<f64, String> {
    let wrong = || "not a share such as 4% or 0.04".to_owned();
    let (number, whole) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map_err(|_| wrong())? / whole;
    if !(0.0..=1.0).contains(&share) {
        return Err("not from 0% to 100%".to_owned());
    }
    Ok(share)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        assumed: AssumptionArgs,
        #[arg(long)]
        server: Option<String>,
    }

    #[test]
    fn flags_that_are_given_differ_from_the_defaults() {
        for (line, expected) in [
            ("x", None),
            ("x --max-time 168h --fail 0%", None),
            ("x --seed 3 --fail 4%", Some("--fail")),
            ("x --max-steps 3", Some("--max-steps")),
            ("x --all-steps", Some("--all-steps")),
        ] {
            let line = Line::try_parse_from(line.split(' ')).map_err(|error| error.to_string());
            let line = line.expect("a command line");
            assert_eq!((line.assumed.given(), line.server), (expected, None));
        }
        let both = "x --max-nodes 3 --server y".split(' ');
        assert!(Line::try_parse_from(both).is_err(), "a service has its own limit");
    }

    #[test]
    fn shares_are_percentages_or_parts_of_one() {
        for (text, expected) in [
            ("4%", Ok(0.04)),
            ("0.04", Ok(0.04)),
            ("100%", Ok(1.0)),
            ("0", Ok(0.0)),
            ("4", Err("not from 0% to 100%")),
            ("-1%", Err("not from 0% to 100%")),
            ("nan", Err("not from 0% to 100%")),
            ("many", Err("not a share such as 4% or 0.04")),
        ] {
            assert_eq!(parse_share(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
