//! The two who can own DaemonSets: how they are started, and what they took.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use nodewise_testbed::{ControlPlane, Process};

use super::DEADLINE;
use crate::report::figure;
use crate::{measure, programs};

/// Who owns DaemonSets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// kube-controller-manager, with no other controller.
    Upstream,
    /// A server and an executor.
    Nodewise,
}

impl Who {
    /// What it is called in tables.
    #[must_use]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Upstream => "kube-controller-manager",
            Self::Nodewise => "Nodewise",
        }
    }

    /// The user that it is to the apiserver.
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

/// An owner that runs; gone when dropped.
#[derive(Debug)]
pub(super) struct Owner(Vec<Process>);

impl Owner {
    /// Starts it. All settings are the defaults, but for two of kube-controller-manager: it may make as many calls as it likes,
    /// as the executor may by default, and it competes with nobody for a lease, nor does the executor.
    pub(super) async fn start(plane: &ControlPlane, who: Who, programs: &Programs) -> Result<Self> {
        match who {
            Who::Upstream => {
                let command = plane.daemonset_controller(who.user()).await?;
                Ok(Self(vec![plane.spawn("upstream", command)?]))
            }
            Who::Nodewise => Self::nodewise(plane, who.user(), programs, &[]).await,
        }
    }

    /// Starts Nodewise as that user, with these arguments of the executor besides.
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

    /// CPU time of all its processes so far.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        self.0
            .iter()
            .map(|process| measure::cpu_time(process.pid()))
            .sum()
    }

    /// The most memory of each of its processes, taken together, in MB.
    pub(super) fn peak_memory_mb(&self) -> Result<f64> {
        let mut together = 0.0;
        for process in &self.0 {
            let peak = measure::peak_memory_mb(process.pid())?;
            eprintln!("{}: {} MB at most", process.name(), figure(peak));
            together += peak;
        }
        Ok(together)
    }

    /// Fails if it has ended.
    pub(super) fn check_running(&self) -> Result<()> {
        self.0.iter().try_for_each(Process::check_running)
    }

    /// Ends it.
    pub(super) async fn stop(self) -> Result<()> {
        // The executor first: it must not look for its server in vain.
        for process in self.0.iter().rev() {
            process.terminate(DEADLINE).await?;
        }
        Ok(())
    }
}
