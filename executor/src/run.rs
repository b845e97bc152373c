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
    actuator::{Actuator, KubeActuator, LeaseCheck, ObserveActuator},
    admission::AdmissionChanges,
    apply,
    events::EventRecorder,
    kind::Kind,
    lead::{Elector, KubeLeaseStore, LeaderStatus},
    queue::RateLimits,
};
use nodewise_telemetry::http::{self, Exposition, Health};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, Mode},
    controller,
    daemon_set::DaemonSets,
    manager::{self, Manager, ManagerError},
    metrics::Metrics,
};

/// How long the shutdown waits for Events that are still to be sent.
const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Why an executor ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The addresses of the service are invalid.
    #[error(transparent)]
    Service(#[from] ClientError),
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
    let (version, mode, cluster) = (env!("CARGO_PKG_VERSION"), config.mode, cluster.as_deref());
    let selector = config.selection.to_string();
    tracing::info!(version, %mode, cluster, namespace, selector, "nodewise-executor begins");
    let metrics = Metrics::new();
    // A standby, which has no manager, exports the series of the queue, too.
    let _queue = metrics.runtime().queue(DaemonSets::QUEUE);
    let exposed = metrics.clone();
    let mut health = Health {
        metrics: Exposition::new(move || exposed.encode()),
        ..Health::default()
    };
    if config.mode == Mode::Observe {
        let observed = metrics.clone();
        let report = Exposition::new(move || observed.divergence_report());
        health.pages.insert("/divergence", report);
    }
    let to_service = ClientConfig {
        timeout: config.plan_timeout,
        hedge_after: config.hedge_after,
        tls: config.tls.clone(),
        plaintext: config.plaintext,
        ..ClientConfig::default()
    };
    let (servers, cluster) = (config.servers.clone(), Some(client.clone()));
    let service = PlanClient::discovering(servers, cluster, to_service, Arc::new(metrics.clone()))?;
    let service = Arc::new(service);
    let checked = Arc::clone(&service);
    health.ready.add("plan-service", move || checked.health());

    let _served = http::spawn(listener, health.clone()).map_err(RunError::Address)?;
    let mut background_tasks = JoinSet::new();
    let background = Arc::clone(&service);
    background_tasks.spawn(async move { background.tend().await });

    let (recorder, sender) = EventRecorder::new(
        client.clone(),
        DaemonSets::EVENT_SOURCE,
        metrics.runtime().clone(),
    );
    let mut events = JoinSet::new();
    events.spawn(sender);
    let leader_status = LeaderStatus::default();
    let actuator = KubeActuator::new(
        client.clone(),
        config.api_timeout,
        metrics.runtime().clone(),
        recorder.clone(),
    )
    .with_server(config.apiserver.clone())
    .with_most_calls_per_second(config.calls_per_second)
    .with_most_creates_per_second(config.creates_per_second)
    .with_lease_check(lease_check(&config, &leader_status));
    let parts = Parts {
        client,
        service,
        health,
        metrics,
        recorder,
        leader_status,
        shutdown,
    };
    let result = match config.mode {
        Mode::Own | Mode::Companion => parts.work(&config, Arc::new(actuator)).await,
        Mode::Observe => {
            parts
                .work(&config, Arc::new(ObserveActuator::new(actuator)))
                .await
        }
    };

    // The recorder was dropped with `parts`. The Events that it took last may still be sent.
    if tokio::time::timeout(EVENT_FLUSH_TIMEOUT, events.join_next())
        .await
        .is_err()
    {
        tracing::warn!("some Kubernetes Events could not be sent before the end");
    }
    result.map_err(RunError::from)
}

/// A check whether this process leads; `None` without an election.
fn lease_check(config: &Config, leader_status: &LeaderStatus) -> Option<LeaseCheck> {
    let (timing, leader_status) = (config.election.as_ref()?.timing, leader_status.clone());
    Some(Arc::new(move || leader_status.leads(timing, Instant::now())))
}

/// What all terms of leadership share.
struct Parts {
    client: Client,
    service: Arc<PlanClient>,
    health: Health,
    metrics: Metrics,
    recorder: EventRecorder,
    /// The state of the election, if there is one.
    leader_status: LeaderStatus,
    shutdown: CancellationToken,
}

impl Parts {
    /// Works until shutdown; with an election, only while leading.
    async fn work<A: Actuator>(self, config: &Config, actuator: Arc<A>) -> Result<(), ManagerError> {
        let Some(election) = &config.election else {
            // Without an election, an executor that writes reports itself as leader, so that two such executors show up in
            // the metric. An observer reports nothing: a 0 would look like a missing leader.
            if config.mode.writes() {
                self.metrics.runtime().set_leader(true);
            }
            return self.term(config, actuator, self.shutdown.clone()).await;
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
        .with_events(self.recorder.clone())
        .with_leader_status(self.leader_status.clone());
        let (leader_status, timing) = (self.leader_status.clone(), election.timing);
        self.health.live.add("leaderElection", move || {
            leader_status.check(timing, Instant::now())
        });
        // If the controller ends by itself, the process ends: a new term would not help.
        let (stop, failure) = (self.shutdown.child_token(), Mutex::new(Ok(())));
        elector
            .run(stop.clone(), |term| {
                let work = self.term(config, Arc::clone(&actuator), term);
                async {
                    if let Err(error) = work.await {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
                        stop.cancel();
                    }
                }
            })
            .await;
        failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches and works until `stop` is cancelled. Each term starts with empty caches.
    async fn term<A: Actuator>(
        &self,
        config: &Config,
        actuator: Arc<A>,
        stop: CancellationToken,
    ) -> Result<(), ManagerError> {
        let admission_changes = AdmissionChanges::default();
        let settings = manager::Config {
            buckets: config.buckets,
            options: config.options.clone(),
            apply: apply::Options {
                concurrency: config.concurrent_writes,
                traced_calls: config.traced_calls,
                trace_annotations: config.trace_annotations,
                ..apply::Options::default()
            },
            drain_timeout: config.drain_timeout,
            admission_changes: admission_changes.clone(),
            limits: retries(&config.options),
            ..manager::Config::default()
        };
        let daemon_sets = controller::Config {
            workers: config.concurrent_syncs,
            selection: config.selection.clone(),
            scope: None,
            is_only_owner: config.mode == Mode::Own,
        };
        let manager = Manager::new(settings, self.metrics.clone(), stop);
        let manager = manager.with::<DaemonSets>(daemon_sets, actuator, Arc::clone(&self.service));
        let mut watches = manager.watch(&self.client, config.namespace.as_deref(), &self.health.ready);
        let work = Box::pin(manager.run(&mut watches));
        let watching = Box::pin(async {
            if config.mode == Mode::Own {
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
        result
    }
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
