//! The simulated cluster, with a service and an executor.

use std::{fmt::Display, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use jiff::Timestamp;
use nodewise_client::{ClientConfig, PlanClient};
use nodewise_executor::{
    DaemonSets, Deployments, Manager, ReplicaSets, controller,
    daemon_set::DAEMON_SETS,
    deployment::DEPLOYMENTS,
    manager::{self, ManagerError},
    metrics::Metrics,
    sim::{SimCluster, SimConfig, WorkloadCounts},
};
use nodewise_projection::Key;
use nodewise_server::Ended;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle, time::Interval};
use tokio_util::sync::CancellationToken;

/// The time of one simulation step. A pod takes two steps to start and one to stop.
const TICK: Duration = Duration::from_millis(20);

/// The simulated cluster, the service and the executor.
pub(super) struct Simulation {
    pub(super) cluster: SimCluster,
    /// The address of the service.
    pub(super) server: String,
    /// The key of the DaemonSet.
    daemon_set: Key,
    /// The key of the Deployment.
    deployment: Key,
    pub(super) metrics: Metrics,
    ticks: Interval,
    controller: JoinHandle<Result<(), ManagerError>>,
    service: JoinHandle<Result<Ended, nodewise_server::Error>>,
    stop_controller: CancellationToken,
    stop_service: CancellationToken,
}

/// One of the workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    DaemonSet,
    Deployment,
}

/// The name of a node. Numbers are padded with zeros to the same width.
pub(super) fn node_name(number: usize, nodes: usize) -> String {
    format!("node-{number:0width$}", width = nodes.to_string().len())
}

impl Simulation {
    /// Starts a cluster with this number of nodes and no workload, the service on a free port, and the executor.
    pub(super) async fn start(nodes: usize) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("cannot listen on a loopback port for the service")?;
        let server = listener
            .local_addr()
            .context("cannot tell the service's port")?
            .to_string();
        let stop_service = CancellationToken::new();
        let service = tokio::spawn(nodewise_server::run(
            nodewise_server::Config::default(),
            listener,
            stop_service.clone().cancelled_owned(),
        ));

        let cluster = SimCluster::new(SimConfig::default(), Timestamp::now());
        for number in 1..=nodes {
            cluster.add_node(&node_name(number, nodes), &[("kubernetes.io/os", "linux")]);
        }
        let metrics = Metrics::new();
        let client = Arc::new(PlanClient::new(
            &[format!("http://{server}")],
            ClientConfig::default(),
            Arc::new(metrics.clone()),
        )?);
        let stop_controller = CancellationToken::new();
        let manager = Manager::new(
            manager::Config::default(),
            metrics.clone(),
            stop_controller.clone(),
        )
        .with::<DaemonSets>(
            controller::Config::default(),
            Arc::new(cluster.actuator()),
            Arc::clone(&client),
        )
        .with::<Deployments>(
            controller::Config::default(),
            Arc::new(cluster.actuator()),
            Arc::clone(&client),
        )
        .with::<ReplicaSets>(
            controller::Config::default(),
            Arc::new(cluster.actuator()),
            client,
        );
        let controller = tokio::spawn(manager.run(cluster.watch()));
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Ok(Self {
            cluster,
            server,
            daemon_set: Key::new(DAEMON_SETS.kind, "demo", "agent"),
            deployment: Key::new(DEPLOYMENTS.kind, "demo", "web"),
            metrics,
            ticks,
            controller,
            service,
            stop_controller,
            stop_service,
        })
    }

    /// Creates the first version of the DaemonSet.
    pub(super) fn create_daemon_set(&self) -> anyhow::Result<()> {
        let labels = json!({"app": &*self.daemon_set.name});
        self.cluster
            .create_daemon_set(json!({
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"namespace": &*self.daemon_set.namespace, "name": &*self.daemon_set.name},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "agent", "image": image("agent", 1)}]},
                    },
                },
            }))
            .map_err(|error| anyhow!("the simulated cluster refuses the DaemonSet: {error}"))?;
        Ok(())
    }

    /// Creates the first version of the Deployment. Its rollouts may have this part of the replicas more, and this part of them
    /// less, than spec.replicas.
    pub(super) fn create_deployment(&self, replicas: usize, limit: &str) -> anyhow::Result<()> {
        let labels = json!({"app": &*self.deployment.name});
        self.cluster
            .create_deployment(json!({
                "metadata": {"namespace": &*self.deployment.namespace, "name": &*self.deployment.name},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "strategy": {"rollingUpdate": {"maxSurge": limit, "maxUnavailable": limit}},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "web", "image": image("web", 1)}]},
                    },
                },
            }))
            .map_err(|error| anyhow!("the simulated cluster refuses the Deployment: {error}"))?;
        Ok(())
    }

    /// Changes the Deployment to another version.
    pub(super) fn roll_out_deployment(&self, version: u32) -> anyhow::Result<()> {
        self.cluster
            .update_deployment(&self.deployment, |spec| {
                spec["template"]["spec"]["containers"][0]["image"] = image("web", version).into();
            })
            .map_err(|error| anyhow!("the simulated cluster refuses version {version}: {error}"))
    }

    /// Changes the DaemonSet to another version, with these limits of the rollout.
    pub(super) fn roll_out(
        &self,
        version: u32,
        max_unavailable: &str,
        max_surge: &str,
    ) -> anyhow::Result<()> {
        let strategy = json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": max_unavailable, "maxSurge": max_surge},
        });
        self.cluster
            .update_daemon_set(&self.daemon_set, |spec| {
                spec["updateStrategy"] = strategy;
                spec["template"]["spec"]["containers"][0]["image"] = image("agent", version).into();
            })
            .map_err(|error| anyhow!("the simulated cluster refuses version {version}: {error}"))
    }

    /// Runs one simulation step. It is an error if the service or the executor has ended.
    pub(super) async fn tick(&mut self) -> anyhow::Result<()> {
        self.ticks.tick().await;
        ensure_running("executor", &mut self.controller).await?;
        ensure_running("service", &mut self.service).await?;
        self.cluster.tick(Timestamp::now());
        Ok(())
    }

    fn key(&self, subject: Subject) -> &Key {
        match subject {
            Subject::DaemonSet => &self.daemon_set,
            Subject::Deployment => &self.deployment,
        }
    }

    /// The cluster's own view of a workload.
    pub(super) fn counts(&self, subject: Subject) -> WorkloadCounts {
        self.cluster.counts(self.key(subject))
    }

    /// The workload as the cluster serves it, with the status that the executor wrote.
    pub(super) fn object(&self, subject: Subject) -> Value {
        self.cluster.workload(self.key(subject)).unwrap_or_default()
    }

    /// Stops the executor, then the service, so that the executor does not lose its service.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.stop_controller.cancel();
        self.controller.await.context("the executor panicked")??;
        self.stop_service.cancel();
        self.service.await.context("the service panicked")??;
        Ok(())
    }
}

/// It is an error if this task has ended.
async fn ensure_running<T, E: Display>(
    name: &str,
    task: &mut JoinHandle<Result<T, E>>,
) -> anyhow::Result<()> {
    if !task.is_finished() {
        return Ok(());
    }
    let ended = task.await.with_context(|| format!("the {name} panicked"))?;
    let reason = ended
        .err()
        .map_or("it was not asked to stop".to_owned(), |error| error.to_string());
    bail!("the {name} ended: {reason}")
}

fn image(name: &str, version: u32) -> String {
    format!("registry.example/{name}:{version}")
}
