//! Puts the parts together: health, events, the election, and for each term watches and the controller.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::Client;
use nodewise_client::{ClientConfig, ClientError, PlanClient};
use nodewise_proto::v1;
use nodewise_telemetry::http::{self, Checks, Exposition, Health};
use tokio::{net::TcpListener, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    actuator::{Actuator, KubeActuator, LeaseCheck, ObserveActuator},
    apply,
    config::{Config, Mode},
    controller::{self, ControllerError},
    event::Resource,
    events::EventRecorder,
    lead::{Elector, KubeLeases, Pulse},
    metrics::Metrics,
    obstacles::Obstacles,
    queue::RateLimits,
    watch::Watches,
};

/// How long events that wait may hold up the end.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// Why an executor ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The addresses of the service cannot be used.
    #[error(transparent)]
    Service(#[from] ClientError),
    /// The health server has no address.
    #[error("the address of the health server")]
    Address(#[source] io::Error),
    /// The controller ended without being told to.
    #[error(transparent)]
    Controller(#[from] ControllerError),
}

/// Runs an executor until `shutdown` is cancelled and all work in hand is done.
///
/// Health and metrics are served on `listener` from the beginning, while standing by too, until the very end.
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
    let shown = metrics.clone();
    let mut health = Health {
        metrics: Exposition::new(move || shown.encode()),
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
    let asked = Arc::clone(&service);
    health.ready.add("plan-service", move || asked.health());

    let _served = http::spawn(listener, health.clone()).map_err(RunError::Address)?;
    let mut helpers = JoinSet::new();
    let tended = Arc::clone(&service);
    helpers.spawn(async move { tended.tend().await });

    let (recorder, sender) = EventRecorder::new(client.clone(), metrics.clone());
    let mut events = JoinSet::new();
    events.spawn(sender);
    let pulse = Pulse::default();
    let actuator = KubeActuator::new(
        client.clone(),
        config.api_timeout,
        metrics.clone(),
        recorder.clone(),
    )
    .with_server(config.apiserver.clone())
    .with_most_calls_per_second(config.calls_per_second)
    .with_most_creates_per_second(config.creates_per_second)
    .with_lease_check(lease_check(&config, &pulse));
    let parts = Parts {
        client,
        service,
        health,
        metrics,
        recorder,
        pulse,
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

    // The recorder is gone with the parts; what it was given last may still go out.
    if tokio::time::timeout(LAST_EVENTS, events.join_next())
        .await
        .is_err()
    {
        tracing::warn!("some Kubernetes Events could not be sent before the end");
    }
    result.map_err(RunError::from)
}

/// Whether this process leads, where there is an election.
fn lease_check(config: &Config, pulse: &Pulse) -> Option<LeaseCheck> {
    let (timing, pulse) = (config.election.as_ref()?.timing, pulse.clone());
    Some(Arc::new(move || pulse.leads(timing, Instant::now())))
}

/// What all terms have in common.
struct Parts {
    client: Client,
    service: Arc<PlanClient>,
    health: Health,
    metrics: Metrics,
    recorder: EventRecorder,
    /// Of the election, if there is one.
    pulse: Pulse,
    shutdown: CancellationToken,
}

impl Parts {
    /// Works until shutdown, whenever leading if there is an election.
    async fn work<A: Actuator>(self, config: &Config, actuator: Arc<A>) -> Result<(), ControllerError> {
        let Some(election) = &config.election else {
            // Whoever writes leads, also without asking anybody: two of them have to be seen. An observer has no part in this: with a
            // 0 of its own it would look like one that nobody has elected.
            if config.mode.writes() {
                self.metrics.set_leader(true);
            }
            return self.term(config, actuator, self.shutdown.clone()).await;
        };
        let leases = KubeLeases::new(self.client.clone(), &election.namespace);
        let (identity, namespace) = (election.identity.clone(), election.namespace.clone());
        let elector = Elector::new(leases, identity, namespace, election.timing, self.metrics.clone())
            .with_events(self.recorder.clone())
            .with_pulse(self.pulse.clone());
        let (pulse, timing) = (self.pulse.clone(), election.timing);
        self.health
            .live
            .add("leaderElection", move || pulse.check(timing, Instant::now()));
        // A controller that ends by itself ends the process: something is wrong that a new term would not mend.
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

    /// Watches and works until `stop` is cancelled. Starts with an empty memory (M-15).
    async fn term<A: Actuator>(
        &self,
        config: &Config,
        actuator: Arc<A>,
        stop: CancellationToken,
    ) -> Result<(), ControllerError> {
        let _checks = WatchChecks(self.health.ready.clone());
        let (ready, metrics) = (&self.health.ready, &self.metrics);
        let obstacles = Obstacles::default();
        let mut watches = Watches::start(&self.client, config.namespace.as_deref(), ready, metrics);
        let settings = controller::Config {
            workers: config.concurrent_syncs,
            buckets: config.buckets,
            selection: config.selection.clone(),
            options: config.options.clone(),
            apply: apply::Options {
                concurrency: config.concurrent_writes,
                traced_calls: config.traced_calls,
                trace_annotations: config.trace_annotations,
                ..apply::Options::default()
            },
            drain_timeout: config.drain_timeout,
            is_only_owner: config.mode == Mode::Own,
            obstacles: obstacles.clone(),
            limits: retries(&config.options),
            ..controller::Config::default()
        };
        let (service, metrics) = (Arc::clone(&self.service), metrics.clone());
        let work = Box::pin(controller::run(
            &mut watches,
            actuator,
            service,
            settings,
            metrics,
            stop,
        ));
        let watching = Box::pin(async {
            if config.mode == Mode::Own {
                obstacles.watch(&self.client, config.namespace.as_deref()).await;
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

/// How failed workloads are tried again. Upstream waits for up to 1,000 s: long after a quota was raised or a webhook mended, nothing
/// happens. A minute is enough to spare an apiserver.
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

/// Takes the checks of a term's watches away when the term ends: a standby watches nothing and is ready.
struct WatchChecks(Checks);

impl Drop for WatchChecks {
    fn drop(&mut self) {
        for resource in Resource::ALL {
            self.0.remove(&format!("watch-{resource}"));
        }
    }
}

#[cfg(test)]
mod tests;
