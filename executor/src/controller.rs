//! The controller of one kind of workload: a work queue, and workers that reconcile. The
//! [`Manager`](crate::manager::Manager) feeds it with watch events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nodewise_client::PlanService;
use nodewise_projection::{Key, OwnershipSelector};
use nodewise_proto::{v1, workload::EXPECTATION_LIFETIME};
use nodewise_runtime::{
    Resource,
    actuator::{Actuator, WorkloadEvent},
    log_limiter::LogLimiter,
    queue::{KeyFilter, QueuedKey, WorkQueue},
    watch::Builder,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::other_owner::OtherOwners;
use crate::reconcile::{Ending, Reconciler};
use crate::served::Served;
use crate::trace::{self, Trigger};
use nodewise_runtime::effects::{Wake, When};
use nodewise_runtime::event::ClusterEvent;
use nodewise_runtime::kind::Kind;
use nodewise_runtime::store::Store;

/// The delay after which expectations have certainly expired.
const EXPECTATIONS_EXPIRED: Duration = EXPECTATION_LIFETIME.saturating_add(Duration::from_secs(1));

/// Settings of the controller of one kind.
#[derive(Clone, Debug)]
pub struct Config {
    /// Workloads reconciled concurrently. At least 1. In addition there is one worker for urgent workloads only, so
    /// that a new node gets its pods even if every other worker is busy with a rollout.
    pub workers: usize,
    /// The workloads that the controller owns.
    pub selection: OwnershipSelector,
    /// The part of the workloads that plans are requested for; `None`: the scope of the manager's options.
    pub scope: Option<v1::Scope>,
    /// No other controller should work on the same workloads. If one does, this is logged, counted and reported in
    /// Events.
    pub is_only_owner: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: 2,
            selection: OwnershipSelector::default(),
            scope: None,
            is_only_owner: false,
        }
    }
}

/// The controller of one kind of workload.
pub(crate) struct Controller<K, A, P> {
    config: Config,
    queue: Arc<WorkQueue<Key>>,
    reconciler: Arc<Reconciler<K, A, P>>,
    /// Present if no other controller should work on the same workloads.
    other_owners: Option<OtherOwners>,
    /// Delay of the retry after the service could not be reached. It is at least twice as long as the reconcile took.
    unreachable_delay: Duration,
}

/// A controller of any kind, as the manager runs it.
pub(crate) trait AnyController: Send + Sync {
    /// The kind of its workloads.
    fn kind(&self) -> &'static str;
    /// Starts the watches of its workloads and of those that they control, unless they are watched already. The returned values
    /// become true when the first lists have been sent.
    fn watch(&self, builder: &mut Builder<'_>) -> [watch::Receiver<bool>; 2];
    /// Whether its plans are made from a resource.
    fn reads(&self, resource: Resource) -> bool;
    /// Handles an event before the caches have it.
    fn handle_event(&self, store: &Store, event: &ClusterEvent);
    /// Enqueues a workload. `trigger` is the event that caused it, if reconciles are traced.
    fn enqueue(&self, wake: Wake, trigger: Option<&Arc<Trigger>>);
    /// Retries the failed workloads that are meant.
    fn retry_failed(&self, is_meant: &dyn Fn(&Key) -> bool);
    /// Sends an Event about a workload.
    fn emit(&self, event: WorkloadEvent);
    /// Starts the workers.
    fn start(&self, workers: &mut JoinSet<()>);
    /// Lets the workers end.
    fn shut_down(&self);
    /// The workloads that workers reconcile now.
    fn in_progress(&self) -> Vec<Key>;
}

impl<K: Kind, A: Actuator, P: PlanService> Controller<K, A, P> {
    pub(crate) fn new(
        config: Config,
        queue: WorkQueue<Key>,
        reconciler: Reconciler<K, A, P>,
        unreachable_delay: Duration,
    ) -> Self {
        let reconciler = Arc::new(reconciler);
        let other_owners = config.is_only_owner.then(|| {
            let actuator = Arc::clone(&reconciler.actuator);
            let emit = move |event| actuator.emit(event);
            let (metrics, selection) = (reconciler.metrics.clone(), config.selection.clone());
            OtherOwners::new(K::RESOURCE.kind, emit, metrics, selection)
        });
        Self {
            config,
            queue: Arc::new(queue),
            reconciler,
            other_owners,
            unreachable_delay,
        }
    }
}

impl<K: Kind, A: Actuator, P: PlanService> AnyController for Controller<K, A, P> {
    fn kind(&self) -> &'static str {
        K::RESOURCE.kind
    }

    fn watch(&self, builder: &mut Builder<'_>) -> [watch::Receiver<bool>; 2] {
        [
            builder.watch::<Served<K>>(),
            builder.watch::<Served<K::Controls>>(),
        ]
    }

