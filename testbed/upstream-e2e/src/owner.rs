//! Starts one of the two owners of DaemonSets, ReplicaSets and Deployments.

use std::process::Command;

use anyhow::Result;
use nodewise_conformance::{Cluster, Server, Upstream, binaries};
use nodewise_testbed::Process;

/// The controllers that both owners run.
const CONTROLLERS: &str = "daemonset-controller,deployment-controller,replicaset-controller";

/// A program that runs the controllers of all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The controllers of kube-controller-manager.
    KubeControllerManager,
    /// `nodewise-server` and `nodewise-executor` in mode `own`.
    Nodewise,
}

impl Owner {
    /// The name in tables and of the log folder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Nodewise => "nodewise",
        }
    }

    /// Starts the owner. The other controllers of kube-controller-manager already run in another process. All settings
    /// are defaults, except that there is no leader election; `executor_flags` are added to the executor's flags.
    ///
    /// # Errors
    /// A program cannot be built or started.
    pub async fn start(self, cluster: &Cluster, executor_flags: &[String]) -> Result<RunningOwner> {
        match self {
            Self::KubeControllerManager => {
                Ok(RunningOwner::Upstream(cluster.start_built_in(CONTROLLERS).await?))
            }
            Self::Nodewise => {
                let plane = cluster.plane();
                let server = Server::start(plane, "127.0.0.1:0", &[]).await?;
                let built = tokio::task::spawn_blocking(binaries).await??;
                let mut command = Command::new(&built.executor);
                command
                    .args(["--mode=own", "--leader-elect=false", "--http-listen=127.0.0.1:0"])
                    .arg(format!("--controllers={CONTROLLERS}"))
                    .arg(format!("--server=http://{}", server.address()))
                    .arg("--kubeconfig")
                    .arg(cluster.executor_kubeconfig()?)
                    .args(executor_flags);
                let executor = plane.spawn("nodewise-executor", command)?;
                let server = Box::new(server);
                Ok(RunningOwner::Nodewise { executor, server })
            }
        }
    }
}

/// A running owner. It ends when dropped.
#[derive(Debug)]
pub enum RunningOwner {
    /// Upstream's controllers.
    Upstream(Upstream),
    /// An executor and its server.
    Nodewise {
        /// The executor, which is dropped first.
        executor: Process,
        /// The executor's server.
        server: Box<Server>,
    },
}

impl RunningOwner {
    /// Fails if one of its processes has ended; the error has the end of its log.
    ///
    /// # Errors
    /// See above.
    pub fn check_running(&self) -> Result<()> {
        match self {
            Self::Upstream(upstream) => upstream.check_running(),
            Self::Nodewise { executor, server } => {
                executor.check_running()?;
                server.process().check_running()
            }
        }
    }
}
