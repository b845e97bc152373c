//! The loop around reconciles: watch events in, workloads woken, workers on the queue, and an orderly end.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use nodewise_client::PlanService;
use nodewise_proto::v1;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::actuator::{Actuator, WorkloadEvent};
use crate::apply;
use crate::event::{ClusterEvent, Key};
use crate::foreign_deletes::{ForeignDeletes, Found};
use crate::handlers::Reaction;
use crate::metrics::Metrics;
use crate::obstacles::Obstacles;
use crate::other_owner::OtherOwners;
use crate::queue::{RateLimits, Serves, Taken, Urgency, WorkQueue};
use crate::reconcile::{Clock, Ending, NextPlans, Pace, Reconciler};
use crate::selection::Selection;
use crate::state::{Shared, State};
use crate::trace::{self, Origins, Trigger};

/// The shortest time between two looks at everything.
const RESYNC: Duration = Duration::from_hours(12);
/// When expectations have expired for certain: five minutes, as the contract says, and one second.
const EXPECTATIONS_EXPIRED: Duration = Duration::from_secs(301);

/// How the controller works.
#[derive(Clone)]
pub struct Config {
    /// Workloads reconciled at the same time. At least 1. Besides these there is one worker for what is urgent, so that a new node
    /// gets its pods though every other worker is in the middle of a rollout.
    pub workers: usize,
    /// Buckets that nodes and pods are sent in. At least 1, at most what the service accepts.
    pub buckets: u32,
    /// Which DaemonSets are owned.
    pub selection: Selection,
    /// How to plan.
    pub options: v1::PlanOptions,
    /// How plans are applied.
    pub apply: apply::Options,
    /// Nobody else should work on the same DaemonSets: who does is told.
    pub is_only_owner: bool,
    /// When these change, workloads that failed are tried again at once.
    pub obstacles: Obstacles,
    /// How failed workloads are slowed down.
    pub limits: RateLimits,
    /// How long a workload is left alone after each look at it, so that a burst of events makes one call; zero for not at all.
    /// The first event after a quiet time is heeded at once, and retries come when they are due.
    pub rest: Duration,
    /// When a workload is tried again after the service could not be reached.
    pub unreachable_delay: Duration,
    /// After this time every workload is looked at though nothing happened, and so on: whatever was missed is then found.
    pub resync: Duration,
    /// How long workers may go on with what they have in hand once they are told to stop.
    pub drain_timeout: Duration,
    /// The time that snapshots carry.
    pub clock: Clock,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: 2,
            buckets: 64,
            selection: Selection::default(),
            options: v1::PlanOptions::default(),
            apply: apply::Options::default(),
            is_only_owner: false,
            obstacles: Obstacles::default(),
            limits: RateLimits::default(),
            rest: Duration::from_millis(20),
            unreachable_delay: Duration::from_secs(5),
            // Upstream's 12 to 24 hours, at random so that several controllers do not do it together (D-107).
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
    /// The watches ended.
    #[error("the watches ended unexpectedly")]
    WatchesEnded,
    /// Workers did not finish in time.
    #[error("{0} reconciles were still under way {1:?} after the stop and were cut off")]
    NotDrained(usize, Duration),
}

/// Works on what the events bring until `stop` is cancelled; then asks for no plan any more, lets the workers finish what they
/// write and returns. Dropping the future cuts everything off at once.
///
/// Starts with empty memory: run it anew for each leadership. Workers start when every resource has been listed.
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
    let queue = Arc::new(WorkQueue::new(config.limits, config.rest, metrics.clone()));
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
    let intake = Intake {
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
        let deletes_due = intake.foreign_deletes_due();
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            finished = workers.join_next(), if started => propagate_panic(finished),
            scopes = config.obstacles.changed() => {
                let is_meant = |key: &Key| scopes.iter().any(|scope| scope.as_deref().is_none_or(|namespace| namespace == &*key.namespace));
                queue.retry_failed(is_meant);
            }
            () = sleep_until(deletes_due.unwrap_or_else(Instant::now)), if deletes_due.is_some() => intake.tell_foreign_deletes(),
            _ = resync.tick() => state.lock().every_workload().into_iter().for_each(|key| queue.add(&key, Urgency::Normal)),
            event = events.next() => {
                let event = event.ok_or(ControllerError::WatchesEnded)?;
                intake.take(event);
                if !started && state.lock().store.unsynced().next().is_none() {
                    started = true;
                    tracing::info!(workers = config.workers, "all caches are filled; starting to work");
                    let serving = std::iter::repeat_n(Serves::All, config.workers.max(1)).chain([Serves::Urgent]);
                    for serves in serving {
                        let (queue, reconciler) = (Arc::clone(&queue), Arc::clone(&reconciler));
                        workers.spawn(work(queue, reconciler, serves, config.unreachable_delay));
                    }
                }
            }
        }
    }
    queue.shut_down();
    let drained = drain(&mut workers, &mut events, &intake, config.drain_timeout).await;
    intake.metrics.forget_everything();
    drained
}

