//! The two who can own DaemonSets: how they are started, and what they took.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nodewise_testbed::{ControlPlane, Process, Tool};

use super::DEADLINE;
use crate::measure;
use crate::report::figure;

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
        let kubeconfig = plane.kubeconfig_for(who.user())?;
        match who {
            Who::Upstream => {
                let program = tokio::task::spawn_blocking(|| Tool::KubeControllerManager.path()).await??;
                let mut command = Command::new(program);
                command.args([
                    "--controllers=daemonset-controller",
                    "--leader-elect=false",
                    // Serves nothing, so that it needs no port and no certificate.
                    "--secure-port=0",
                    "--kube-api-qps=5000",
                    "--kube-api-burst=10000",
                ]);
                command.arg("--kubeconfig").arg(kubeconfig);
                Ok(Self(vec![plane.spawn("upstream", command)?]))
            }
            Who::Nodewise => {
                let mut command = Command::new(&programs.server);
                command.args(["--listen", "127.0.0.1:0"]);
                let server = plane.spawn("nodewise-server", command)?;
                let line = server.wait_for_log_line("listening on", DEADLINE).await?;
                let mut command = Command::new(&programs.executor);
                command.args(["--mode=own", "--leader-elect=false", "--http-listen=127.0.0.1:0"]);
                command
                    .arg("--server")
                    .arg(format!("http://{}", address_in(&line)?));
                command.arg("--kubeconfig").arg(kubeconfig);
                let executor = plane.spawn("nodewise-executor", command)?;
                Ok(Self(vec![server, executor]))
            }
        }
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

/// The address after "listening on" in a line of the server's log.
fn address_in(line: &str) -> Result<&str> {
    let rest = line.split("listening on ").nth(1);
    let address = rest.and_then(|rest| rest.split_whitespace().next());
    address.with_context(|| format!("no address in {line:?}"))
}
