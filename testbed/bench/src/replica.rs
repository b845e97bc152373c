//! The real server, in a process of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nodewise_testbed::Process;

use crate::{cores, measure, programs};

/// Much longer than a server takes to listen.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest call: one that takes so long would not be worth its figure.
const LONGEST_CALL: Duration = Duration::from_secs(20);

/// A server. It is killed when this is dropped.
#[derive(Debug)]
pub struct Replica {
    process: Process,
}

impl Replica {
    /// Starts one as it is by default, but for these arguments; on a free port.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = programs::command(program);
        command.args(["--listen", "127.0.0.1:0"]).args(arguments);
        Ok(Self {
            process: Process::spawn("server", command)?,
        })
    }

    /// Starts one that keeps to one core, of which it then knows no other.
    ///
    /// # Errors
    /// As [`Replica::start`], or the core may not be used.
    pub fn start_on(core: usize, program: &Path) -> Result<Self> {
        cores::on(&[core], || Self::start(program, &[]))
    }

    /// A connection to it, once it listens.
    ///
    /// # Errors
    /// It ends instead, or does not come to it.
    pub async fn connect(&self) -> Result<tonic::transport::Channel> {
        let address = self.process.listening_on(PATIENCE).await?;
        let endpoint =
            tonic::transport::Endpoint::from_shared(format!("http://{address}"))?.timeout(LONGEST_CALL);
        endpoint
            .connect()
            .await
            .with_context(|| format!("connecting to {address}"))
    }

    /// CPU time that it has taken so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        measure::cpu_time(self.process.pid())
    }
}
