//! The two owners of DaemonSets: how they start, and the CPU time and memory that they use.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use nodewise_testbed::{ControlPlane, Process};

use super::DEADLINE;
use crate::figure::figure;
use crate::{measure, programs};

/// An owner of DaemonSets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerKind {
    /// kube-controller-manager with its DaemonSet controller only.
    Upstream,
    /// A server and an executor.
    Nodewise,
}

impl OwnerKind {
    /// Its name in tables.
    #[must_use]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Upstream => "kube-controller-manager",
            Self::Nodewise => "Nodewise",
        }
    }

    /// Its user name at the apiserver.
    #[must_use]
    pub(super) fn user(self) -> &'static str {
        match self {
            Self::Upstream => "bench-upstream",
            Self::Nodewise => "bench-nodewise",
        }
    }
}

/// The programs of Nodewise.
#[derive(Clone, Debug)]
pub struct Programs {
    /// nodewise-server.
    pub server: PathBuf,
    /// nodewise-executor.
    pub executor: PathBuf,
}

/// A running owner. It ends when dropped.
#[derive(Debug)]
pub(super) struct Owner(Vec<Process>);

impl Owner {
    /// Starts the owner. All settings are defaults, except that kube-controller-manager has no low rate limit, like the
    /// executor by default, and that neither uses leader election.
    pub(super) async fn start(plane: &ControlPlane, who: OwnerKind, programs: &Programs) -> Result<Self> {
        match who {
            OwnerKind::Upstream => {
                let command = plane.daemonset_controller(who.user()).await?;
                Ok(Self(vec![plane.spawn("upstream", command)?]))
            }
            OwnerKind::Nodewise => Self::nodewise(plane, who.user(), programs, &[]).await,
        }
    }

    /// Starts Nodewise as this user, with additional arguments of the executor.
    pub(super) async fn nodewise(
        plane: &ControlPlane,
        user: &str,
        programs: &Programs,
        arguments: &[String],
    ) -> Result<Self> {
        let mut command = programs::command(&programs.server);
        command.args(["--listen", "127.0.0.1:0"]);
        let server = plane.spawn("nodewise-server", command)?;
        let address = server.listening_on(DEADLINE).await?;
        let mut command = programs::command(&programs.executor);
        command.args(["--mode=own", "--leader-elect=false", "--http-listen=127.0.0.1:0"]);
        command.arg("--server").arg(format!("http://{address}"));
        command.arg("--kubeconfig").arg(plane.kubeconfig_for(user)?);
        command.args(arguments);
        let executor = plane.spawn("nodewise-executor", command)?;
        Ok(Self(vec![server, executor]))
    }

    /// The CPU time of all its processes so far.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        self.0
            .iter()
            .map(|process| measure::cpu_time(process.pid()))
            .sum()
    }

    /// The sum of the peak memory of its processes, in MB.
    pub(super) fn peak_memory_mb(&self) -> Result<f64> {
        let mut together = 0.0;
        for process in &self.0 {
            let peak = measure::peak_memory_mb(process.pid())?;
            eprintln!("{}: {} MB at most", process.name(), figure(peak));
            together += peak;
        }
        Ok(together)
    }

    /// Fails if one of its processes has ended.
    pub(super) fn check_running(&self) -> Result<()> {
        self.0.iter().try_for_each(Process::check_running)
    }

    /// Stops the owner.
    pub(super) async fn stop(self) -> Result<()> {
        // The executor ends first, because it would retry without its server.
        for process in self.0.iter().rev() {
            process.terminate(DEADLINE).await?;
        }
        Ok(())
    }
}