    fn reads(&self, resource: Resource) -> bool {
        K::READS.contains(&resource)
    }

    fn handle_event(&self, store: &Store, event: &ClusterEvent) {
        if let Some(others) = &self.other_owners {
            others.handle_event(store, event);
        }
    }

    fn enqueue(&self, Wake { key, when }: Wake, trigger: Option<&Arc<Trigger>>) {
        if let Some(trigger) = trigger {
            self.reconciler.origins.woke(&key, trigger);
        }
        match when {
            When::Now(urgency) => self.queue.add(&key, urgency),
            When::After(delay) => self.queue.add_after(key, delay),
        }
    }

    fn retry_failed(&self, is_meant: &dyn Fn(&Key) -> bool) {
        self.queue.retry_failed(is_meant);
    }

    fn emit(&self, event: WorkloadEvent) {
        self.reconciler.actuator.emit(event);
    }

    fn start(&self, workers: &mut JoinSet<()>) {
        let count = self.config.workers;
        tracing::info!(
            kind = self.kind(),
            workers = count,
            "its caches are filled; starting to work"
        );
        let serving = std::iter::repeat_n(KeyFilter::All, count.max(1)).chain([KeyFilter::Urgent]);
        let unanswered = Arc::new(Unanswered::default());
        for serves in serving {
            let (queue, reconciler) = (Arc::clone(&self.queue), Arc::clone(&self.reconciler));
            let unanswered = Arc::clone(&unanswered);
            workers.spawn(work(
                queue,
                reconciler,
                serves,
                self.unreachable_delay,
                unanswered,
            ));
        }
    }

    fn shut_down(&self) {
        self.queue.shut_down();
    }

    fn in_progress(&self) -> Vec<Key> {
        self.queue.in_progress()
    }
}

/// Rate limit of the warning that there is no plan for a workload: one for all, because an outage concerns them all.
type Unanswered = Mutex<LogLimiter<()>>;

/// Runs one worker until the queue is shut down.
async fn work<K: Kind, A: Actuator, P: PlanService>(
    queue: Arc<WorkQueue<Key>>,
    reconciler: Arc<Reconciler<K, A, P>>,
    serves: KeyFilter,
    unreachable_delay: Duration,
    unanswered: Arc<Unanswered>,
) {
    while let Some(QueuedKey { key, waited }) = queue.take(serves).await {
        let timer = queue.work_started(waited);
        let span = reconciler.origins.begin(&key, waited);
        let began = Instant::now();
        let ending = reconciler.reconcile(&key).instrument(span.clone()).await;
        let entered = span.entered();
        reconciler
            .metrics
            .reconciled(&key, ending.name(), began.elapsed());
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
                retry(&queue, &key, after, &reason);
            }
            Ending::Conflict { after, reason } => {
                tracing::info!("{reason}");
                queue.add_rate_limited(key.clone());
                requeue(&queue, &key, after);
            }
            Ending::Refused { reason } => {
                let next = queue.add_rate_limited_without_end(&key);
                log_retry(&reason, next);
            }
            // The event that brings the caches up to date enqueues the workload.
            Ending::CacheBehind(behind) => tracing::debug!("{behind}"),
            Ending::Relisting(resource) => tracing::debug!(%resource, "waiting for a new list"),
            Ending::Unreachable { reason } => {
                // A request that no replica answers in time must not keep a worker busy.
                let delay = unreachable_delay.max(began.elapsed().saturating_mul(2));
                let is_due = || {
                    let mut unanswered = unanswered.lock().unwrap_or_else(PoisonError::into_inner);
                    unanswered.is_due(())
                };
                if !reconciler.stop.is_cancelled() && is_due() {
                    tracing::warn!(
                        "there is no plan: {reason}; the next try is in {delay:?}; said once a minute, of one workload"
                    );
                } else {
                    tracing::debug!("{reason}");
                }
                queue.add_after(key.clone(), delay);
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

/// Requeues a workload that failed: with back-off, and after this time, if there is one.
fn retry(queue: &WorkQueue<Key>, key: &Key, after: Option<Duration>, reason: &str) {
    let next = queue.add_rate_limited(key.clone()).into_iter().chain(after).min();
    if let Some(next) = next {
        log_retry(reason, next);
    } else {
        tracing::warn!("{reason}; this was tried too often, so it waits for the next event");
    }
    requeue(queue, key, after);
}

fn log_retry(reason: &str, next: Duration) {
    let next = humantime::format_duration(next);
    tracing::warn!("{reason}; the next try is in {next}");
}

fn requeue(queue: &WorkQueue<Key>, key: &Key, after: Option<Duration>) {
    if let Some(after) = after {
        queue.add_after(key.clone(), after);
    }
}
