//! A complete controller: runs all DaemonSets of a cluster with the plans of a nodewise-server.
//!
//! `nodewise-executor` is the same with flags, leader election, metrics and traces. This example reads `KUBECONFIG`,
//! and `NODEWISE_SERVER` with a comma-separated list of URLs: `https://`, or `http://` on loopback.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use nodewise_client::{ClientConfig, PlanClient};
use nodewise_executor::{
    DaemonSets, Kind, Manager, controller, manager,
    metrics::Metrics,
    runtime::{actuator::KubeActuator, connect, events::EventRecorder},
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

    // The client of the planning service. Its background task keeps connections and health up to date.
    let service = PlanClient::new(&servers, ClientConfig::default(), Arc::new(metrics.clone()))?;
    let service = Arc::new(service);
    let background = Arc::clone(&service);
    tokio::spawn(async move { background.tend().await });

    // The writer. Its background task sends Events.
    let (recorder, events) = EventRecorder::new(
        client.clone(),
        DaemonSets::EVENT_SOURCE,
        metrics.runtime().clone(),
    );
    tokio::spawn(events);
    let actuator = KubeActuator::new(
        client.clone(),
        Duration::from_secs(30),
        metrics.runtime().clone(),
        recorder,
    );

    // The controller of DaemonSets and its watches, until SIGTERM.
    let stop = CancellationToken::new();
    let mut terminated = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        terminated.recv().await;
        stopping.cancel();
    });
    let manager = Manager::new(manager::Config::default(), metrics, stop).with::<DaemonSets>(
        controller::Config::default(),
        Arc::new(actuator),
        service,
    );
    let mut watches = manager.watch(&client, None, &Checks::default());
    manager.run(&mut watches).await?;
    watches.stop().await;
    Ok(())
}
