//! The flags of `nodewise check`.

use std::path::PathBuf;

use clap::Args;
use nodewise_executor::controllers::{Entry, ModeEntry};

use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise check --pre
  nodewise check --pre --mode own --controllers '*'
  nodewise check
  nodewise check -n nodewise-system -o json

Exit status: 0 when no check failed (there may be warnings), 1 when the cluster could not be checked at all, 2 when a check failed.")]
pub(crate) struct CheckArgs {
    /// Check whether Nodewise can be installed, and does not have to be installed yet
    #[arg(long)]
    pub(crate) pre: bool,
    /// With --pre: the mode to install, as in `nodewise-executor --mode`
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "MODE",
        requires = "pre",
        default_value = "observe"
    )]
    pub(crate) mode: Vec<ModeEntry>,
    /// With --pre: the controllers to install, as in `nodewise-executor --controllers`
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        requires = "pre",
        default_value = "daemonset-controller",
        allow_hyphen_values = true
    )]
    pub(crate) controllers: Vec<Entry>,
    /// The namespace of Nodewise [default: the one that has its Deployments, else nodewise-system]
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The kubeconfig of the cluster [default: KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// How to print the results
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
}
