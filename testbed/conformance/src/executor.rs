//! The executor under test: a command, of which nothing is known but the contract.

use std::{
    path::Path,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::{ControlPlane, Process};

/// How long an executor may take from SIGTERM to its end.
pub(crate) const LONGEST_END: Duration = Duration::from_secs(30);

/// How often it is looked whether an executor still runs.
const LOOK: Duration = Duration::from_millis(200);

/// A running executor; gone when dropped.
#[derive(Debug)]
pub(crate) struct Executor(Process);

impl Executor {
    /// Starts `sh -c "exec COMMAND"` with the environment of the contract, and with these variables besides. Its log has that name.
    pub(crate) fn start(
        plane: &ControlPlane,
        name: &str,
        command: &str,
        kubeconfig: &Path,
        servers: &[String],
        environment: &[(String, String)],
    ) -> Result<Self> {
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("exec {command}"))
            .env("KUBECONFIG", kubeconfig)
            .env("NODEWISE_SERVER", servers.join(","))
            .env("NODEWISE_LEADER_ELECT", "false")
            .envs(environment.iter().cloned());
        Ok(Self(plane.spawn(name, shell)?))
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&self) -> Result<()> {
        self.check_running()?;
        self.0.kill9()
    }

    /// Asks it to end; fails unless it does in time and with status 0.
    pub(crate) async fn stop(&self) -> Result<()> {
        let status = self
            .0
            .terminate(LONGEST_END)
            .await
            .with_context(|| format!("SIGTERM must end it within {LONGEST_END:?}"))?;
        ensure!(
            status.success(),
            "after SIGTERM it ended with {status}; the end of its log:\n{}",
            self.0.log_tail()
        );
        Ok(())
    }

    /// Fails if it no longer runs.
    pub(crate) fn check_running(&self) -> Result<()> {
        self.0.check_running()
    }

    /// The last lines of its log.
    #[must_use]
    pub(crate) fn log_tail(&self) -> String {
        self.0.log_tail()
    }
}

/// The executor that should be running, if one should.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Mutex<Option<Arc<Executor>>>>);

impl Running {
    /// From now on this one should run, or none.
    pub(crate) fn set(&self, executor: Option<Executor>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = executor.map(Arc::new);
    }

    /// The one that should run.
    pub(crate) fn get(&self) -> Option<Arc<Executor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one that should have run by now; from now on none should.
    pub(crate) fn take(&self) -> Option<Arc<Executor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until one that should run does not, and says how it ended.
    pub(crate) async fn ended(&self) -> anyhow::Error {
        loop {
            if let Some(Err(error)) = self.get().map(|executor| executor.check_running()) {
                return error;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
