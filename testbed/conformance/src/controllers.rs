//! The controllers that the executor of a case runs, and the control plane that it needs.

use anyhow::Result;
use nodewise_testbed::{Builder, ControlPlane};

use crate::{cluster::Cluster, rollout_policies};

/// The controllers that the executor of a case runs. The built-in ones are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controllers {
    /// That of DaemonSets, which an executor runs without a flag.
    DaemonSets,
    /// The same, in a cluster with RolloutPolicies. Only there: an executor without them must pass all other cases.
    DaemonSetsWithPolicies,
    /// That of ReplicaSets.
    ReplicaSets,
    /// Those of Deployments and ReplicaSets.
    Deployments,
}

impl Controllers {
    /// All of them, in the order in which their cases run.
    pub(crate) const ALL: [Self; 4] = [
        Self::DaemonSets,
        Self::DaemonSetsWithPolicies,
        Self::ReplicaSets,
        Self::Deployments,
    ];

    /// Their names, as in `--controllers` of kube-controller-manager.
    #[must_use]
    pub fn names(self) -> &'static str {
        match self {
            Self::DaemonSets | Self::DaemonSetsWithPolicies => "daemonset-controller",
            Self::ReplicaSets => "replicaset-controller",
            Self::Deployments => "replicaset-controller,deployment-controller",
        }
    }

    /// The command of an executor that runs them.
    pub(crate) fn command(self, executor: &str) -> String {
        match self {
            Self::DaemonSets | Self::DaemonSetsWithPolicies => executor.to_owned(),
            _ => format!("{executor} --controllers {}", self.names()),
        }
    }

    /// Whether their cases can run on the same control plane as those of `other`: with the same built-in controllers, the
    /// same rights of the executor, and the same resources.
    pub(crate) fn shares_cluster_with(self, other: Self) -> bool {
        let are_of_replicas = |one| matches!(one, Self::ReplicaSets | Self::Deployments);
        self == other || are_of_replicas(self) && are_of_replicas(other)
    }

    /// The control plane that their cases need: without these built-in controllers.
    #[must_use]
    pub fn control_plane(self) -> Builder {
        match self {
            Self::DaemonSets | Self::DaemonSetsWithPolicies => ControlPlane::builder(),
            _ => ControlPlane::builder()
                .controllers("*,-daemonset-controller,-deployment-controller,-replicaset-controller"),
        }
    }

    /// Starts a control plane for their cases.
    pub(crate) async fn start_cluster(self) -> Result<Cluster> {
        let overlay = match self {
            Self::DaemonSets | Self::DaemonSetsWithPolicies => "own",
            _ => "own-all-controllers",
        };
        let cluster = Cluster::start_with(self.control_plane(), overlay).await?;
        if self == Self::DaemonSetsWithPolicies {
            rollout_policies::install(cluster.plane()).await?;
        }
        Ok(cluster)
    }

    /// The name of the folder for the logs of a lane.
    pub(crate) fn log_folder(self, lane: usize) -> String {
        match self {
            Self::DaemonSets => format!("lane-{lane}"),
            Self::DaemonSetsWithPolicies => format!("lane-{lane}-policies"),
            _ => format!("lane-{lane}-replicas"),
        }
    }
}
