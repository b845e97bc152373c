//! Runs the controllers of one term of leadership: takes watch events into the shared caches, enqueues workloads at their
//! controllers, and shuts down in order.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::Client;
use nodewise_client::PlanService;
use nodewise_projection::{Key, Node, Pod, Revision, RolloutPolicy};
use nodewise_proto::v1;
use nodewise_runtime::{
    Resource,
    actuator::Actuator,
    admission::AdmissionChanges,
    queue::{RateLimits, WorkQueue},
    watch::{Builder, Watches},
};
use nodewise_telemetry::http::Checks;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::controller::{self, AnyController, Controller};
use crate::foreign_deletes::Found;
use crate::metrics::Metrics;
use crate::reconcile::{Clock, NextPlans, Pace, Reconciler};
use crate::state::{ReconciledKind, Shared, State};
use crate::trace::Trigger;
use nodewise_runtime::apply;
use nodewise_runtime::effects::Wake;
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::kind::Kind;

/// Minimum interval between two resyncs.
const RESYNC: Duration = Duration::from_hours(12);

/// Settings that all controllers share.
#[derive(Clone)]
pub struct Config {
    /// Number of buckets that nodes and pods are divided into. At least 1, at most the limit of the service.
    pub buckets: u32,
    /// Options that are sent with each plan request. A controller may have another scope.
    pub options: v1::PlanOptions,
    /// Options for applying plans.
    pub apply: apply::Options,
    /// Changes of quotas, webhooks and the like. After a change, failed workloads are retried at once.
    pub admission_changes: AdmissionChanges,
    /// Back-off of failed workloads.
    pub limits: RateLimits,
    /// Pause after each reconcile of a workload, so that a burst of events causes one plan request; zero for no pause.
    /// The first event after a quiet time starts a reconcile at once, and retries run when they are due.
    pub rest: Duration,
    /// Delay of the retry after the service could not be reached. It is at least twice as long as the reconcile took.
    pub unreachable_delay: Duration,
    /// Interval after which every workload is reconciled although no event came. A resync finds changes that were
    /// missed.
    pub resync: Duration,
    /// How long workers may continue after the request to stop.
    pub drain_timeout: Duration,
    /// The clock for the time in snapshots.
    pub clock: Clock,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            buckets: 64,
            options: v1::PlanOptions::default(),
            apply: apply::Options::default(),
            admission_changes: AdmissionChanges::default(),
            limits: RateLimits::default(),
            rest: Duration::from_millis(20),
            unreachable_delay: Duration::from_secs(5),
            // Upstream's 12 to 24 hours. The value is random so that several controllers do not resync at the same time
            // (D-107).
            resync: RESYNC.mul_f64(rand::random_range(1.0..2.0)),
            drain_timeout: Duration::from_secs(10),
            clock: Arc::new(jiff::Timestamp::now),
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("buckets", &self.buckets)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Why a manager ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// The stream of watch events ended.
    #[error("the watches ended unexpectedly")]
    WatchesEnded,
    /// Workers did not finish in time.
    #[error("reconciles were still under way {1:?} after the stop and were cancelled: {0}")]
    NotDrained(String, Duration),
}

/// Controllers that share one set of watches and one state. It starts with empty caches: make a new one for each term
/// of leadership.
pub struct Manager {
    config: Config,
    metrics: Metrics,
    stop: CancellationToken,
    state: Shared,
    controllers: Vec<Box<dyn AnyController>>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<_> = self
            .controllers
            .iter()
            .map(|controller| controller.kind())
            .collect();
        f.debug_struct("Manager")
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}

impl Manager {
    /// Creates a manager without controllers. It works until `stop` is cancelled.
    #[must_use]
    pub fn new(config: Config, metrics: Metrics, stop: CancellationToken) -> Self {
        let state = State::new(config.buckets, &config.options);
        Self {
            config,
            metrics,
            stop,
            state: Shared::new(state),
            controllers: Vec::new(),
        }
    }

