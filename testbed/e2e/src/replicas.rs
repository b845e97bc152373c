//! Several servers for one executor, and DaemonSets that change constantly.

use std::{
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use nodewise_conformance::{DEADLINE, Server, daemon_set, image_patch};
use nodewise_testbed::eventually;
use tokio::task::JoinHandle;

use crate::setup::{self, Setup};

/// An address of this machine that an EndpointSlice may have, so not a loopback address. Sends no packet.
pub fn own_address() -> Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket
        .connect("192.0.2.1:9")
        .context("this machine has no address but loopback ones, which EndpointSlices refuse")?;
    Ok(socket.local_addr()?.ip().to_string())
}

impl Setup {
    /// Starts a server that listens on `listen`.
    pub async fn start_replica(&self, listen: &str) -> Result<Server> {
        Server::start(self.cluster.plane(), listen, &["--plaintext"]).await
    }

    /// Starts an ended server again on the same address.
    pub async fn start_replica_again(&self, replica: &mut Server) -> Result<()> {
        replica.start_again(self.cluster.plane()).await
    }

    /// Restarts the executor with these servers (in the form of `--server`) and these additional flags.
    pub async fn start_executor_for(&mut self, servers: &str, flags: &[&str]) -> Result<()> {
        self.stop_executor().await?;
        let mut options = self.options.clone();
        options
            .executor_args
            .extend(flags.iter().map(ToString::to_string));
        let kubeconfig = self.cluster.executor_kubeconfig()?;
        let started = setup::start_executor(self.cluster.plane(), "executor", servers, &options, &kubeconfig);
        (self.executor, self.executor_http) = started.await?;
        Ok(())
    }

    /// The value of a metric of the executor, or 0 if there is none; `series` is the name with all labels.
    pub async fn executor_metric(&self, series: &str) -> Result<u64> {
        let (_, metrics) = self.executor_get("/metrics").await?;
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(Ok(0), |value| {
            value.parse().with_context(|| format!("{series} is {value}"))
        })
    }

    /// Waits until `count` replicas are in this state (`ready`, `evicted`, …) according to the executor's metrics.
    pub async fn wait_for_replicas(&self, state: &str, count: u64) -> Result<()> {
        let series = format!("nodewise_replicas{{state=\"{state}\"}}");
        eventually(
            DEADLINE,
            format!("{count} replicas that are {state}"),
            async || {
                let present = self.executor_metric(&series).await?;
                ensure!(present == count, "{present}");
                Ok(())
            },
        )
        .await
    }

    /// Waits until `count` more reconciles have succeeded.
    pub async fn wait_for_reconciles(&self, count: u64) -> Result<()> {
        let series = "nodewise_reconcile_duration_seconds_count{kind=\"DaemonSet\",outcome=\"settled\"}";
        let before = self.executor_metric(series).await?;
        eventually(DEADLINE, format!("{count} more reconciles"), async || {
            let now = self.executor_metric(series).await?;
            ensure!(now >= before + count, "{} so far", now - before);
            Ok(())
        })
        .await
    }

    /// Creates `count` DaemonSets and changes them one after another until the load is stopped.
    pub async fn load(&self, count: usize) -> Result<Load> {
        let names: Vec<String> = (0..count).map(|index| format!("load-{index}")).collect();
        for name in &names {
            self.create(daemon_set(name).max_unavailable("100%").build())
                .await?;
        }
        let api: Api<DaemonSet> = self.daemon_set_api();
        let (version, changed) = (Arc::new(AtomicU32::new(1)), names.clone());
        let stop = Arc::clone(&version);
        let changing = tokio::spawn(async move {
            for name in changed.iter().cycle() {
                let next = version.fetch_add(1, Ordering::Relaxed) + 1;
                api.patch(
                    name,
                    &PatchParams::default(),
                    &Patch::Strategic(image_patch(next)),
                )
                .await
                .with_context(|| format!("changing {name}"))?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        });
        Ok(Load {
            names,
            changes: stop,
            changing,
        })
    }
}

/// DaemonSets that change constantly.
#[derive(Debug)]
pub struct Load {
    names: Vec<String>,
    changes: Arc<AtomicU32>,
    changing: JoinHandle<Result<()>>,
}

impl Load {
    /// Fails if the changes have stopped with an error.
    pub async fn check(&mut self) -> Result<()> {
        if self.changing.is_finished() {
            (&mut self.changing).await??;
        }
        Ok(())
    }

    /// The number of changes so far.
    #[must_use]
    pub fn changes(&self) -> u32 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Stops the changes. Returns the names of the DaemonSets.
    pub async fn stop(mut self) -> Result<Vec<String>> {
        self.check().await?;
        self.changing.abort();
        Ok(std::mem::take(&mut self.names))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.changing.abort();
    }
}
