//! The flags of the command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

pub(crate) use crate::flags::{DryRunArgs, EngineArgs, SourceArgs};
pub(crate) use crate::output::{Output, ViewOutput};
use crate::{
    check::args::CheckArgs,
    dashboard::args::DashboardArgs,
    flags::parse_watch_time,
    overhead::args::OverheadArgs,
    rollout::args::RolloutCommand,
    shell::args::{CompletionArgs, ManArgs},
    simulate::args::{AssumptionArgs, SimulateArgs},
};

/// Shows what the controllers of Deployments, ReplicaSets and DaemonSets would do next, and why.
#[derive(Debug, Parser)]
#[command(
    name = "nodewise",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "If the program is on the PATH under the name kubectl-nodewise (for example as a symlink), \
                        you can also run `kubectl nodewise`."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what would happen next for workloads, and why. Changes nothing.
    #[command(mut_arg("files", |files| files.num_args(1..).conflicts_with(clap::builder::Resettable::Reset).help(PLAN_FILES)))]
    Plan(Box<PlanArgs>),
    /// Show why a workload is in its present state. Changes nothing.
    Explain(ExplainArgs),
    /// Roll out, surge, break a node and recover on a simulated cluster, in this process and over real gRPC
    Demo(DemoArgs),
    /// Play a change to its end on a simulated cluster: each step, how many are unavailable at worst, how long it takes. Changes
    /// nothing.
    Simulate(SimulateArgs),
    /// Show which DaemonSets would run on a node that need not exist, why or why not, and what they request in sum. Changes nothing.
    Overhead(OverheadArgs),
    /// Check whether Nodewise can be installed, or works: owners, versions, rights, certificates, lease, webhooks, quotas. Changes nothing
    Check(CheckArgs),
    /// Print the completions of a shell
    Completion(CompletionArgs),
    /// Print the manual page, or write the pages of all subcommands to a folder
    Man(ManArgs),
    /// Show how far rollouts are and what holds them up, the worst first. Changes nothing.
    Status(StatusArgs),
    /// Watch, explain and steer the rollout of one workload
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// Show all workloads on a page in the browser, live: what is stuck, on which nodes, and why. Changes nothing.
    Dashboard(DashboardArgs),
}

/// What `-f` means for `plan`.
const PLAN_FILES: &str = "A file with workloads only is a change: the apiserver checks it in a dry run, and all steps to the end are \
    shown. A file that has nodes, pods or revisions is a dump of a cluster, as `kubectl get \
    deployments,replicasets,daemonsets,controllerrevisions,pods,nodes -A -o json` prints it, and where the kind is installed also \
    `kubectl get rolloutpolicies -A -o json`. `-` reads standard input; may be given several times. Without it the objects are read from a cluster";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise plan
  nodewise plan -f new.yaml
  nodewise plan -f new.yaml --out new.plan
  nodewise plan -f new.yaml --compare new.plan
  nodewise plan deployment/web -n shop
  nodewise plan deployments,replicasets -A
  nodewise plan --kubeconfig staging.yaml -n kube-system
  kubectl get deployments,replicasets,pods -n shop -o yaml | nodewise plan deployments -f -
  (kubectl get daemonsets,controllerrevisions,pods,nodes -A -o json; kubectl get rolloutpolicies -A -o json) | nodewise plan -f -

A file with workloads only is a change to the cluster of the kubeconfig: the apiserver gets it as a server-side dry run, so defaults,
webhooks, policies and validation apply, and nothing is stored. If the file has a node, a pod or a revision, or if there is no
kubeconfig, it is a dump, and no cluster is asked. --dump says so in any case.

Where the kind RolloutPolicy is not installed, the second kubectl in the last example fails, and what the first one prints is enough.