    /// Adds the controller of a kind. `actuator` makes its writes, and `service` its plans.
    ///
    /// # Panics
    ///
    /// If the kind has a controller already.
    #[must_use]
    pub fn with<K: Kind>(
        mut self,
        config: controller::Config,
        actuator: Arc<impl Actuator>,
        service: Arc<impl PlanService>,
    ) -> Self {
        let kind = K::RESOURCE.kind;
        assert!(self.controller(kind).is_none(), "{kind} has two controllers");
        let mut options = self.config.options.clone();
        if let Some(scope) = config.scope {
            options.set_scope(scope);
        }
        let mut kind = ReconciledKind::new::<K>(&options, config.selection.clone());
        if config.is_only_owner {
            kind = kind.with_foreign_deletes();
        }
        self.state.lock().add_kind(kind);
        let queue_metrics = self.metrics.runtime().queue(K::QUEUE);
        let limits = RateLimits {
            max_retries: K::MAX_RETRIES,
            ..self.config.limits
        };
        let queue = WorkQueue::new(limits, self.config.rest, queue_metrics);
        let reconciler = Reconciler {
            kind: PhantomData::<K>,
            state: self.state.clone(),
            actuator,
            service,
            options,
            apply: self.config.apply.clone(),
            clock: Arc::clone(&self.config.clock),
            metrics: self.metrics.clone(),
            next: NextPlans::default(),
            pace: Pace::default(),
            origins: Arc::default(),
            stop: self.stop.clone(),
        };
        let controller = Controller::new(config, queue, reconciler, self.config.unreachable_delay);
        self.controllers.push(Box::new(controller));
        self
    }

    /// Starts the watches of all kinds and of what their plans are made from, in one namespace or in all. The readiness of
    /// each watch is added to `checks`.
    #[must_use]
    pub fn watch(&self, client: &Client, namespace: Option<&str>, checks: &Checks) -> Watches {
        let (kinds, inputs) = {
            let store = &self.state.lock().store;
            (store.kinds().to_vec(), store.inputs().to_vec())
        };
        let mut watches = Builder::new(client, namespace, &kinds, checks, self.metrics.runtime());
        let controllers = self.controllers.iter();
        let mut are_known = Vec::new();
        for controller in controllers {
            let listed = controller.watch(&mut watches);
            if controller.reads(Resource::REVISIONS) {
                are_known.extend(listed);
            }
        }
        if inputs.contains(&Resource::PODS) {
            watches.watch::<Pod>();
        }
        if inputs.contains(&Resource::NODES) {
            watches.watch::<Node>();
        }
        if inputs.contains(&Resource::ROLLOUT_POLICIES) {
            watches.watch::<RolloutPolicy>();
        }
        if inputs.contains(&Resource::REVISIONS) {
            // Whether the data of a revision is cached depends on the workloads.
            watches.watch_after::<Revision>(are_known);
        }
        watches.finish()
    }

    /// Reconciles workloads as events come in, until the manager is stopped. Then it requests no more plans, lets the
    /// workers finish their writes and returns. Dropping the future cuts all work off at once.
    ///
    /// The workers of a controller start when every resource that it needs has been listed.
    pub async fn run<E>(self, mut events: E) -> Result<(), ManagerError>
    where
        E: Stream<Item = ClusterEvent> + Unpin + Send,
    {
        let mut workers = JoinSet::new();
        let mut waiting: Vec<_> = self.controllers.iter().collect();
        let mut resync = interval_at(Instant::now() + self.config.resync, self.config.resync);
        let rollouts_due_sooner = self.state.lock().rollouts.is_due_sooner();
        loop {
            let (deletes_due, rollouts_due) = {
                let state = self.state.lock();
                (state.foreign_deletes_due(), state.rollouts.next_due())
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                finished = workers.join_next(), if !workers.is_empty() => propagate_panic(finished),
                scopes = self.config.admission_changes.changed() => {
                    let is_meant = |key: &Key| scopes.iter().any(|scope| scope.as_deref().is_none_or(|namespace| namespace == &*key.namespace));
                    self.controllers.iter().for_each(|controller| controller.retry_failed(&is_meant));
                }
                () = sleep_until(deletes_due.unwrap_or_else(Instant::now)), if deletes_due.is_some() => self.report_foreign_deletes(),
                () = sleep_until(rollouts_due.unwrap_or_else(Instant::now)), if rollouts_due.is_some() => self.report_rollouts(),
                () = rollouts_due_sooner.notified() => {}
                key = self.config.apply.measurements.ended() => {
                    if let Some(controller) = self.controller(key.kind) {
                        controller.enqueue(Wake::now(key), None);
                    }
                }
                _ = resync.tick() => self.enqueue_all(),
                event = events.next() => {
                    self.handle(event.ok_or(ManagerError::WatchesEnded)?);
                    waiting.retain(|controller| {
                        let is_ready = self.state.lock().is_ready(controller.kind());
                        if is_ready {
                            controller.start(&mut workers);
                        }
                        !is_ready
                    });
                }
            }
        }
        self.controllers
            .iter()
            .for_each(|controller| controller.shut_down());
        // No plan will have their results.
        self.config.apply.measurements.end();
        let drained = self.drain(&mut workers, &mut events).await;
        self.metrics.forget_everything();
        drained
    }

