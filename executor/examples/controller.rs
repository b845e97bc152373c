//! A complete controller: owns the DaemonSets of a cluster by the plans of a nodewise-server.
//!
//! `nodewise-executor` is this with flags, leader election, metrics and traces. Reads `KUBECONFIG`, and `NODEWISE_SERVER`, a list of
//! URLs with commas between them: `https://` ones, unless they are on loopback.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use nodewise_client::{ClientConfig, PlanClient};
use nodewise_executor::{
    actuator::KubeActuator,
    connect,
    controller::{self, Config},
    events::EventRecorder,
    metrics::Metrics,
    watch::Watches,
};
use nodewise_telemetry::http::Checks;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cluster = kube::Config::infer().await.context("finding the cluster")?;
    let client = connect::client(cluster)?;
    let servers = std::env::var("NODEWISE_SERVER").context("NODEWISE_SERVER")?;
    let servers: Vec<String> = servers.split(',').map(str::to_owned).collect();
    let metrics = Metrics::new();

    // Who plans.
    let service = PlanClient::new(&servers, ClientConfig::default(), Arc::new(metrics.clone()))?;
    let service = Arc::new(service);
    let tended = Arc::clone(&service);
    tokio::spawn(async move { tended.tend().await });

    // Who writes.
    let (recorder, events) = EventRecorder::new(client.clone(), metrics.clone());
    tokio::spawn(events);
    let actuator = KubeActuator::new(client.clone(), Duration::from_secs(30), metrics.clone(), recorder);

    // What is seen, until SIGTERM.
    let mut watches = Watches::start(&client, None, &Checks::default(), &metrics);
    let stop = CancellationToken::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        terminated.recv().await;
        stopping.cancel();
    });
    controller::run(
        &mut watches,
        Arc::new(actuator),
        service,
        Config::default(),
        metrics,
        stop,
    )
    .await?;
    watches.stop().await;
    Ok(())
}
