//! The flags of `nodewise rollout`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::{
    flags::{EngineArgs, SourceArgs, parse_watch_time},
    output::{DataOutput, ViewOutput},
};

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Show how far the rollout is and what holds it up. Changes nothing.
    Status(RolloutStatusArgs),
    /// List the revisions of a DaemonSet or Deployment. Changes nothing.
    History(HistoryArgs),
    /// Show what differs between the templates of two revisions. Changes nothing.
    Diff(DiffArgs),
    /// Go back to an earlier revision
    Undo(UndoArgs),
    /// Pause the rollout of a Deployment, or of a DaemonSet with a RolloutPolicy
    Pause(ChangeArgs),
    /// Resume the rollout of a Deployment, or of a DaemonSet with a RolloutPolicy: also one whose revision was rejected, or whose
    /// check was inconclusive too often
    Resume(ChangeArgs),
    /// Approve the stage that a RolloutPolicy waits for. Shows its nodes and the plan first.
    Approve(ApproveArgs),
    /// Let a RolloutPolicy reject the new revision and take its nodes back to the stable one. Does not change the DaemonSet.
    Rollback(ChangeArgs),
    /// Replace all pods, with the same template
    Restart(ChangeArgs),
    /// Delete the pods that hold up the rollout, so that the controller creates them anew
    Retry(ChangeArgs),
}

/// The workload of a command about one rollout.
#[derive(Debug, Args)]
pub(crate) struct WorkloadArgs {
    /// The workload, as for kubectl: `KIND NAME` or `KIND/NAME`, such as deployment/web or ds/agent
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    pub(crate) target: Vec<String>,
    /// The workload's namespace; not needed while only one namespace has a workload of this kind and name
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// How to print the revisions
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: DataOutput,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise rollout diff deploy/web
  nodewise rollout diff ds/agent --revision 3 --with 5

Exit status: 0 when both are equal, 2 when they differ, 1 on error.")]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// The revision before [default: the newest one that the workload does not have now]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<i64>,
    /// The revision after [default: the present template]
    #[arg(long = "with", value_name = "NUMBER")]
    pub(crate) with: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// The revision to go back to [default: the newest one that the workload does not have now]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) to_revision: Option<i64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise rollout approve ds/agent -n logging
  nodewise rollout approve ds/agent --digest 1f0c… --yes

Without --digest it approves what it shows. The digest is of the policy, the new revision, the stage and the names of its nodes: once one
of them is another, an approval does nothing.")]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Approve only if the digest of the stage is still this one, as `nodewise rollout status` showed it
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<String>,
}

/// A command that writes to the cluster.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
    /// Do not ask before the change
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Let the apiserver check the change without storing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "nodewise rollout status <KIND>/<NAME> [OPTIONS]")]
#[command(after_help = "\
Examples:
  nodewise rollout status ds/agent -n logging
  nodewise rollout status deploy/web --watch
  nodewise rollout status ds/agent -o wide
  nodewise rollout status ds/agent --watch --timeout 10m && echo done

Exit status: 0 when the rollout is complete, 2 while it is in progress, paused or waits for someone, 3 when it is stuck, 1 on error.
With a RolloutPolicy, 2 also while a stage soaks or waits for an approval, a check or a window, and while nodes go back; 3 when the
revision is rejected or was rolled back, when nodes failed, or when the policy holds the rollout.
With --watch it tells the last state: that at the end of --timeout, or when you quit.

--watch follows a rollout that is stuck, too: someone may remove the cause. Without --timeout it does so for ever.")]
pub(crate) struct RolloutStatusArgs {
    /// The workload, as for kubectl: `KIND NAME` or `KIND/NAME`, such as deployment/web, rs/web-5d4f or ds/agent
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required = true)]
    pub(crate) target: Vec<String>,
    /// The workload's namespace; not needed while only one namespace has a workload of this kind and name
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Follow the rollout: in a terminal with a live view until you quit, elsewhere with a line for each change until it is complete,
    /// for ever if it is stuck and nobody removes the cause. --timeout limits both
    #[arg(short, long, conflicts_with_all = ["files", "now"])]
    pub(crate) watch: bool,
    /// With --watch: the longest time to follow the rollout; 0 is no limit [default: no limit]
    #[arg(long, alias = "wait-for", value_name = "DURATION", requires = "watch", value_parser = parse_watch_time)]
    pub(crate) timeout: Option<Duration>,
    /// How to print the status
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: ViewOutput,
}
