//! The control loop: takes watch events in, enqueues workloads, runs workers on the queue, and shuts down in order.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use nodewise_client::PlanService;
use nodewise_projection::{Key, OwnershipSelector};
use nodewise_proto::{v1, workload::EXPECTATION_LIFETIME};
use nodewise_runtime::{
    actuator::{Actuator, WorkloadEvent},
    admission::AdmissionChanges,
    queue::{KeyFilter, QueuedKey, RateLimits, Urgency, WorkQueue},
};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::apply;
use crate::event::ClusterEvent;
use crate::foreign_deletes::{ForeignDeletes, Found};
use crate::handlers::Reaction;
use crate::metrics::Metrics;
use crate::other_owner::OtherOwners;
use crate::reconcile::{Clock, Ending, NextPlans, Pace, Reconciler};
use crate::state::{Shared, State};
use crate::trace::{self, Origins, Trigger};

/// Minimum interval between two resyncs.
const RESYNC: Duration = Duration::from_hours(12);
/// The delay after which expectations have certainly expired.
const EXPECTATIONS_EXPIRED: Duration = EXPECTATION_LIFETIME.saturating_add(Duration::from_secs(1));

/// Settings of a controller.
#[derive(Clone)]
pub struct Config {
    /// Workloads reconciled concurrently. At least 1. In addition there is one worker for urgent workloads only, so
    /// that a new node gets its pods even if every other worker is busy with a rollout.
    pub workers: usize,
    /// Number of buckets that nodes and pods are divided into. At least 1, at most the limit of the service.
    pub buckets: u32,
    /// The DaemonSets that the controller owns.
    pub selection: OwnershipSelector,
    /// Options that are sent with each plan request.
    pub options: v1::PlanOptions,
    /// Options for applying plans.
    pub apply: apply::Options,
    /// No other controller should work on the same DaemonSets. If one does, this is logged, counted and reported in Events.
    pub is_only_owner: bool,
    /// Changes of quotas, webhooks and the like. After a change, failed workloads are retried at once.
    pub admission_changes: AdmissionChanges,
    /// Back-off of failed workloads.
    pub limits: RateLimits,
    /// Pause after each reconcile of a workload, so that a burst of events causes one plan request; zero for no pause.
    /// The first event after a quiet time starts a reconcile at once, and retries run when they are due.
    pub rest: Duration,
    /// Delay of the retry after the service could not be reached.
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
            workers: 2,
            buckets: 64,
            selection: OwnershipSelector::default(),
            options: v1::PlanOptions::default(),
            apply: apply::Options::default(),
            is_only_owner: false,
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
            .field("workers", &self.workers)
            .field("buckets", &self.buckets)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Why a controller ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The stream of watch events ended.
    #[error("the watches ended unexpectedly")]
    WatchesEnded,
    /// Workers did not finish in time.
    #[error("{0} reconciles were still under way {1:?} after the stop and were cut off")]
    NotDrained(usize, Duration),
}

/// Reconciles workloads as events come in, until `stop` is cancelled. Then the controller requests no more plans, lets
/// the workers finish their writes and returns. Dropping the future cuts all work off at once.
///
/// The controller starts with empty caches: call this function again for each term of leadership. Workers start when
/// every resource has been listed.
pub async fn run<E, A, P>(
    mut events: E,
    actuator: Arc<A>,
    service: Arc<P>,
    config: Config,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), ControllerError>
where
    E: Stream<Item = ClusterEvent> + Unpin + Send,
    A: Actuator,
    P: PlanService,
{
    let queue = Arc::new(WorkQueue::new(
        config.limits,
        config.rest,
        metrics.runtime().clone(),
    ));
    let selection = &config.selection;
    let mut state = State::new(config.buckets, &config.options).with_selection(selection.clone());
    let foreign_deletes = || ForeignDeletes::new(selection.clone());
    state.foreign_deletes = config.is_only_owner.then(foreign_deletes);
    let state = Shared::new(state);
    let reconciler = Arc::new(Reconciler {
        state: state.clone(),
        actuator,
        service,
        options: config.options.clone(),
        apply: config.apply.clone(),
        clock: Arc::clone(&config.clock),
        metrics: metrics.clone(),
        next: NextPlans::default(),
        pace: Pace::default(),
        origins: Arc::default(),
        stop: stop.clone(),
    });
    let emit = || {
        let actuator = Arc::clone(&reconciler.actuator);
        move |event| actuator.emit(event)
    };
    let handler = EventHandler {
        state: state.clone(),
        queue: Arc::clone(&queue),
        origins: Arc::clone(&reconciler.origins),
        other_owners: config
            .is_only_owner
            .then(|| OtherOwners::new(emit(), metrics.clone(), selection.clone())),
        emit: Box::new(emit()),
        metrics,
    };
    let mut workers = JoinSet::new();
    let mut started = false;
    let mut resync = interval_at(Instant::now() + config.resync, config.resync);
    loop {
        let deletes_due = handler.foreign_deletes_due();
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            finished = workers.join_next(), if started => propagate_panic(finished),
            scopes = config.admission_changes.changed() => {
                let is_meant = |key: &Key| scopes.iter().any(|scope| scope.as_deref().is_none_or(|namespace| namespace == &*key.namespace));
                queue.retry_failed(is_meant);
            }
            () = sleep_until(deletes_due.unwrap_or_else(Instant::now)), if deletes_due.is_some() => handler.report_foreign_deletes(),
            _ = resync.tick() => state.lock().every_workload().into_iter().for_each(|key| queue.add(&key, Urgency::Normal)),
            event = events.next() => {
                let event = event.ok_or(ControllerError::WatchesEnded)?;
                handler.handle(event);
                if !started && state.lock().store.unsynced().next().is_none() {
                    started = true;
                    tracing::info!(workers = config.workers, "all caches are filled; starting to work");
                    let serving = std::iter::repeat_n(KeyFilter::All, config.workers.max(1)).chain([KeyFilter::Urgent]);
                    for serves in serving {
                        let (queue, reconciler) = (Arc::clone(&queue), Arc::clone(&reconciler));
                        workers.spawn(work(queue, reconciler, serves, config.unreachable_delay));
                    }
                }
            }
        }
    }
    queue.shut_down();
    let drained = drain(&mut workers, &mut events, &handler, config.drain_timeout).await;
    handler.metrics.forget_everything();
    drained
}

