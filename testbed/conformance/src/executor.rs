//! The process of the executor under test, started by a command.

use std::{
    path::Path,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::{ControlPlane, Process};

/// How long an executor may take to end after SIGTERM.
pub(crate) const LONGEST_END: Duration = Duration::from_secs(30);

/// The interval between checks that an executor still runs.
const LOOK: Duration = Duration::from_millis(200);

/// A running executor. It ends when dropped.
#[derive(Debug)]
pub(crate) struct Executor(Process);

impl Executor {
    /// Starts `sh -c "exec COMMAND"` with the environment of the contract and these additional variables. `name` is the
    /// name of its log.
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

    /// Sends SIGKILL.
    pub(crate) fn kill(&self) -> Result<()> {
        self.check_running()?;
        self.0.kill9()
    }

    /// Sends SIGTERM. Fails unless the executor ends in time with status 0.
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

/// The executor that should be running, if any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Mutex<Option<Arc<Executor>>>>);

impl Running {
    /// Sets which executor should be running, if any.
    pub(crate) fn set(&self, executor: Option<Executor>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = executor.map(Arc::new);
    }

    /// The executor that should be running, if any.
    pub(crate) fn get(&self) -> Option<Arc<Executor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the executor out, so that none should be running from now on.
    pub(crate) fn take(&self) -> Option<Arc<Executor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until an executor that should be running has ended, and returns how it ended.
    pub(crate) async fn ended(&self) -> anyhow::Error {
        loop {
            if let Some(Err(error)) = self.get().map(|executor| executor.check_running()) {
                return error;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
