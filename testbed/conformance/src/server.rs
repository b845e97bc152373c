//! The planning service, as a process.

use std::{net::SocketAddr, process::Command};

use anyhow::Result;
use nodewise_testbed::{ControlPlane, Process};

use crate::{binaries::binaries, space::DEADLINE};

/// A running server; gone when dropped.
#[derive(Debug)]
pub struct Server {
    process: Process,
    address: SocketAddr,
}

impl Server {
    /// Starts one that listens there, with these flags besides.
    pub async fn start(plane: &ControlPlane, listen: &str, flags: &[&str]) -> Result<Self> {
        let built = tokio::task::spawn_blocking(binaries).await??;
        let mut command = Command::new(&built.server);
        command.args(["--listen", listen]).args(flags);
        let process = plane.spawn("nodewise-server", command)?;
        let address = process.listening_on(DEADLINE).await?;
        Ok(Self { process, address })
    }

    /// Starts one again that has ended, on the same address.
    pub async fn start_again(&mut self, plane: &ControlPlane) -> Result<()> {
        *self = Self::start(plane, &self.address.to_string(), &[]).await?;
        Ok(())
    }

    /// Where it listens.
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
