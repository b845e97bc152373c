//! The two owners of workloads: how they start, and the CPU time and memory that they use.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nodewise_testbed::{ControlPlane, Process, eventually};

use super::DEADLINE;
use crate::figure::figure;
use crate::{measure, programs};

/// An owner of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerKind {
    /// kube-controller-manager with the controllers of these workloads only.
    Upstream,
    /// A server and an executor.
    Nodewise,
}

impl OwnerKind {
    /// Both owners. Which one is first alternates between rounds.
    pub(super) fn in_round(round: usize) -> [Self; 2] {
        let mut order = [Self::Upstream, Self::Nodewise];
        if round.is_multiple_of(2) {
            order.reverse();
        }
        order
    }

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

impl Programs {
    /// Those next to this program.
    ///
    /// # Errors
    /// One was not built.
    pub fn find() -> Result<Self> {
        Ok(Self {
            server: programs::find("nodewise-server")?,
            executor: programs::find("nodewise-executor")?,
        })
    }
}

/// A running owner. It ends when dropped.
pub(super) struct Owner {
    processes: Vec<Process>,
    /// A client of its metrics, if it serves them.
    metrics: Option<kube::Client>,
}

impl Owner {
    /// Starts the owner. All settings are defaults, except that kube-controller-manager has no low rate limit, like the
    /// executor by default, and that neither uses leader election.
    /// Both run `controllers`.
    pub(super) async fn start(
        plane: &ControlPlane,
        who: OwnerKind,
        programs: &Programs,
        controllers: &str,
    ) -> Result<Self> {
        match who {
            OwnerKind::Upstream => {
                let command = plane.built_in(controllers, who.user()).await?;
                Ok(Self::of(vec![plane.spawn("upstream", command)?]))
            }
            OwnerKind::Nodewise => {
                let flag = format!("--controllers={controllers}");
                Self::nodewise(plane, who.user(), programs, &[flag]).await
            }
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
        Ok(Self::of(vec![server, executor]))
    }

    /// Starts the owner like [`Owner::start`], and lets it serve its metrics.
    pub(super) async fn with_metrics(
        plane: &ControlPlane,
        who: OwnerKind,
        programs: &Programs,
        controllers: &str,
    ) -> Result<Self> {
        let (mut owner, url) = match who {
            OwnerKind::Upstream => {
                let mut command = plane.built_in(controllers, who.user()).await?;
                let address = free_address()?;
                command
                    .arg("--bind-address=127.0.0.1")
                    .arg(format!("--secure-port={}", address.port()))
                    .arg("--authorization-always-allow-paths=/metrics");
                let owner = Self::of(vec![plane.spawn("upstream", command)?]);
                (owner, format!("https://{address}"))
            }
            OwnerKind::Nodewise => {
                let owner = Self::start(plane, who, programs, controllers).await?;
                let executor = owner.processes.last().context("an executor")?;
                let address = executor.listening_on(DEADLINE).await?;
                (owner, format!("http://{address}"))
            }
        };
        let mut config = kube::Config::new(url.parse()?);
        // kube-controller-manager signs its own certificate.
        config.accept_invalid_certs = true;
        owner.metrics = Some(kube::Client::try_from(config)?);
        eventually(DEADLINE, "the owner's metrics", async || {
            owner.check_running()?;
            owner.metrics().await
        })
        .await?;
        Ok(owner)
    }

    fn of(processes: Vec<Process>) -> Self {
        Self {
            processes,
            metrics: None,
        }
    }

    /// The text of its metrics: those of the controllers, not those of the server.
    pub(super) async fn metrics(&self) -> Result<String> {
        let client = self.metrics.as_ref().context("it does not serve its metrics")?;
        let request = http::Request::get("/metrics").body(Vec::new())?;
        client.request_text(request).await.context("asking for metrics")
    }

    /// The CPU time of each of its processes so far: of the server and of the executor, or of kube-controller-manager.
    pub(super) fn cpu_times(&self) -> Result<Vec<Duration>> {
        let processes = self.processes.iter();
        processes
            .map(|process| measure::cpu_time(process.pid()))
            .collect()
    }

    /// The sum of the memory of its processes now, in MB.
    pub(super) fn memory_mb(&self) -> Result<f64> {
        let processes = self.processes.iter();
        processes.map(|process| measure::memory_mb(process.pid())).sum()
    }

    /// The sum of the peak memory of its processes, in MB.
    pub(super) fn peak_memory_mb(&self) -> Result<f64> {
        let mut together = 0.0;
        for process in &self.processes {
            let peak = measure::peak_memory_mb(process.pid())?;
            eprintln!("{}: {} MB at most", process.name(), figure(peak));
            together += peak;
        }
        Ok(together)
    }

    /// Fails if one of its processes has ended.
    pub(super) fn check_running(&self) -> Result<()> {
        self.processes.iter().try_for_each(Process::check_running)
    }

    /// Stops the owner.
    pub(super) async fn stop(self) -> Result<()> {
        // The executor ends first, because it would retry without its server.
        for process in self.processes.iter().rev() {
            process.terminate(DEADLINE).await?;
        }
        Ok(())
    }
}

/// An address that nothing listens on. kube-controller-manager does not say which port it was given, so it cannot choose one.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
    Ok(listener.local_addr()?)
}