/// What becomes of events.
struct Intake {
    state: Shared,
    queue: Arc<WorkQueue<Key>>,
    origins: Arc<Origins>,
    /// Where nobody else should work on the same DaemonSets.
    other_owners: Option<OtherOwners>,
    /// Sends an Event about a workload.
    emit: Box<dyn Fn(WorkloadEvent) + Send + Sync>,
    metrics: Metrics,
}

impl Intake {
    /// When there is something to tell about deletes of somebody else, if at all.
    fn foreign_deletes_due(&self) -> Option<Instant> {
        self.state.lock().foreign_deletes.as_ref()?.next_due()
    }

    fn tell_foreign_deletes(&self) {
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

    fn take(&self, event: ClusterEvent) {
        let trigger = Trigger::of(&event);
        let wake_ups = {
            let mut state = self.state.lock();
            if let Some(others) = &self.other_owners {
                others.look(&state.store, &event);
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

/// Lets the workers finish. Events are still taken in, so that nobody who waits for a cache waits in vain.
async fn drain<E: Stream<Item = ClusterEvent> + Unpin>(
    workers: &mut JoinSet<()>,
    events: &mut E,
    intake: &Intake,
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
                Some(event) => intake.take(event),
                None => watching = false,
            },
        }
    }
    Ok(())
}

/// A worker that panicked must not go unnoticed: its workload would never be looked at again.
fn propagate_panic(finished: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = finished
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// A worker (M-31).
async fn work<A: Actuator, P: PlanService>(
    queue: Arc<WorkQueue<Key>>,
    reconciler: Arc<Reconciler<A, P>>,
    serves: Serves,
    unreachable_delay: Duration,
) {
    while let Some(Taken { key, waited }) = queue.take(serves).await {
        let timer = reconciler.metrics.work_started(waited);
        let span = reconciler.origins.begin(&key, waited);
        let began = Instant::now();
        let ending = reconciler.reconcile(&key).instrument(span.clone()).await;
        let entered = span.entered();
        reconciler
            .metrics
            .reconciled(&key.namespace, &key.name, ending.name(), began.elapsed());
        trace::ended(&entered, &ending);
        if !matches!(ending, Ending::Settled { .. }) {
            queue.put_off(&key);
        }
        match ending {
            Ending::Settled { after } => {
                queue.forget(&key);
                come_back(&queue, &key, after);
            }
            Ending::Failed { after, reason } => {
                let delay = queue.add_rate_limited(key.clone());
                let next = humantime::format_duration(after.map_or(delay, |after| after.min(delay)));
                tracing::warn!("{reason}; the next try is in {next}");
                come_back(&queue, &key, after);
            }
            // Woken by the event that brings the caches up to date.
            Ending::Behind(behind) => tracing::debug!("{behind}"),
            Ending::Relisting(resource) => tracing::debug!(%resource, "waiting for a new list"),
            Ending::Unreachable { reason } => {
                tracing::debug!("{reason}");
                queue.add_after(key.clone(), unreachable_delay);
            }
        }
        drop(entered);
        if reconciler.waits_for_watches(&key) {
            // Should what is expected never show, no event would tell.
            queue.add_after(key.clone(), EXPECTATIONS_EXPIRED);
        }
        queue.done(&key);
        drop(timer);
    }
}

fn come_back(queue: &WorkQueue<Key>, key: &Key, after: Option<Duration>) {
    if let Some(after) = after {
        queue.add_after(key.clone(), after);
    }
}

#[cfg(test)]
mod tests;
