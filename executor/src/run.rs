//! Runs an executor: health server, Events and leader election, and for each term the watches and the controller.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::Client;
use nodewise_client::{ClientConfig, ClientError, PlanClient};
use nodewise_proto::v1;
use nodewise_runtime::{
    actuator::{KubeActuator, LeaseCheck, ObserveActuator},
    admission::AdmissionChanges,
    apply,
    events::EventRecorder,
    kind::Kind,
    lead::{Elector, KubeLeaseStore, LeaderStatus},
    measurements::Measurements,
    queue::RateLimits,
};
use nodewise_telemetry::http::{self, Checks, Exposition, Health};
use nodewise_tls::FileError;
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    analysis::Analyzer,
    config::{Config, ControllerConfig, Mode},
    controller,
    controllers::Controller,
    daemon_set::DaemonSets,
    deployment::Deployments,
    manager::{self, Manager, ManagerError},
    metrics::Metrics,
    replica_set::ReplicaSets,
};

/// How long the shutdown waits for Events that are still to be sent.
const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait before the apiserver is asked for its version again.
const VERSION_RETRY: Duration = Duration::from_secs(5);

/// A reconcile that takes longer hangs: each call has a timeout, and a plan has a bounded number of writes.
const MAX_RECONCILE: Duration = Duration::from_mins(30);