    fn controller(&self, kind: &str) -> Option<&dyn AnyController> {
        let mut controllers = self.controllers.iter();
        controllers
            .find(|controller| controller.kind() == kind)
            .map(|controller| &**controller)
    }

    fn enqueue_all(&self) {
        for controller in &self.controllers {
            let all = self.state.lock().every_workload(controller.kind());
            for key in all {
                controller.enqueue(Wake::now(key), None);
            }
        }
    }

    fn handle(&self, event: ClusterEvent) {
        let trigger = Trigger::of(&event);
        let wakes = {
            let mut state = self.state.lock();
            for controller in &self.controllers {
                controller.handle_event(&state.store, &event);
            }
            state.handle_event(event, &self.metrics)
        };
        for wake in wakes {
            if let Some(controller) = self.controller(wake.key.kind) {
                controller.enqueue(wake, trigger.as_ref());
            }
        }
    }

    fn report_foreign_deletes(&self) {
        let found = self.state.lock().take_due_foreign_deletes();
        for Found { key, count, event } in found {
            self.metrics.foreign_pod_deletes(&key, count);
            if let (Some(event), Some(controller)) = (event, self.controller(key.kind)) {
                tracing::info!(%key, "{}", event.message);
                controller.emit(event);
            }
        }
    }

    /// Tells how far the rollouts are, in the log, in Events and in a metric.
    fn report_rollouts(&self) {
        let mut state = self.state.lock();
        let reports = state.take_due_rollouts((self.config.clock)());
        let events: Vec<_> = (reports.iter())
            .flat_map(|report| report.news.iter().map(|news| (&report.key, news)))
            .filter_map(|(key, news)| Some((key, state.rollouts.event(key, news)?)))
            .collect();
        drop(state);
        for report in &reports {
            self.metrics
                .blocked(&report.key, &report.blocked, report.is_stuck);
            for news in &report.news {
                news.log(report.key.kind, &report.key);
            }
        }
        for (key, event) in events {
            if let Some(controller) = self.controller(key.kind) {
                controller.emit(event);
            }
        }
    }

    /// The workloads that are reconciled now, for messages.
    fn in_progress(&self) -> String {
        let controllers = self.controllers.iter();
        let keys = controllers.flat_map(|controller| controller.in_progress());
        let mut workloads: Vec<_> = keys.map(|key| format!("{} {key}", key.kind)).collect();
        workloads.sort_unstable();
        workloads.join(", ")
    }

    /// Lets the workers finish. Events are still taken in, so that a worker that waits for a cache is woken.
    async fn drain<E: Stream<Item = ClusterEvent> + Unpin>(
        &self,
        workers: &mut JoinSet<()>,
        events: &mut E,
    ) -> Result<(), ManagerError> {
        let timeout = self.config.drain_timeout;
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let third = (timeout / 3).max(Duration::from_millis(1));
        let mut progress = interval_at(Instant::now() + third, third);
        let mut watching = true;
        while !workers.is_empty() {
            tokio::select! {
                biased;
                finished = workers.join_next() => propagate_panic(finished),
                () = &mut deadline => {
                    let left = self.in_progress();
                    workers.shutdown().await;
                    return Err(ManagerError::NotDrained(left, timeout));
                }
                _ = progress.tick() => {
                    let reconciles = self.in_progress();
                    tracing::warn!(reconciles, "stopping: reconciles are still under way");
                }
                event = events.next(), if watching => match event {
                    Some(event) => self.handle(event),
                    None => watching = false,
                },
            }
        }
        Ok(())
    }
}

/// Propagates the panic of a worker. Otherwise its workload would never be reconciled again.
fn propagate_panic(finished: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = finished
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

#[cfg(test)]
mod tests;