Exit status: 0 when the plan was made, 1 on error; with --detailed-exitcode 2 when something would change; with --compare 2 when the
plan differs from the kept one.")]
pub(crate) struct PlanArgs {
    /// What to plan for, as for kubectl: `KIND`, `KIND NAME` or `KIND/NAME`, such as deployments, deployment/web, rs/web-5d4f or
    /// ds/agent. Without it: all DaemonSets
    #[arg(value_name = "KIND[/NAME]")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Only workloads of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Workloads of every namespace; the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// A dump of a cluster, as -f, also if it has only workloads; may be given several times
    #[arg(long = "dump", value_name = "FILE", conflicts_with_all = ["files", "kubeconfig", "context"])]
    pub(crate) dumps: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) dry_run: DryRunArgs,
    #[command(flatten)]
    pub(crate) assumed: AssumptionArgs,
    /// Keep the plan in this file, with its digest and what it was computed from. An existing file is replaced only if it is a kept plan
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Show what differs from the plan that --out kept in this file, instead of the plan. The next step of each workload is compared
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// How to print the plan
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    /// Exit with 2 instead of 0 when something would change
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "nodewise explain <KIND>/<NAME> [OPTIONS]")]
#[command(after_help = "\
Examples:
  nodewise explain deployment/web -n shop
  nodewise explain rs/web-5d4f
  nodewise explain daemonset fluentd -n logging
  nodewise explain ds/fluentd --node node-7
  kubectl get deployments,replicasets,pods -n shop -o yaml | nodewise explain deploy/web -f -

A Deployment: whether the rollout is done, and if not why; its ReplicaSets; which pod goes first on scale-down.
A ReplicaSet: how many pods it has and wants, and in which order a scale-down deletes them.
A DaemonSet: for each node whether a pod runs there, and the rule that decides it.")]
pub(crate) struct ExplainArgs {
    /// The workload, pod or node, as for kubectl: `KIND NAME` or `KIND/NAME`, such as deployment/web, rs/web-5d4f, ds/agent,
    /// pod/agent-x7k2p or node/worker-1
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    pub(crate) target: Vec<String>,
    /// The workload's namespace; not needed while only one namespace has a workload of this kind and name
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Of a DaemonSet only this node, in full detail
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// How to print the explanation
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise status
  nodewise status -n kube-system -o wide
  nodewise status --watch
  nodewise status ds/agent deploy/web
  (kubectl get deployments,replicasets,daemonsets,controllerrevisions,pods,nodes -A -o json; kubectl get rolloutpolicies -A -o json) | nodewise status -f -

Where the kind RolloutPolicy is not installed, the second kubectl in the last example fails, and what the first one prints is enough.

States: stuck (nothing more happens until someone removes a cause), progressing, waiting for delete (strategy OnDelete), paused,
complete.

Exit status: 0 when the statuses were printed, 1 on error. `nodewise rollout status` has one that tells the state.")]
pub(crate) struct StatusArgs {
    /// The workloads, as for kubectl: `KIND`, `KIND NAME` or `KIND/NAME`. Without it: all Deployments and DaemonSets, and the
    /// ReplicaSets that nothing controls
    #[arg(value_name = "KIND[/NAME]")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Only workloads of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Workloads of every namespace; the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Follow all rollouts: in a terminal the table is always the present one until you quit, elsewhere it is printed again after
    /// each change, for ever without --timeout
    #[arg(short, long, conflicts_with_all = ["files", "now"])]
    pub(crate) watch: bool,
    /// With --watch: the longest time to watch; 0 is no limit [default: no limit]
    #[arg(long, value_name = "DURATION", requires = "watch", value_parser = parse_watch_time)]
    pub(crate) timeout: Option<Duration>,
    /// How to print the status
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ViewOutput,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nodewise demo
  nodewise demo --trace
  nodewise demo --nodes 5000 --otlp http://localhost:4317

Exit status: 0 when every phase converged within its budgets and without duplicate pods, else 1.")]
pub(crate) struct DemoArgs {
    /// Nodes of the simulated cluster
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) nodes: u32,
    /// Show the slowest reconcile as a waterfall: what was done when, in the executor and in the service
    #[arg(long)]
    pub(crate) trace: bool,
    /// Send the traces of all reconciles to a collector, over OTLP/gRPC [default: as the standard OTEL_* variables say]
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// How to print what happened
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