/// Why an executor ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The addresses of the service are invalid.
    #[error(transparent)]
    Service(#[from] ClientError),
    /// The certificate authorities of those who are asked for the analysis of policies cannot be used.
    #[error("--analysis-ca")]
    Authorities(#[source] FileError),
    /// The health server cannot get its local address.
    #[error("the address of the health server")]
    Address(#[source] io::Error),
    /// The manager ended although it was not asked to stop.
    #[error(transparent)]
    Manager(#[from] ManagerError),
}

/// Runs an executor until `shutdown` is cancelled and all work under way is done.
///
/// Health and metrics are served on `listener` from the start to the end, also on standby.
pub async fn run(
    config: Config,
    client: Client,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), RunError> {
    let cluster = config.apiserver.as_ref().map(ToString::to_string);
    let namespace = config.namespace.as_deref().unwrap_or("all");
    let (version, cluster) = (env!("CARGO_PKG_VERSION"), cluster.as_deref());
    let selector = config.selection.to_string();
    let controllers = config.controllers.iter().map(ToString::to_string);
    let controllers = controllers.collect::<Vec<_>>().join(", ");
    tracing::info!(
        version,
        controllers,
        cluster,
        namespace,
        selector,
        "nodewise-executor begins"
    );
    let metrics = Metrics::new();
    let analyzer = Analyzer::new(config.analysis.clone(), metrics.clone()).map_err(RunError::Authorities)?;
    // A standby has no manager. It exports the series of the queues all the same.
    let of_all = config.controllers.iter();
    let _queues: Vec<_> = of_all
        .map(|of| metrics.runtime().queue(of.controller.alias()))
        .collect();
    let exposed = metrics.clone();
    let mut health = Health {
        metrics: Exposition::new(move || exposed.encode()),
        ..Health::default()
    };
    if config.controllers.iter().any(|of| of.mode == Mode::Observe) {
        let observed = metrics.clone();
        let report = Exposition::new(move || observed.divergence_report());
        health.pages.insert("/divergence", report);
    }
    let to_service = ClientConfig {
        timeout: config.plan_timeout,
        hedge_after: config.hedge_after,
        tls: config.tls.clone(),
        plaintext: config.plaintext,
        shared_labels: true,
        ..ClientConfig::default()
    };
    let (servers, cluster) = (config.servers.clone(), Some(client.clone()));
    let service = PlanClient::discovering(servers, cluster, to_service, Arc::new(metrics.clone()))?;
    let service = Arc::new(service);
    let checked = Arc::clone(&service);
    health.ready.add("plan-service", move || checked.health());

    let settings = config.to_json();
    health
        .pages
        .insert("/configz", Exposition::new(move || settings.clone()));

    let _served = http::spawn(listener, health.clone()).map_err(RunError::Address)?;
    let mut background_tasks = JoinSet::new();
    let background = Arc::clone(&service);
    background_tasks.spawn(async move { background.tend().await });
    background_tasks.spawn(log_cluster(client.clone(), config.clone()));

    let mut events = JoinSet::new();
    let mut recorder = |source| {
        let (recorder, sender) = EventRecorder::new(client.clone(), source, metrics.runtime().clone());
        events.spawn(sender);
        recorder
    };
    let leader_status = LeaderStatus::default();
    let lease_events = recorder(env!("CARGO_PKG_NAME"));
    let actuator = KubeActuator::new(
        client.clone(),
        config.api_timeout,
        metrics.runtime().clone(),
        lease_events.clone(),
    )
    .with_server(config.apiserver.clone())
    .with_most_calls_per_second(config.calls_per_second)
    .with_most_creates_per_second(config.creates_per_second)
    .with_lease_check(lease_check(&config, &leader_status));
    let mut writer = |of: &ControllerConfig| actuator.with_recorder(recorder(of.controller.name()));
    let writers = config.controllers.iter().map(|of| (*of, writer(of))).collect();
    drop(actuator);
    let parts = Parts {
        client,
        analyzer,
        service,
        health,
        metrics,
        lease_events,
        writers,
        leader_status,
        shutdown,
    };
    let result = parts.work(&config).await;

    // The recorders were dropped with `parts`. The Events that they took last may still be sent.
    if tokio::time::timeout(EVENT_FLUSH_TIMEOUT, async {
        while events.join_next().await.is_some() {}
    })
    .await
    .is_err()
    {
        tracing::warn!("some Kubernetes Events could not be sent before the end");
    }
    result.map_err(RunError::from)
}

/// Logs the version of the cluster, and which controllers work on it in which mode, as soon as the apiserver answers.
async fn log_cluster(client: Client, config: Config) {
    let cluster = config.apiserver.as_ref().map(ToString::to_string);
    let kubernetes = loop {
        match client.apiserver_version().await {
            Ok(version) => break version.git_version,
            Err(error) => tracing::debug!(%error, "the version of the apiserver is not known yet"),
        }
        tokio::time::sleep(VERSION_RETRY).await;
    };
    let controllers = config.controllers.iter().map(ToString::to_string);
    let controllers = controllers.collect::<Vec<_>>().join(", ");
    tracing::info!(cluster, kubernetes, controllers, "the apiserver answers");
}

/// A check whether this process leads; `None` without an election.
fn lease_check(config: &Config, leader_status: &LeaderStatus) -> Option<LeaseCheck> {
    let (timing, leader_status) = (config.election.as_ref()?.timing, leader_status.clone());
    Some(Arc::new(move || leader_status.leads(timing, Instant::now())))
}

/// What all terms of leadership share.
struct Parts {
    client: Client,
    /// Makes the measurements for policies.
    analyzer: Analyzer,
    service: Arc<PlanClient>,
    health: Health,
    metrics: Metrics,
    /// Records Events about the lease.
    lease_events: EventRecorder,
    /// The controllers to run, and what writes for each.
    writers: Vec<(ControllerConfig, KubeActuator)>,
    /// The state of the election, if there is one.
    leader_status: LeaderStatus,
    shutdown: CancellationToken,
}

impl Parts {
    /// Works until shutdown; with an election, only while leading.
    async fn work(self, config: &Config) -> Result<(), ManagerError> {
        let Some(election) = &config.election else {
            // Without an election, an executor that writes reports itself as leader, so that two such executors show up in
            // the metric. An observer reports nothing: a 0 would look like a missing leader.
            if config.writes() {
                self.metrics.runtime().set_leader(true);
            }
            return self.term(config, self.shutdown.clone()).await;
        };
        let leases = KubeLeaseStore::new(self.client.clone(), &election.namespace);
        let (identity, namespace) = (election.identity.clone(), election.namespace.clone());
        let elector = Elector::new(
            leases,
            identity,
            namespace,
            election.timing,
            self.metrics.runtime().clone(),
        )
        .with_events(self.lease_events.clone())
        .with_leader_status(self.leader_status.clone());
        let (leader_status, timing) = (self.leader_status.clone(), election.timing);
        self.health.live.add("leaderElection", move || {
            leader_status.check(timing, Instant::now())
        });
        // If the controller ends by itself, the process ends: a new term would not help.
        let (stop, failure) = (self.shutdown.child_token(), Mutex::new(Ok(())));
        elector
            .run(stop.clone(), |term| {
                let work = self.term(config, term);
                async {
                    let ended = work.await;
                    // After an error, writes may have been cut off.
                    let has_drained = ended.is_ok();
                    if !has_drained {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = ended;
                        stop.cancel();
                    }
                    has_drained
                }
            })
            .await;
        failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches and works until `stop` is cancelled. Each term starts with empty caches.
    async fn term(&self, config: &Config, stop: CancellationToken) -> Result<(), ManagerError> {
        let admission_changes = AdmissionChanges::default();
        let settings = manager::Config {
            buckets: config.buckets,
            options: config.options.clone(),
            apply: apply::Options {
                concurrency: config.writes_under_way(),
                traced_calls: config.traced_calls,
                trace_annotations: config.trace_annotations,
                // Those of an earlier term have ended with it.
                measurements: Measurements::new(Arc::new(self.analyzer.clone())),
                ..apply::Options::default()
            },
            drain_timeout: config.drain_timeout,
            admission_changes: admission_changes.clone(),
            limits: retries(&config.options),
            ..manager::Config::default()
        };
        let mut manager = Manager::new(settings, self.metrics.clone(), stop);
        for (of, writer) in &self.writers {
            let writer = writer.clone();
            manager = match of.controller {
                Controller::DaemonSet => self.add::<DaemonSets>(manager, *of, writer, config),
                Controller::Deployment => self.add::<Deployments>(manager, *of, writer, config),
                Controller::ReplicaSet => self.add::<ReplicaSets>(manager, *of, writer, config),
            };
        }
        // A controller is there from here to the end of the term.
        let checked: Vec<_> = self
            .writers
            .iter()
            .map(|(of, _)| add_check(&self.health.live, &self.metrics, of.controller))
            .collect();
        let mut watches = manager.watch(&self.client, config.namespace.as_deref(), &self.health.ready);
        let work = Box::pin(manager.run(&mut watches));
        let watching = Box::pin(async {
            if config.controllers.iter().any(|of| of.mode == Mode::Own) {
                admission_changes
                    .watch(&self.client, config.namespace.as_deref())
                    .await;
            }
            std::future::pending().await
        });
        let result = tokio::select! {
            result = work => result,
            never = watching => never,
        };
        watches.stop().await;
        for name in checked {
            self.health.live.remove(name);
        }
        result
    }

    /// Adds the controller of a kind to the manager.
    fn add<K: Kind>(
        &self,
        manager: Manager,
        of: ControllerConfig,
        writer: KubeActuator,
        config: &Config,
    ) -> Manager {
        let settings = controller::Config {
            workers: of.workers,
            selection: config.selection.clone(),
            scope: Some(of.mode.scope()),
            is_only_owner: of.mode == Mode::Own,
        };
        let service = Arc::clone(&self.service);
        if of.mode.writes() {
            manager.with::<K>(settings, Arc::new(writer), service)
        } else {
            manager.with::<K>(settings, Arc::new(ObserveActuator::new(writer)), service)
        }
    }
}

/// Adds the health check of a controller, and returns the check's name. It fails while a reconcile does not end.
fn add_check(checks: &Checks, metrics: &Metrics, controller: Controller) -> &'static str {
    let queue = metrics.runtime().queue(controller.alias());
    checks.add(controller.name(), move || {
        let age = queue.longest_running();
        if age < MAX_RECONCILE {
            return Ok(());
        }
        let age = humantime::format_duration(Duration::from_secs(age.as_secs()));
        Err(format!("a reconcile has been running for {age}"))
    });
    controller.name()
}

/// Back-off of failed workloads. Upstream waits up to 1,000 s, which is long after a quota was raised or a webhook was
/// repaired. At most one minute is enough to protect an apiserver.
fn retries(options: &v1::PlanOptions) -> RateLimits {
    let max_delay = match options.profile() {
        v1::Profile::UpstreamStrict => RateLimits::default().max_delay,
        _ => Duration::from_mins(1),
    };
    RateLimits {
        max_delay,
        ..RateLimits::default()
    }
}

#[cfg(test)]
mod tests;
