//! The process of the planning service.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use nodewise_testbed::{ControlPlane, Process};

use crate::{binaries::binaries, deadline::DEADLINE, http::http_get};

/// A running server. It ends when dropped.
#[derive(Debug)]
pub struct Server {
    process: Process,
    program: PathBuf,
    address: SocketAddr,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Server {
    /// Starts a server that listens on `listen`, with these additional flags.
    pub async fn start(plane: &ControlPlane, listen: &str, flags: &[&str]) -> Result<Self> {
        Self::start_in(plane, listen, flags, &[]).await
    }

    /// The same with these environment variables.
    pub async fn start_in(
        plane: &ControlPlane,
        listen: &str,
        flags: &[&str],
        environment: &[(String, String)],
    ) -> Result<Self> {
        let built = tokio::task::spawn_blocking(binaries).await??;
        Self::start_program(&built.server, plane, listen, flags, environment).await
    }

    /// The same with this program, for example of an earlier version.
    pub async fn start_program(
        program: &Path,
        plane: &ControlPlane,
        listen: &str,
        flags: &[&str],
        environment: &[(String, String)],
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["--listen", listen]).args(flags);
        command.envs(environment.iter().cloned());
        let process = plane.spawn("nodewise-server", command)?;
        let address = said_address(&process, "serve: listening on ").await?;
        Ok(Self {
            process,
            program: program.to_owned(),
            address,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            environment: environment.to_vec(),
        })
    }

    /// The address of health and metrics. The server must have been started with `--http-listen`.
    pub async fn http_address(&self) -> Result<SocketAddr> {
        said_address(&self.process, "health and metrics: listening on ").await
    }

    /// The sum of all metrics whose series start with `series`; 0 if there are none. The server must have been started
    /// with `--http-listen`.
    pub async fn sum_of(&self, series: &str) -> Result<u64> {
        let (_, metrics) = http_get(self.http_address().await?, "/metrics").await?;
        let lines = metrics.lines().filter(|line| line.starts_with(series));
        lines
            .map(|line| {
                let value = line.rsplit(' ').next().unwrap_or_default();
                value.parse::<u64>().with_context(|| line.to_owned())
            })
            .sum()
    }

    /// Starts an ended server again, with the same address, flags and environment.
    pub async fn start_again(&mut self, plane: &ControlPlane) -> Result<()> {
        let flags: Vec<_> = self.flags.iter().map(String::as_str).collect();
        let (program, listen) = (&self.program, self.address.to_string());
        *self = Self::start_program(program, plane, &listen, &flags, &self.environment).await?;
        Ok(())
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// The address after these words in the log.
async fn said_address(process: &Process, words: &str) -> Result<SocketAddr> {
    let line = process.wait_for_log_line(words, DEADLINE).await?;
    let (_, address) = line.rsplit_once(words).context("the line has the words")?;
    let address = address.split_whitespace().next().unwrap_or_default();
    address
        .parse()
        .with_context(|| format!("the address in {line:?}"))
}