/// Handles watch events.
struct EventHandler {
    state: Shared,
    queue: Arc<WorkQueue<Key>>,
    origins: Arc<Origins>,
    /// Present if no other controller should work on the same DaemonSets.
    other_owners: Option<OtherOwners>,
    /// Sends an Event about a workload.
    emit: Box<dyn Fn(WorkloadEvent) + Send + Sync>,
    metrics: Metrics,
}

impl EventHandler {
    /// When [`Self::report_foreign_deletes`] is due, if deletes by somebody else are pending.
    fn foreign_deletes_due(&self) -> Option<Instant> {
        self.state.lock().foreign_deletes.as_ref()?.next_due()
    }

    fn report_foreign_deletes(&self) {
        let mut state = self.state.lock();
        let State {
            store,
            foreign_deletes,
            ..
        } = &mut *state;
        let Some(deletes) = foreign_deletes else { return };
        for Found { key, count, event } in deletes.take_due(store) {
            self.metrics.foreign_pod_deletes(&key, count);
            if let Some(event) = event {
                tracing::info!(%key, "{}", event.message);
                (self.emit)(event);
            }
        }
    }

    fn handle(&self, event: ClusterEvent) {
        let trigger = Trigger::of(&event);
        let wake_ups = {
            let mut state = self.state.lock();
            if let Some(others) = &self.other_owners {
                others.handle_event(&state.store, &event);
            }
            state.take_in(event, &self.metrics)
        };
        for wake_up in wake_ups {
            if let (Some(trigger), Some(key)) = (&trigger, wake_up.woken()) {
                self.origins.woke(key, trigger);
            }
            match wake_up {
                Reaction::Enqueue(key) => self.queue.add(&key, Urgency::Normal),
                Reaction::EnqueueFirst(key) => self.queue.add(&key, Urgency::Urgent),
                Reaction::EnqueueAfter(key, delay) => self.queue.add_after(key, delay),
                _ => {}
            }
        }
    }
}

/// Lets the workers finish. Events are still taken in, so that a worker that waits for a cache is woken.
async fn drain<E: Stream<Item = ClusterEvent> + Unpin>(
    workers: &mut JoinSet<()>,
    events: &mut E,
    handler: &EventHandler,
    timeout: Duration,
) -> Result<(), ControllerError> {
    let deadline = tokio::time::sleep(timeout);
    tokio::pin!(deadline);
    let mut watching = true;
    while !workers.is_empty() {
        tokio::select! {
            biased;
            finished = workers.join_next() => propagate_panic(finished),
            () = &mut deadline => {
                let left = workers.len();
                workers.shutdown().await;
                return Err(ControllerError::NotDrained(left, timeout));
            }
            event = events.next(), if watching => match event {
                Some(event) => handler.handle(event),
                None => watching = false,
            },
        }
    }
    Ok(())
}

/// Propagates the panic of a worker. Otherwise its workload would never be reconciled again.
fn propagate_panic(finished: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = finished
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// Runs one worker until the queue is shut down.
async fn work<A: Actuator, P: PlanService>(
    queue: Arc<WorkQueue<Key>>,
    reconciler: Arc<Reconciler<A, P>>,
    serves: KeyFilter,
    unreachable_delay: Duration,
) {
    while let Some(QueuedKey { key, waited }) = queue.take(serves).await {
        let timer = reconciler.metrics.runtime().work_started(waited);
        let span = reconciler.origins.begin(&key, waited);
        let began = Instant::now();
        let ending = reconciler.reconcile(&key).instrument(span.clone()).await;
        let entered = span.entered();
        reconciler
            .metrics
            .reconciled(&key.namespace, &key.name, ending.name(), began.elapsed());
        trace::ended(&entered, ending.name(), ending.failure());
        if !matches!(ending, Ending::Settled { .. }) {
            queue.keep_urgent(&key);
        }
        match ending {
            Ending::Settled { after } => {
                queue.forget(&key);
                requeue(&queue, &key, after);
            }
            Ending::Failed { after, reason } => {
                let delay = queue.add_rate_limited(key.clone());
                let next = humantime::format_duration(after.map_or(delay, |after| after.min(delay)));
                tracing::warn!("{reason}; the next try is in {next}");
                requeue(&queue, &key, after);
            }
            // The event that brings the caches up to date enqueues the workload.
            Ending::CacheBehind(behind) => tracing::debug!("{behind}"),
            Ending::Relisting(resource) => tracing::debug!(%resource, "waiting for a new list"),
            Ending::Unreachable { reason } => {
                tracing::debug!("{reason}");
                queue.add_after(key.clone(), unreachable_delay);
            }
        }
        drop(entered);
        if reconciler.waits_for_watches(&key) {
            // If an expected pod never shows up, no event would enqueue the workload.
            queue.add_after(key.clone(), EXPECTATIONS_EXPIRED);
        }
        queue.done(&key);
        drop(timer);
    }
}

fn requeue(queue: &WorkQueue<Key>, key: &Key, after: Option<Duration>) {
    if let Some(after) = after {
        queue.add_after(key.clone(), after);
    }
}

#[cfg(test)]
mod tests;
